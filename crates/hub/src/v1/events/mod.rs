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
use rialto_engine::{Engine, Failure};
use rialto_protocols::adapter::Floor;
use rialto_protocols::adapter::shutdown::Stopping;
use rialto_protocols::kit::last_event_id;
use tokio::sync::watch;

use super::response::Answered;
use super::inbox;
use super::page;
use super::problem::Problem;
use super::auth::Known;
use event_stream::Feed;
use source::Source;

/// Tells proxies not to buffer this response.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// `GET /v1/events`: starts after `Last-Event-ID` or `?after=`. With neither, an agent gets its
/// unacknowledged notices and the operator gets new events.
pub async fn open(
    State(floor): State<Floor>,
    known: Known,
    stopping: Stopping,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Answered {
    let source = Source::of(&known.proven);
    let query = page::query(raw.as_deref(), &["after"])?;
    let resumed = match had(&headers)? {
        Some(last) => Some(last),
        None => inbox::position(&query)?,
    };
    let head = source.head(&floor.engine);
    if resumed.is_some_and(|last| last > head) {
        // Waiting for that id would hide all events before it.
        let text = format!("Last-Event-ID is larger than the newest event id, {head}");
        return Err(Problem::field("Last-Event-ID", text));
    }
    let after = resumed.unwrap_or_else(|| source.start(&floor.engine));
    let feed = Feed::new(floor.engine.clone(), known.proven, source, after, stopping);
    Ok(streamed(feed))
}

/// The last event id that a reconnecting client received.
fn had(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let header = headers.get(last_event_id::NAME).map(HeaderValue::as_bytes);
    let wrong = |_| Problem::field("Last-Event-ID", "Last-Event-ID must be an id of this stream");
    last_event_id::read(header, last_event_id::position).map_err(wrong)
}

fn streamed(feed: Feed) -> Response {
    // The stream is pulled: if its reader does not read, nothing is read from the store.
    let parts = stream::unfold(feed, |mut feed| async move {
        let bytes = feed.next().await?;
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
pub struct History {
    engine: Engine,
    grows: watch::Receiver<u64>,
    after: u64,
}

impl History {
    /// Starts with the next line.
    pub fn from_now(engine: Engine) -> Self {
        let grows = engine.lines();
        let after = Source::History.head(&engine);
        Self { engine, grows, after }
    }

    /// The next lines, at most `limit`, in the format of the operator's stream; waits until there
    /// are some.
    pub async fn next(&mut self, limit: usize) -> Result<Vec<String>, Failure> {
        loop {
            self.grows.borrow_and_update();
            let events = Source::History.page(&self.engine, self.after, limit).await?;
            if let Some(last) = events.last() {
                self.after = last.id;
                return Ok(events.into_iter().map(|event| event.data).collect());
            }
            self.grows.changed().await.map_err(|_| Failure::Down)?;
        }
    }
}
