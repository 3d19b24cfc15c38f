//! The inbox: its stream, its reader's acknowledgements, and the senders it has blocked (R90).

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::stream;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::world::World;

use super::{read_address, read_query, success};
use crate::adapter::caller::PresentedKey;
use crate::adapter::inbox_stream::StreamStart;
use crate::adapter::request::{BodyBytes, PathParam};
use crate::adapter::resume;
use crate::adapter::shutdown::Shutdown;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::query::Query;
use crate::kit::{ijson, last_event_id};
use crate::relay::RelayContext;
use crate::relay::auth::AgentCaller;
use crate::relay::delivery::inbox_stream::{EventEncoder, RelayInboxStream};
use crate::relay::errors::{
    self, ErrorResponse, HandlerResult, engine_error, error_response, malformed_error,
};
use crate::relay::wire::error::ACK_EXAMPLE;
use crate::relay::wire::response::write_json_string;
use crate::relay::{ID, InvalidBody, translate};

/// `GET /agent/inbox`: all notices, as they come.
pub async fn open_inbox(
    State(context): State<RelayContext>,
    by: AgentCaller,
    PresentedKey(key): PresentedKey,
    stopping: Shutdown,
    headers: HeaderMap,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let key = key.ok_or_else(|| error_response(&context, errors::unauthorized()))?;
    let query = read_query(&context, raw.as_deref())?;
    let from = from(&headers, &query).map_err(|bad| malformed_error(&context, bad))?;
    let from = match from {
        StreamStart::Position(position) => {
            let reaches = |world: &World| world.inbox(by.id).head >= position;
            let reached = resume::has_position(&context.engine, reaches).await;
            if reached.map_err(|_| error_response(&context, errors::unknown_position()))? {
                // A reader that resumes from a position need not acknowledge it separately (R61).
                acked(&context, by, position).await?;
                from
            } else {
                // A position beyond this inbox's head belongs to another inbox.
                StreamStart::Unread
            }
        }
        other => other,
    };
    // Opening the inbox counts as activity, and the pings keep the agent online.
    context.engine.record_seen(by.id);
    let feed = RelayInboxStream::new(context, by.id, EventEncoder(key.hash()), from, stopping);
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

/// Where to start: after what the reader has, or where it asks to.
fn from(headers: &HeaderMap, query: &Query) -> Result<StreamStart, Malformed> {
    let wrong = |field: &str| Malformed {
        field: field.to_owned(),
        message: format!("{field} must be the id of an event of this inbox: digits, such as 42"),
    };
    let header = headers.get(last_event_id::HEADER).map(HeaderValue::as_bytes);
    let had = last_event_id::read(header, last_event_id::parse_position);
    if let Some(position) = had.map_err(|_| wrong("Last-Event-ID"))? {
        return Ok(StreamStart::Position(position));
    }
    if let Some(after) = query.integer("after", 0..=i64::MAX)? {
        return Ok(StreamStart::Position(after.unsigned_abs()));
    }
    match query.text("ack") {
        None => Ok(StreamStart::Unread),
        Some("explicit") => Ok(StreamStart::Unacknowledged),
        Some(_) => Err(Malformed {
            field: "?ack".to_owned(),
            message: "ack must be explicit, or be left out".to_owned(),
        }),
    }
}

async fn acked(context: &RelayContext, by: AgentCaller, up_to: u64) -> Result<u64, ErrorResponse> {
    if context.engine.with_world(|world| world.inbox(by.id).acked) >= up_to && by.once.is_none() {
        return Ok(context.engine.with_world(|world| world.inbox(by.id).acked));
    }
    let order = Command::Ack { agent: by.id, up_to };
    match context.engine.run_once(order, by.once).await {
        Ok(ran) => Ok(match ran.answer {
            Answer::Position(acked) => acked,
            _ => context.engine.with_world(|world| world.inbox(by.id).acked),
        }),
        Err(failure) => Err(engine_error(context, failure)),
    }
}

/// `POST /agent/inbox/ack`: everything up to this position has arrived.
pub async fn ack(
    State(context): State<RelayContext>,
    by: AgentCaller,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let bad =
        |bad: Malformed| error_response(&context, InvalidBody::from(bad).with_example(ACK_EXAMPLE));
    let json = ijson::read(&body).map_err(|unreadable| bad(unreadable.into()))?;
    let f = Fields::read(&json, "").map_err(bad)?;
    let up_to = f.integer("up_to").and_then(|up_to| f.required("up_to", up_to)).map_err(bad)?;
    let up_to =
        u64::try_from(up_to).map_err(|_| bad(f.malformed("up_to", "must not be negative")))?;
    let acked_to = acked(&context, by, up_to).await?;
    let head = context.engine.with_world(|world| world.inbox(by.id).head);
    let pending = head.saturating_sub(acked_to);
    Ok(success(&context, 200, |out| {
        out.extend_from_slice(
            format!(r#"{{"acked_to":{acked_to},"pending":{pending}}}"#).as_bytes(),
        );
    }))
}

/// `GET /agent/blocks`: the blocked ids.
pub async fn list_blocked(State(context): State<RelayContext>, by: AgentCaller) -> HandlerResult {
    Ok(blocked_response(&context, by.id))
}

/// `PUT /agent/blocks/{id}`: their messages are refused from now on.
pub async fn block(
    State(context): State<RelayContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set_blocked(&context, by, &id, true).await
}

/// `DELETE /agent/blocks/{id}`: their messages are accepted again.
pub async fn unblock(
    State(context): State<RelayContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    set_blocked(&context, by, &id, false).await
}

async fn set_blocked(
    context: &RelayContext,
    by: AgentCaller,
    id: &str,
    is_blocked: bool,
) -> HandlerResult {
    // An agent that has left may come back, so it can be blocked as well.
    let other = read_address(context, id).and_then(|address| {
        context.engine.with_world(|world| world.agent_by_alias(ID, address.canonical()))
    });
    let other = other.ok_or_else(|| error_response(context, errors::agent_not_found()))?;
    let order = Command::SetBlocked { agent: by.id, other, blocked: is_blocked };
    context
        .engine
        .run_once(order, by.once)
        .await
        .map_err(|failure| engine_error(context, failure))?;
    Ok(blocked_response(context, by.id))
}

fn blocked_response(context: &RelayContext, agent: AgentId) -> Response {
    success(context, 200, |out| {
        context.engine.with_world(|world| {
            let ids = world.agent(agent).map_or(&[][..], |agent| &agent.blocked);
            out.push(b'[');
            for (at, id) in ids.iter().enumerate() {
                out.extend_from_slice(if at == 0 { b"" } else { b"," });
                write_json_string(out, &translate::address_of(world, Some(*id)));
            }
            out.push(b']');
        });
    })
}
