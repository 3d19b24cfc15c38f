//! A receiver's work as its sender hears it: pieces, an end, and what became of the message.

use std::collections::VecDeque;

use reqwest::Response;
use rialto_protocols::kit::sse::{Event, Parser};
use rialto_protocols::relay::stream::Word;

use super::line;
use super::outcome::{Outcome, Sent};
use crate::call::CallError;

/// The longest event that is read: a receiver's whole text stands in one.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// One thing that is heard.
#[derive(Clone, Debug)]
pub enum Said {
    /// A piece, the end, or a failure of the receiver's work.
    Word(Word),
    /// What became of the message: the last that is heard.
    Delivery(Sent),
}

/// An answer that comes piece by piece.
#[derive(Debug)]
pub struct Words {
    /// `None` once there is nothing more to hear.
    answer: Option<Response>,
    parser: Parser,
    waiting: VecDeque<Event>,
    /// What the last word says about the delivery, until the server says it itself.
    verdict: Verdict,
}

#[derive(Debug)]
enum Verdict {
    Open,
    Implied(Sent),
    Told,
}

impl Words {
    pub(super) fn new(answer: Response) -> Self {
        let parser = Parser::new(EVENT_BYTES_MAX);
        Self { answer: Some(answer), parser, waiting: VecDeque::new(), verdict: Verdict::Open }
    }

    /// The next thing that is heard; `None` at the end. The last thing is what became of the message:
    /// servers that do not say so leave it to the receiver's last word (spec, section 9). A stream
    /// that ends before that word is an error: the message may or may not have been delivered.
    pub async fn next(&mut self) -> Option<Result<Said, CallError>> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                if let Some(said) = self.read(&event) {
                    return Some(said);
                }
            }
            let more = self.answer.as_mut()?.chunk().await.map_err(line::failed);
            match more.and_then(|more| self.take(more)) {
                Ok(None) => {}
                Ok(Some(sent)) => return Some(Ok(Said::Delivery(sent))),
                Err(error) => {
                    self.answer = None;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Takes the next bytes; at the end, what the last word implies.
    fn take(&mut self, more: Option<bytes::Bytes>) -> Result<Option<Sent>, CallError> {
        let Some(bytes) = more else {
            self.answer = None;
            return match std::mem::replace(&mut self.verdict, Verdict::Told) {
                Verdict::Told => Ok(None),
                Verdict::Implied(sent) => Ok(Some(sent)),
                Verdict::Open => Err(CallError::Unreadable(
                    "the stream ended before the receiver finished".to_owned(),
                )),
            };
        };
        let mut events = Vec::new();
        let pushed = self.parser.push(&bytes, &mut events);
        self.waiting.extend(events);
        pushed.map(|()| None).map_err(|error| CallError::Unreadable(error.to_string()))
    }

    /// What an event says; unknown ones say nothing.
    fn read(&mut self, event: &Event) -> Option<Result<Said, CallError>> {
        if event.event == "delivery" {
            self.verdict = Verdict::Told;
            return Some(Sent::read(&event.data, false).map(Said::Delivery));
        }
        let word = Word::read(event)?;
        let implied = match &word {
            Word::Chunk { .. } => None,
            Word::Done { .. } => Some(Outcome::Delivered { reply: None }),
            Word::Error { code, message } => {
                Some(Outcome::Failed { code: code.clone(), detail: message.clone() })
            }
        };
        if let Some(outcome) = implied {
            self.verdict = Verdict::Implied(Sent::now(outcome));
        }
        Some(Ok(Said::Word(word)))
    }
}
