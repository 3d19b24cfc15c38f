//! The hub's event stream: all events in order, across reconnects.
//!
//! A separate task reads the connection, so that waiting for the next event is cancel-safe. After a
//! disconnect it reconnects and asks for what follows the last event.

use reqwest::Response;
use rialto_protocols::openclaw::BODY_MAX;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::agent::Agent;
use super::event::{self, Event};
use super::response::parse_refusal;
use crate::call::CallError;
use crate::event_reader::EventReader;
use crate::origin_client::add_query;

/// Maximum event size: the longest message, and what the hub adds to it.
const EVENT_BYTES_MAX: usize = BODY_MAX + (64 << 10);
/// Maximum number of events to read ahead.
const AHEAD_MAX: usize = 64;

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
        let first = self.open_stream(watch, None).await?;
        let (sender, events) = mpsc::channel(AHEAD_MAX);
        let reading = tokio::spawn(read_events(self.clone(), watch.clone(), first, sender));
        Ok(EventStream { events, reading })
    }

    async fn open_stream(
        &self,
        watch: &WatchScope,
        resume_from: Option<&str>,
    ) -> Result<Response, CallError> {
        let mut url = self.server().url(&["stream"]);
        add_query(&mut url, [("watch", watch.query())]);
        self.server().client().open_events(url, resume_from, parse_refusal).await
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

/// Reads events until the stream ends or its receiver is dropped.
async fn read_events(
    agent: Agent,
    watch: WatchScope,
    first: Response,
    events: mpsc::Sender<Result<Event, StreamError>>,
) {
    let mut reader = EventReader::new(first, EVENT_BYTES_MAX);
    // The cursor to send at a reconnect.
    let mut resume_from = None;
    loop {
        let event = match reader.next(|| agent.open_stream(&watch, resume_from.as_deref())).await {
            Ok(event) => event,
            Err(error) => {
                let _ = events.send(Err(error.into())).await;
                return;
            }
        };
        if let Some(read) = event::read(&event.event, &event.data)
            && events.send(read.map_err(StreamError::Unreadable)).await.is_err()
        {
            return;
        }
        resume_from = event.id.or(resume_from);
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
