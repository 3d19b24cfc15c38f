//! Event streams over Server-Sent Events.
//!
//! An agent's stream is its inbox, the operator's is the hub's history. Ids are positions there, so
//! `Last-Event-ID` resumes without gap or repeat, also after a restart.

mod event_stream;
mod history;
mod source;

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_core::world::World;
use rialto_engine::{Engine, Failure};
use rialto_protocols::adapter::shutdown::Shutdown;
use rialto_protocols::adapter::{HubContext, resume};
use rialto_protocols::kit::api_doc::AnyOf;
use rialto_protocols::kit::last_event_id;
use tokio::sync::watch;

use super::auth::KeyHolder;
use super::errors;
use super::inbox;
use super::page;
use super::problem::Problem;
use super::response::HandlerResult;
use crate::v1::notices::NoticeView;
use crate::v1::params::Position;
use event_stream::EventStream;
use history::LineView;
use source::EventSource;

/// The data of an event: a notice for an agent, a line of the history for the operator.
pub type EventData = AnyOf<NoticeView, LineView>;

/// Tells proxies not to buffer this response.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

rialto_protocols::request_members! {
    /// Where a stream starts.
    EventQuery {
        /// The last id received; `Last-Event-ID` takes precedence.
        after: Option<Position>,
    }
}

/// `GET /v1/events`: starts after `Last-Event-ID` or `?after=`. With neither, an agent gets its
/// unacknowledged notices and the operator gets new events.
pub async fn stream_events(
    State(context): State<HubContext>,
    known: KeyHolder,
    stopping: Shutdown,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> HandlerResult {
    let source = EventSource::for_caller(&known.key);
    let query = page::parse_query(raw.as_deref(), EventQuery::MEMBERS)?;
    let resumed = match parse_last_event_id(&headers)? {
        Some(last) => Some(last),
        None => inbox::parse_after(&query)?,
    };
    if let Some(last) = resumed {
        let reaches = |world: &World| source.newest_id_in(world) >= last;
        let reached = resume::has_position(&context.engine, reaches).await;
        if !reached.map_err(|_| unknown_position())? {
            // Waiting for that id would hide all events before it.
            let head = source.newest_id(&context.engine);
            let text = format!("Last-Event-ID is larger than the newest event id, {head}");
            return Err(Problem::invalid_field("Last-Event-ID", text));
        }
    }
    let after = resumed.unwrap_or_else(|| source.default_start(&context.engine));
    let feed = EventStream::new(context.engine.clone(), known.key, source, after, stopping);
    Ok(stream_response(feed))
}

fn unknown_position() -> Problem {
    let problem = Problem::new(&errors::WRONG_STATE, resume::UNKNOWN_POSITION);
    Problem { field: Some("Last-Event-ID".to_owned()), ..problem }
}

/// The last event id that a reconnecting client received.
fn parse_last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let header = headers.get(last_event_id::HEADER).map(HeaderValue::as_bytes);
    let wrong =
        |_| Problem::invalid_field("Last-Event-ID", "Last-Event-ID must be an id of this stream");
    last_event_id::read(header, last_event_id::parse_position).map_err(wrong)
}

fn stream_response(feed: EventStream) -> Response {
    // The stream is pulled: if its reader does not read, nothing is read from the store.
    let parts = stream::unfold(feed, |mut feed| async move {
        let bytes = feed.next_chunk().await?;
        Some((Ok::<_, Infallible>(bytes), feed))
    });
    let mut answer = Response::new(Body::from_stream(parts));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// Reads the hub's history inside its process, line by line as it grows.
pub struct HistoryReader {
    engine: Engine,
    updates: watch::Receiver<u64>,
    after: u64,
}

impl HistoryReader {
    /// Starts with the next line.
    pub fn from_now(engine: Engine) -> Self {
        let grows = engine.subscribe_history();
        let after = EventSource::History.newest_id(&engine);
        Self { engine, updates: grows, after }
    }

    /// The next lines, at most `limit`, in the format of the operator's stream; waits until there
    /// are some.
    pub async fn next_lines(&mut self, limit: usize) -> Result<Vec<String>, Failure> {
        loop {
            self.updates.borrow_and_update();
            let events = EventSource::History.load_page(&self.engine, self.after, limit).await?;
            if let Some(last) = events.last() {
                self.after = last.id;
                return Ok(events.into_iter().map(|event| event.data).collect());
            }
            self.updates.changed().await.map_err(|_| Failure::Unavailable)?;
        }
    }
}
