//! A receiver's reply as a stream: chunks, an end, and the outcome of the message.

use std::collections::VecDeque;

use reqwest::Response;
use rialto_protocols::kit::sse::{Event, Parser};
use rialto_protocols::relay::wire::reply::ReplyEvent;

use super::origin_client;
use super::outcome::{DeliveryOutcome, SentMessage};
use crate::call::CallError;

/// Maximum event size: a receiver's whole text may be in one event.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// One item of the stream.
#[derive(Clone, Debug)]
pub enum ReplyStreamItem {
    /// A chunk, the end, or a failure of the receiver's work.
    Event(ReplyEvent),
    /// The outcome of the message: the last item.
    Delivery(SentMessage),
}

/// A reply that arrives in chunks.
#[derive(Debug)]
pub struct ReplyStream {
    /// `None` once the stream has ended.
    answer: Option<Response>,
    parser: Parser,
    waiting: VecDeque<Event>,
    /// The delivery state according to the last event, until the server reports it itself.
    delivery: DeliveryState,
}

#[derive(Debug)]
enum DeliveryState {
    Unknown,
    Implied(SentMessage),
    Reported,
}

impl ReplyStream {
    pub(super) fn new(answer: Response) -> Self {
        let parser = Parser::new(EVENT_BYTES_MAX);
        Self {
            answer: Some(answer),
            parser,
            waiting: VecDeque::new(),
            delivery: DeliveryState::Unknown,
        }
    }

    /// The next item; `None` at the end. The last item is the outcome of the message. If a server
    /// does not send it, it follows from the receiver's last event (spec, section 9). A stream that
    /// ends before that event is an error: the message may or may not have been delivered.
    pub async fn next(&mut self) -> Option<Result<ReplyStreamItem, CallError>> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                if let Some(said) = self.read(&event) {
                    return Some(said);
                }
            }
            let more = self.answer.as_mut()?.chunk().await.map_err(origin_client::transport_error);
            match more.and_then(|more| self.take(more)) {
                Ok(None) => {}
                Ok(Some(sent)) => return Some(Ok(ReplyStreamItem::Delivery(sent))),
                Err(error) => {
                    self.answer = None;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Reads the next bytes; at the end, returns what the last event implies.
    fn take(&mut self, more: Option<bytes::Bytes>) -> Result<Option<SentMessage>, CallError> {
        let Some(bytes) = more else {
            self.answer = None;
            return match std::mem::replace(&mut self.delivery, DeliveryState::Reported) {
                DeliveryState::Reported => Ok(None),
                DeliveryState::Implied(sent) => Ok(Some(sent)),
                DeliveryState::Unknown => Err(CallError::Unreadable(
                    "the stream ended before the receiver finished".to_owned(),
                )),
            };
        };
        let mut events = Vec::new();
        let pushed = self.parser.push(&bytes, &mut events);
        self.waiting.extend(events);
        pushed.map(|()| None).map_err(|error| CallError::Unreadable(error.to_string()))
    }

    /// Converts an event; unknown events are skipped.
    fn read(&mut self, event: &Event) -> Option<Result<ReplyStreamItem, CallError>> {
        if event.event == "delivery" {
            self.delivery = DeliveryState::Reported;
            return Some(SentMessage::read(&event.data, false).map(ReplyStreamItem::Delivery));
        }
        let word = ReplyEvent::read(event)?;
        let implied = match &word {
            ReplyEvent::Chunk { .. } => None,
            ReplyEvent::Done { .. } => Some(DeliveryOutcome::Delivered { reply: None }),
            ReplyEvent::Error { code, message } => {
                Some(DeliveryOutcome::Failed { code: code.clone(), detail: message.clone() })
            }
        };
        if let Some(outcome) = implied {
            self.delivery = DeliveryState::Implied(SentMessage::from_outcome(outcome));
        }
        Some(Ok(ReplyStreamItem::Event(word)))
    }
}
