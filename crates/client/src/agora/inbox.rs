//! An inbox: every envelope once and in order, each of them checked, however often the line breaks.
//!
//! What was read is known by its position. After a break the inbox connects again by itself, with a
//! new token if the old one has run out, asks for what comes after the last position, and drops what
//! it has had already.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use rialto_protocols::agora::BODY_MAX;
use rialto_protocols::agora::inbox;
use rialto_protocols::kit::sse::{Event, Parser};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::agent::Agent;
use super::answer;
use super::incoming::{Incoming, NotTrusted};
use crate::call::{CallError, retry_after};
use crate::key::Key;
use crate::line;
use crate::retry::{Retry, random};

/// The longest event that is read: the longest envelope, and its receipt.
const EVENT_BYTES_MAX: usize = BODY_MAX + (64 << 10);
/// The longest refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// How long to wait before connecting again, unless the server has other wishes.
const WAIT: Duration = Duration::from_secs(1);
/// The shortest and the longest wait, whatever the server wishes.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Where to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listen {
    /// After this position, 0 being the very beginning. Without it the server starts with what was
    /// never acknowledged.
    pub after: Option<u64>,
}

/// An open inbox.
#[derive(Debug)]
pub struct Inbox {
    agent: Agent,
    /// What to tell the server when connecting again.
    resume_from: Option<String>,
    /// The position of the last envelope that was given out or lies ready.
    heard_to: u64,
    /// Where the inbox ended when it was first opened; what stands before is from earlier.
    backlog_to: Option<u64>,
    stream: Option<Stream>,
    ready: VecDeque<Result<Incoming, NotTrusted>>,
    failures: u32,
    retry_wait: Duration,
    ended: bool,
}

#[derive(Debug)]
struct Stream {
    answer: Response,
    parser: Parser,
}

/// What ends an inbox, or one envelope of it.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// One envelope is not to be believed; those after it follow.
    #[error("{0}")]
    NotTrusted(#[from] NotTrusted),
    /// The server does not give this inbox to this agent any more.
    #[error("{0}")]
    Ended(#[from] CallError),
}

#[derive(Deserialize)]
struct Connected {
    #[serde(default)]
    resume_from: u64,
    #[serde(default)]
    backlog: u64,
}

impl Agent {
    /// Opens the inbox. Unlike later, a server that cannot be reached now is an error.
    pub async fn inbox(&self, how: Listen) -> Result<Inbox, CallError> {
        let mut inbox = Inbox {
            agent: self.clone(),
            resume_from: how.after.map(|after| after.to_string()),
            heard_to: how.after.unwrap_or(0),
            backlog_to: None,
            stream: None,
            ready: VecDeque::new(),
            failures: 0,
            retry_wait: WAIT,
            ended: false,
        };
        inbox.connect().await?;
        Ok(inbox)
    }
}

impl Inbox {
    /// The next envelope, waiting for it as long as it takes; `None` after the end, which is told as
    /// an error first. An envelope that is not to be believed is an error too, and the next follow.
    pub async fn next(&mut self) -> Option<Result<Incoming, Trouble>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item.map_err(Trouble::from));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.listen().await {
                self.ended = true;
                return Some(Err(error.into()));
            }
        }
    }

    /// Acknowledges everything up to a position: it does not come again.
    pub async fn ack(&self, up_to: u64) -> Result<inbox::Acked, CallError> {
        self.agent.ack(up_to).await
    }

    /// Whether an envelope was there before this inbox was opened.
    pub fn is_backlog(&self, position: u64) -> bool {
        self.backlog_to.is_some_and(|to| position <= to)
    }

    /// Puts envelopes back that somebody else is to read; they come next, in this order.
    pub fn put_back(&mut self, items: impl DoubleEndedIterator<Item = Incoming>) {
        for item in items.rev() {
            self.ready.push_front(Ok(item));
        }
    }

    /// Hears what comes next, or connects again. An error is the end.
    async fn listen(&mut self) -> Result<(), CallError> {
        let Some(stream) = &mut self.stream else {
            sleep(self.wait()).await;
            return match self.connect().await {
                Err(error) if is_final(&error) => Err(error),
                Err(_) => {
                    self.failures = self.failures.saturating_add(1);
                    Ok(())
                }
                Ok(()) => Ok(()),
            };
        };
        let Ok(Some(bytes)) = stream.answer.chunk().await else {
            // What was left of an unfinished event goes with the stream; it comes again.
            self.stream = None;
            return Ok(());
        };
        let mut events = Vec::new();
        let pushed = stream.parser.push(&bytes, &mut events);
        if let Some(ms) = stream.parser.retry_ms() {
            self.retry_wait = Duration::from_millis(ms).clamp(WAIT_MIN, WAIT_MAX);
        }
        for event in events {
            self.hear(&event);
        }
        // The same event would come again and again.
        pushed.map_err(|error| CallError::Unreadable(error.to_string()))
    }

    async fn connect(&mut self) -> Result<(), CallError> {
        let (agent, resume) = (&self.agent, self.resume_from.clone());
        let answer = agent.with_token(|token| open(agent, token, resume.clone())).await?;
        self.stream = Some(Stream { answer, parser: Parser::new(EVENT_BYTES_MAX) });
        Ok(())
    }

    fn hear(&mut self, event: &Event) {
        self.failures = 0;
        match event.event.as_str() {
            "connected" => {
                if let Ok(said) = serde_json::from_str::<Connected>(&event.data) {
                    let end = said.resume_from.saturating_add(said.backlog);
                    self.backlog_to.get_or_insert(end);
                }
                // A line that breaks before the first envelope has nothing else to say where it was.
                if self.resume_from.is_none() {
                    self.resume_from.clone_from(&event.id);
                }
            }
            "envelope" => {
                let position = event.id.as_deref().and_then(|id| id.parse::<u64>().ok());
                if position.is_some_and(|position| position <= self.heard_to) {
                    return;
                }
                if let Some(position) = position {
                    self.heard_to = position;
                    self.resume_from.clone_from(&event.id);
                }
                self.ready.push_back(self.read(position, &event.data));
            }
            _ => {}
        }
    }

    fn read(&self, position: Option<u64>, data: &str) -> Result<Incoming, NotTrusted> {
        let event: inbox::Event<'_> = serde_json::from_str(data)
            .map_err(|error| NotTrusted::Unreadable(error.to_string()))?;
        let receipt = event.receipt.map(RawValue::get);
        Incoming::vouched(event.envelope.get(), receipt, position, self.agent.reader())
    }

    /// How long to wait before the next connection: what the server wishes, and longer with every
    /// failure in a row.
    fn wait(&self) -> Duration {
        let retry = Retry { tries_max: u32::MAX, first: self.retry_wait * 2, longest: WAIT_MAX };
        retry.backoff(self.failures.saturating_add(1), random())
    }
}

async fn open(agent: &Agent, token: Key, resume: Option<String>) -> Result<Response, CallError> {
    let url = agent.server().at(&["inbox"]);
    let mut request = agent.server().line().with_key(token).stream(Method::GET, url)?;
    request = request.header(ACCEPT, "text/event-stream");
    if let Some(id) = resume {
        request = request.header("last-event-id", id);
    }
    let mut answer = line::send(request).await?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let (status, after) = (answer.status(), retry_after(answer.headers()));
    let body = line::body(&mut answer, REFUSAL_BYTES_MAX).await?;
    Err(answer::refusal(status, after, &body))
}

/// Whether a server that answered so will never give this inbox to this agent.
fn is_final(error: &CallError) -> bool {
    match error {
        _ if error.is_suspended() => false,
        CallError::Refused { status, .. } => {
            (300..500).contains(status) && !matches!(status, 408 | 429)
        }
        CallError::Unreadable(_) => true,
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => false,
    }
}
