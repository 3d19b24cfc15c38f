//! An inbox: every message once and in order, across reconnects.
//!
//! The inbox tracks the position of the last message. After a disconnect it reconnects, asks for
//! what follows that position, and drops messages it already returned.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use rialto_protocols::kit::sse::{Event, Parser};
use tokio::time::sleep;

use super::message::Message;
use super::origin_client;
use super::response::is_absent;
use super::retry::{RetryPolicy, random};
use super::server::{AckAnswer, Server, add_query};
use crate::call::CallError;

/// Maximum event size: a message is at most 64 KiB, and its event not much more.
const EVENT_BYTES_MAX: usize = 256 << 10;
/// Maximum size of a refusal in bytes.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// How long to wait before a reconnect, unless the server asks for another delay.
const WAIT: Duration = Duration::from_secs(1);
/// Minimum and maximum wait, whatever the server asks for.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Options for reading an inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxOptions {
    /// Start after this position; 0 is the very beginning. By default the server starts with the
    /// first unread message.
    pub after: Option<u64>,
    /// Keep every message unread until [`Inbox::ack`] acknowledges it.
    pub explicit_ack: bool,
}

/// An open inbox.
#[derive(Debug)]
pub struct Inbox {
    server: Server,
    explicit_ack: bool,
    /// The cursor to send at a reconnect. The server takes everything up to it as read.
    resume_from: Option<String>,
    /// The position of the last message that was returned or is buffered.
    last_position: u64,
    stream: Option<SseConnection>,
    ready: VecDeque<Result<Message, CallError>>,
    failures: u32,
    retry_wait: Duration,
    ended: bool,
}

#[derive(Debug)]
struct SseConnection {
    answer: Response,
    parser: Parser,
}

impl Inbox {
    /// Opens an inbox. Fails if the server cannot be reached now; later the inbox reconnects
    /// instead.
    pub(super) async fn open(server: Server, how: InboxOptions) -> Result<Self, CallError> {
        let mut inbox = Self {
            server,
            explicit_ack: how.explicit_ack,
            resume_from: how.after.map(|after| after.to_string()),
            last_position: how.after.unwrap_or(0),
            stream: None,
            ready: VecDeque::new(),
            failures: 0,
            retry_wait: WAIT,
            ended: false,
        };
        inbox.connect().await?;
        Ok(inbox)
    }

    /// Waits for the next message.
    ///
    /// Returns `None` after the server has closed the inbox permanently, which is first returned as
    /// an error: the key is no longer valid, or there is no such inbox. A message that cannot be
    /// read is an error too, and the next ones follow.
    pub async fn next(&mut self) -> Option<Result<Message, CallError>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.read_next().await {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }

    /// Acknowledges every message up to a position, so that they are not sent again.
    pub async fn ack(&mut self, up_to: u64) -> Result<AckAnswer, CallError> {
        let acked = self.server.ack(up_to).await?;
        if self.explicit_ack {
            self.resume_from = Some(acked.acked_to.to_string());
        }
        Ok(acked)
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
            self.handle_event(event);
        }
        // A reconnect would only return the same event.
        pushed.map_err(|error| CallError::Unreadable(error.to_string()))
    }

    async fn connect(&mut self) -> Result<(), CallError> {
        let mut url = self.server.url(&self.server.paths().inbox)?;
        add_query(&mut url, self.explicit_ack.then_some(("ack", "explicit")).into_iter());
        let mut request = self.server.client().streaming_request(Method::GET, url)?;
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(id) = &self.resume_from {
            request = request.header("last-event-id", id);
        }
        let answer = origin_client::send(request).await?;
        if !answer.status().is_success() {
            return Err(origin_client::read_refusal(answer, REFUSAL_BYTES_MAX).await);
        }
        self.stream = Some(SseConnection { answer, parser: Parser::new(EVENT_BYTES_MAX) });
        Ok(())
    }

    fn handle_event(&mut self, event: Event) {
        self.failures = 0;
        let position = event.id.as_deref().and_then(|id| id.parse::<u64>().ok());
        match event.event.as_str() {
            // The start of this connection. If it breaks before the first message, the next one
            // must not start later, and this is the only known position.
            "connected" if self.resume_from.is_none() => self.resume_from = event.id,
            "message" => {
                if position.is_some_and(|position| position <= self.last_position) {
                    return;
                }
                self.last_position = position.unwrap_or(self.last_position);
                // Resuming after a message acknowledges it, which explicit mode leaves to the
                // caller.
                if !self.explicit_ack && event.id.is_some() {
                    self.resume_from = event.id;
                }
                self.ready.push_back(Message::read(position, event.data));
            }
            _ => {}
        }
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

/// Whether this error means that the server will never give this inbox to this reader.
fn is_final(error: &CallError) -> bool {
    match error {
        _ if error.is_suspended() => false,
        CallError::Refused { status, .. } => {
            reqwest::StatusCode::from_u16(*status).is_ok_and(is_absent)
        }
        CallError::Unreadable(_) => true,
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => false,
    }
}
