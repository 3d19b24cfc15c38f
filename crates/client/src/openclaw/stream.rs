//! The hub's event stream: all events in order, across reconnects.
//!
//! A separate task reads the connection, so that waiting for the next event is cancel-safe. After a
//! disconnect it reconnects and asks for what follows the last event.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use rialto_protocols::kit::sse::Parser;
use rialto_protocols::openclaw::BODY_MAX;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use uuid::Uuid;

use super::agent::Agent;
use super::event::{self, Event};
use super::response;
use crate::call::{CallError, retry_after};
use crate::origin_client;
use crate::retry::{RetryPolicy, random};

/// Maximum event size: the longest message, and what the hub adds to it.
const EVENT_BYTES_MAX: usize = BODY_MAX + (64 << 10);
/// Maximum size of a refusal in bytes.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// Maximum number of events to read ahead.
const AHEAD_MAX: usize = 64;
/// How long to wait before a reconnect, unless the hub asks for another delay.
const WAIT: Duration = Duration::from_secs(1);
/// Minimum and maximum wait, whatever the hub asks for.
const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Which agents' changes to receive besides one's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WatchScope {
    /// No others.
    #[default]
    OwnOnly,
    /// Those of some agents.
    Agents(Vec<Uuid>),
    /// Those of all agents.
    All,
}

/// An error that ends the stream, or affects one event.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// One event cannot be parsed; the following ones still arrive.
    #[error("{0}")]
    Unreadable(String),
    /// The hub no longer gives this agent a stream.
    #[error("{0}")]
    Ended(#[from] CallError),
}

/// An open stream.
#[derive(Debug)]
pub struct EventStream {
    events: mpsc::Receiver<Result<Event, StreamError>>,
    reading: JoinHandle<()>,
}

impl Agent {
    /// Opens the stream. Fails if the hub cannot be reached now; later the stream reconnects
    /// instead.
    pub async fn stream(&self, watch: &WatchScope) -> Result<EventStream, CallError> {
        let (agent, watch) = (self.clone(), watch.clone());
        let reader =
            StreamReader { agent, watch, resume_from: None, failures: 0, retry_wait: WAIT };
        let first = reader.connect().await?;
        let (send, events) = mpsc::channel(AHEAD_MAX);
        let reading = tokio::spawn(async move { reader.run(first, &send).await });
        Ok(EventStream { events, reading })
    }
}

impl EventStream {
    /// Waits for the next event; `None` after the end, which is first returned as an error.
    /// Cancel-safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Result<Event, StreamError>> {
        self.events.recv().await
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// The receiver was dropped, so reading stops.
struct ReceiverClosed;

struct StreamReader {
    agent: Agent,
    watch: WatchScope,
    /// The cursor to send at a reconnect.
    resume_from: Option<String>,
    failures: u32,
    retry_wait: Duration,
}

type EventSender = mpsc::Sender<Result<Event, StreamError>>;

impl StreamReader {
    async fn run(mut self, first: Response, to: &EventSender) {
        let mut open = first;
        loop {
            if self.read(open, to).await.is_err() {
                return;
            }
            open = loop {
                sleep(self.wait()).await;
                match self.connect().await {
                    Ok(answer) => break answer,
                    Err(error) if is_final(&error) => {
                        let _ = to.send(Err(error.into())).await;
                        return;
                    }
                    Err(_) => self.failures = self.failures.saturating_add(1),
                }
            };
        }
    }

    /// Reads until the connection breaks. The rest of an unfinished event is sent again.
    async fn read(&mut self, mut open: Response, to: &EventSender) -> Result<(), ReceiverClosed> {
        let mut parser = Parser::new(EVENT_BYTES_MAX);
        while let Ok(Some(bytes)) = open.chunk().await {
            let mut events = Vec::new();
            let pushed = parser.push(&bytes, &mut events);
            if let Some(ms) = parser.retry_ms() {
                self.retry_wait = Duration::from_millis(ms).clamp(WAIT_MIN, WAIT_MAX);
            }
            for event in events {
                self.failures = 0;
                if let Some(read) = event::read(&event.event, &event.data) {
                    to.send(read.map_err(StreamError::Unreadable))
                        .await
                        .map_err(|_| ReceiverClosed)?;
                }
                if event.id.is_some() {
                    self.resume_from = event.id;
                }
            }
            if let Err(error) = pushed {
                // A reconnect would only return the same event.
                let ended = CallError::Unreadable(error.to_string());
                let _ = to.send(Err(ended.into())).await;
                return Err(ReceiverClosed);
            }
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Response, CallError> {
        let server = self.agent.server();
        let mut url = server.url(&["stream"]);
        if let Some(watch) = self.watch.query() {
            url.query_pairs_mut().append_pair("watch", &watch);
        }
        let mut request = server.client().streaming_request(Method::GET, url)?;
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(id) = &self.resume_from {
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

    /// How long to wait before the next connection: at least what the hub asks for, and longer with
    /// each failure in a row.
    fn wait(&self) -> Duration {
        let retry = RetryPolicy {
            max_attempts: u32::MAX,
            initial_delay: self.retry_wait * 2,
            max_delay: WAIT_MAX,
        };
        retry.backoff(self.failures.saturating_add(1), random())
    }
}

impl WatchScope {
    fn query(&self) -> Option<String> {
        match self {
            Self::OwnOnly => None,
            Self::Agents(ids) => {
                let ids: Vec<_> = ids.iter().map(Uuid::to_string).collect();
                Some(ids.join(","))
            }
            Self::All => Some("all".to_owned()),
        }
    }
}

/// Whether this error means that the hub will never give this stream to this agent.
fn is_final(error: &CallError) -> bool {
    match error {
        _ if error.is_suspended() => false,
        CallError::Refused { status, retryable, .. } => {
            !retryable && (300..500).contains(status) && !matches!(status, 408 | 429)
        }
        CallError::Unreadable(_) => true,
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => false,
    }
}
