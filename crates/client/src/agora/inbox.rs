//! An inbox: every envelope once, in order and verified, across reconnects.
//!
//! The inbox tracks the position of the last envelope. After a disconnect it reconnects, with a new
//! token if the old one has expired, asks for what follows that position, and drops envelopes it
//! already returned.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use rialto_protocols::agora::BODY_MAX;
use rialto_protocols::agora::wire::responses;
use rialto_protocols::kit::sse::{Event, Parser};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::agent::Agent;
use super::incoming::{IncomingEnvelope, TrustError};
use super::response;
use crate::call::{CallError, retry_after};
use crate::key::Key;
use crate::origin_client;
use crate::retry::{RetryPolicy, random};

/// Maximum event size: the longest envelope and its receipt.
const EVENT_BYTES_MAX: usize = BODY_MAX + (64 << 10);
/// Maximum size of a refusal in bytes.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// How long to wait before a reconnect, unless the server asks for another delay.
const WAIT: Duration = Duration::from_secs(1);
/// Minimum and maximum wait, whatever the server asks for.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Where to start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxOptions {
    /// After this position; 0 is the very beginning. By default the server starts with the first
    /// envelope that is not acknowledged.
    pub after: Option<u64>,
}

/// An open inbox.
#[derive(Debug)]
pub struct Inbox {
    agent: Agent,
    /// The cursor to send at a reconnect.
    resume_from: Option<String>,
    /// The position of the last envelope that was returned or is buffered.
    last_position: u64,
    /// The end of the inbox when it was first opened; envelopes up to it are from before.
    backlog_to: Option<u64>,
    stream: Option<SseConnection>,
    ready: VecDeque<Result<IncomingEnvelope, TrustError>>,
    failures: u32,
    retry_wait: Duration,
    ended: bool,
}

#[derive(Debug)]
struct SseConnection {
    answer: Response,
    parser: Parser,
}

/// An error that ends the inbox, or affects one envelope.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    /// One envelope cannot be trusted; the following ones still arrive.
    #[error("{0}")]
    NotTrusted(#[from] TrustError),
    /// The server no longer gives this agent its inbox.
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
    /// Opens the inbox. Fails if the server cannot be reached now; later the inbox reconnects
    /// instead.
    pub async fn inbox(&self, how: InboxOptions) -> Result<Inbox, CallError> {
        let mut inbox = Inbox {
            agent: self.clone(),
            resume_from: how.after.map(|after| after.to_string()),
            last_position: how.after.unwrap_or(0),
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
    /// Waits for the next envelope; `None` after the end, which is first returned as an error. An
    /// envelope that cannot be trusted is an error too, and the next ones follow.
    pub async fn next(&mut self) -> Option<Result<IncomingEnvelope, InboxError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item.map_err(InboxError::from));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.read_next().await {
                self.ended = true;
                return Some(Err(error.into()));
            }
        }
    }

    /// Acknowledges everything up to a position, so that it is not sent again.
    pub async fn ack(&self, up_to: u64) -> Result<responses::AckAnswer, CallError> {
        self.agent.ack(up_to).await
    }

    /// Whether an envelope was there before this inbox was opened.
    pub fn is_backlog(&self, position: u64) -> bool {
        self.backlog_to.is_some_and(|to| position <= to)
    }

    /// Puts envelopes back for another reader; they come next, in this order.
    pub fn put_back(&mut self, items: impl DoubleEndedIterator<Item = IncomingEnvelope>) {
        for item in items.rev() {
            self.ready.push_front(Ok(item));
        }
    }

    /// Reads the next part of the stream, or reconnects. An error ends the inbox.
    async fn read_next(&mut self) -> Result<(), CallError> {
        let Some(stream) = &mut self.stream else {
            sleep(self.reconnect_delay()).await;
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
            // The rest of an unfinished event is dropped with the connection; the server sends it
            // again.
            self.stream = None;
            return Ok(());
        };
        let mut events = Vec::new();
        let pushed = stream.parser.push(&bytes, &mut events);
        if let Some(ms) = stream.parser.retry_ms() {
            self.retry_wait = Duration::from_millis(ms).clamp(WAIT_MIN, WAIT_MAX);
        }
        for event in events {
            self.handle_event(&event);
        }
        // A reconnect would only return the same event.
        pushed.map_err(|error| CallError::Unreadable(error.to_string()))
    }

    async fn connect(&mut self) -> Result<(), CallError> {
        let (agent, resume) = (&self.agent, self.resume_from.clone());
        let answer = agent.with_token(|token| open(agent, token, resume.clone())).await?;
        self.stream = Some(SseConnection { answer, parser: Parser::new(EVENT_BYTES_MAX) });
        Ok(())
    }

    fn handle_event(&mut self, event: &Event) {
        self.failures = 0;
        match event.event.as_str() {
            "connected" => {
                if let Ok(said) = serde_json::from_str::<Connected>(&event.data) {
                    let end = said.resume_from.saturating_add(said.backlog);
                    self.backlog_to.get_or_insert(end);
                }
                // If the connection breaks before the first envelope, this is the only known
                // position.
                if self.resume_from.is_none() {
                    self.resume_from.clone_from(&event.id);
                }
            }
            "envelope" => {
                let position = event.id.as_deref().and_then(|id| id.parse::<u64>().ok());
                if position.is_some_and(|position| position <= self.last_position) {
                    return;
                }
                if let Some(position) = position {
                    self.last_position = position;
                    self.resume_from.clone_from(&event.id);
                }
                self.ready.push_back(self.read(position, &event.data));
            }
            _ => {}
        }
    }

    fn read(&self, position: Option<u64>, data: &str) -> Result<IncomingEnvelope, TrustError> {
        let event: responses::InboxEvent<'_> = serde_json::from_str(data)
            .map_err(|error| TrustError::Unreadable(error.to_string()))?;
        let receipt = event.receipt.map(RawValue::get);
        IncomingEnvelope::verify_receipt(
            event.envelope.get(),
            receipt,
            position,
            self.agent.trust_context(),
        )
    }

    /// How long to wait before the next connection: at least what the server asks for, and longer
    /// with each failure in a row.
    fn reconnect_delay(&self) -> Duration {
        let retry = RetryPolicy {
            max_attempts: u32::MAX,
            initial_delay: self.retry_wait * 2,
            max_delay: WAIT_MAX,
        };
        retry.backoff(self.failures.saturating_add(1), random())
    }
}

async fn open(agent: &Agent, token: Key, resume: Option<String>) -> Result<Response, CallError> {
    let url = agent.server().url(&["inbox"]);
    let mut request =
        agent.server().client().with_key(token).streaming_request(Method::GET, url)?;
    request = request.header(ACCEPT, "text/event-stream");
    if let Some(id) = resume {
        request = request.header("last-event-id", id);
    }
    let mut answer = origin_client::send(request).await?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let (status, after) = (answer.status(), retry_after(answer.headers()));
    let body = origin_client::read_body(&mut answer, REFUSAL_BYTES_MAX).await?;
    Err(response::parse_refusal(status, after, &body))
}

/// Whether this error means that the server will never give this inbox to this agent.
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
