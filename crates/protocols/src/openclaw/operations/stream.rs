//! Opens a stream.

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::WatchFilter;
use rialto_engine::keys::{Key, parse_bearer};

use super::{about, query};
use crate::adapter::caller::KnownCaller;
use crate::adapter::resume::{self, UNKNOWN_POSITION};
use crate::adapter::shutdown::Shutdown;
use crate::kit::last_event_id;
use crate::openclaw::OpenclawContext;
use crate::openclaw::auth::{calling_agent, listed_agent, read_uuid_param};
use crate::openclaw::delivery::stream::{AgentStream, StreamReader, watched_agents};
use crate::openclaw::errors::HandlerResult;
use crate::openclaw::wire::error::{Code, Failure};
use crate::openclaw::wire::stream::StreamPosition;

/// The most agents that one stream may name.
const WATCHED_MAX: usize = 100;

/// `GET /stream?watch=`.
pub async fn open_stream(
    State(context): State<OpenclawContext>,
    known: KnownCaller,
    stopping: Shutdown,
    headers: HeaderMap,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = query(&context, raw.as_deref())?;
    let refuse = |failure| about(&context, failure, None);
    let agent =
        context.engine.with_world(|world| calling_agent(known, world, query.text("agent_id")));
    let agent = agent.map_err(refuse)?;
    let watches = watch_filter(&context, agent, query.text("watch")).map_err(refuse)?;
    let from = start_position(&headers).map_err(refuse)?;
    if let Some(StreamPosition { position, line }) = from {
        let history = context.engine.subscribe_history();
        let reaches =
            |world: &World| world.inbox(agent).head >= position && *history.borrow() >= line;
        let reached = resume::has_position(&context.engine, reaches).await;
        reached.map_err(|_| refuse(Failure::new(Code::Conflict, UNKNOWN_POSITION)))?;
    }
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = shown.and_then(parse_bearer).and_then(Key::parse).map(|key| key.hash());
    let reader = StreamReader { agent, key };
    let feed = AgentStream::new(context.clone(), reader, watches, from, stopping);
    let bytes = stream::unfold(feed, async |mut feed| {
        let next = feed.next().await?;
        Some((Ok::<_, std::convert::Infallible>(next), feed))
    });
    let mut answer = Response::new(Body::from_stream(bytes));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// The agents that the stream watches besides its own.
fn watch_filter(
    context: &OpenclawContext,
    own: AgentId,
    text: Option<&str>,
) -> Result<WatchFilter, Failure> {
    let text = text.unwrap_or_default();
    if text == "all" {
        return Ok(WatchFilter::All);
    }
    let wrong = |says: String| Failure::with_violations(vec![says]);
    let mut others = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        if others.len() >= WATCHED_MAX {
            return Err(wrong(format!(
                "watch lists more than {WATCHED_MAX} agents; use watch=all"
            )));
        }
        let id = read_uuid_param(part, "watch")?;
        let agent = context.engine.with_world(|world| listed_agent(world, id));
        others.push(
            agent.ok_or_else(|| wrong(format!("watch names {id}, which is not a known agent")))?,
        );
    }
    Ok(watched_agents(own, others))
}

/// The position to start at: after the reader's last event, or at the first unread notice.
fn start_position(headers: &HeaderMap) -> Result<Option<StreamPosition>, Failure> {
    let header = headers.get(last_event_id::HEADER).map(HeaderValue::as_bytes);
    let wrong = "Last-Event-ID must be the id of an event of this stream, such as 7-42";
    let had = last_event_id::read(header, StreamPosition::read);
    had.map_err(|_| Failure::with_violations(vec![wrong.to_owned()]))
}
