//! Inbox operations: an open stream and its encoders, pages, and acknowledgements.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::notice::Notice;
use rialto_core::world::World;

use super::{json_response, malformed, query};
use crate::adapter::inbox_stream::{InboxEncoder, InboxStream, JobsById, StreamStart, load_jobs};
use crate::adapter::request::BodyBytes;
use crate::adapter::resume::{self, UNKNOWN_POSITION};
use crate::adapter::shutdown::Shutdown;
use crate::agora::ID;
use crate::agora::auth::{InboxReader, InboxToken};
use crate::agora::delivery::notice_envelope_among;
use crate::agora::errors::{self, ErrorResponse, HandlerResult};
use crate::agora::wire::envelope::read_json;
use crate::agora::wire::error::Failure;
use crate::agora::wire::responses::{self, Ack, AckAnswer};
use crate::agora::{AgoraContext, AgoraState};
use crate::kit::object::ObjectWriter;
use crate::kit::{last_event_id, sse};

/// The default number of envelopes on one page.
const PAGE: i64 = 50;
const PAGE_MAX: i64 = 200;
/// A page ends with the envelope that reaches this many bytes; until then a few are read at a time.
const PAGE_BYTES: usize = 1 << 20;
const STEP: usize = 8;

/// `GET /inbox`: streams envelopes as they arrive.
pub async fn open_inbox(
    State(context): State<AgoraContext>,
    InboxReader(token): InboxReader,
    stopping: Shutdown,
    headers: HeaderMap,
) -> HandlerResult {
    let refuse = |failure| ErrorResponse::new(&context, failure);
    let mut from = from(&headers).map_err(refuse)?;
    if let StreamStart::Position(position) = from {
        let reaches = |world: &World| world.inbox(token.agent).head >= position;
        let reached = resume::has_position(&context.engine, reaches).await;
        // A position past the head belongs to another inbox; it is ignored.
        if !reached.map_err(|_| refuse(unknown_position()))? {
            from = StreamStart::Unacknowledged;
        }
    }
    let feed = InboxStream::new(context, token.agent, EventEncoder(token), from, stopping);
    let bytes = stream::unfold(feed, async |mut feed| {
        let next = feed.next().await?;
        Some((Ok::<_, Infallible>(next), feed))
    });
    let mut answer = Response::new(Body::from_stream(bytes));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// 409: no node of this hub has sent such an event.
fn unknown_position() -> Failure {
    let wrong = Failure::bad_field("/Last-Event-ID", UNKNOWN_POSITION);
    Failure { http_status: 409, ..wrong }
}

/// The position to start at: after the reader's last event, or at the first unacknowledged
/// envelope.
fn from(headers: &HeaderMap) -> Result<StreamStart, Failure> {
    let header = headers.get(last_event_id::HEADER).map(HeaderValue::as_bytes);
    let had = last_event_id::read(header, last_event_id::parse_position);
    let wrong = "must be the id of an event of this inbox: digits, such as 42";
    let had = had.map_err(|_| Failure::bad_field("/Last-Event-ID", wrong))?;
    Ok(had.map_or(StreamStart::Unacknowledged, StreamStart::Position))
}

/// `GET /messages`: a page of the inbox.
pub async fn list_messages(
    State(context): State<AgoraContext>,
    InboxReader(token): InboxReader,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = query(&context, raw.as_deref())?;
    let bad = |bad| malformed(&context, bad);
    let after = query.integer("after", 0..=i64::MAX).map_err(bad)?.map(i64::unsigned_abs);
    let limit = query.integer("limit", 1..=PAGE_MAX).map_err(bad)?.unwrap_or(PAGE);
    let acked = context.engine.with_world(|world| world.inbox(token.agent).acked);
    let mut after = after.unwrap_or(acked);
    let limit = usize::try_from(limit).unwrap_or(1);
    let failed = |failure| ErrorResponse::new(&context, errors::from_engine(&failure));
    let (mut items, mut bytes, mut looked, mut read) = (Vec::new(), 0, 0, false);
    while looked < limit && bytes < PAGE_BYTES {
        let step = STEP.min(limit - looked);
        let notices =
            context.engine.load_notices(token.agent, after, step).await.map_err(failed)?;
        let notices: Vec<_> = notices.into_iter().map(Arc::new).collect();
        let jobs = load_jobs(&context.engine, &notices).await.map_err(failed)?;
        for notice in &notices {
            let outbound = notice_envelope_among(&context, notice, &jobs);
            (after, read) = (notice.position, true);
            if let Some(outbound) = outbound {
                items.push(responses::write_message(
                    after,
                    &outbound.envelope,
                    Some(&outbound.receipt),
                ));
                bytes += outbound.envelope.len() + outbound.receipt.len();
            }
            if bytes >= PAGE_BYTES {
                break;
            }
        }
        looked += step;
        if notices.is_empty() {
            break;
        }
    }
    // Reading past the end does not mark what comes before it as read.
    if read {
        context.engine.record_presented(token.agent, after);
    }
    Ok(json_response(200, responses::write_page(&items, after)))
}

/// `POST /inbox/ack`: acknowledges everything up to a position.
pub async fn ack(
    State(context): State<AgoraContext>,
    InboxReader(token): InboxReader,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let read = |body| Ack::read(&read_json(body)?);
    let Ack { up_to } = read(&body).map_err(|failure| ErrorResponse::new(&context, failure))?;
    let acked_to = acked(&context, token.agent, up_to).await?;
    let head = context.engine.with_world(|world| world.inbox(token.agent).head);
    let told = AckAnswer { acked_to, pending: head.saturating_sub(acked_to) };
    Ok(json_response(200, serde_json::to_string(&told).unwrap_or_default()))
}

async fn acked(context: &AgoraContext, agent: AgentId, up_to: u64) -> Result<u64, ErrorResponse> {
    let acked = context.engine.with_world(|world| world.inbox(agent).acked);
    if acked >= up_to {
        return Ok(acked);
    }
    match context.engine.run(Command::Ack { agent, up_to }).await {
        Ok(Answer::Position(acked)) => Ok(acked),
        Ok(_) => Ok(context.engine.with_world(|world| world.inbox(agent).acked)),
        Err(failure) => Err(ErrorResponse::new(context, errors::from_engine(&failure))),
    }
}

/// Encodes SSE events for a reader with a token.
pub struct EventEncoder(pub InboxToken);

/// Encodes frames for a reader on a WebSocket that it opened with a HELLO: lines of JSON, a receipt
/// before each envelope.
pub struct FrameEncoder;

fn is_listed(context: &AgoraContext, agent: AgentId) -> bool {
    context.engine.with_world(|world| world.may_act(agent))
}

impl InboxEncoder for EventEncoder {
    type State = AgoraState;

    const NEEDS_JOBS: bool = true;

    fn is_authorized(&self, context: &AgoraContext, agent: AgentId) -> bool {
        context.engine.now() < self.0.expires_at && is_listed(context, agent)
    }

    fn encode_connected(&self, context: &AgoraContext, agent: AgentId, after: u64) -> Bytes {
        let (did, head) = context.engine.with_world(|world| {
            let did = world.alias_of(agent, ID).unwrap_or_default().to_owned();
            (did, world.inbox(agent).head)
        });
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let data = ObjectWriter::new()
            .text("id", &did)
            .integer("resume_from", number(after))
            .integer("backlog", number(head.saturating_sub(after)))
            .finish();
        let mut out = b"retry: 2000\n".to_vec();
        sse::write_frame(&mut out, Some(&after.to_string()), "connected", &data);
        out.into()
    }

    fn encode_ping(&self) -> Bytes {
        let mut out = Vec::with_capacity(8);
        sse::write_comment(&mut out, "ping");
        out.into()
    }

    fn encode_notice(
        &self,
        out: &mut Vec<u8>,
        context: &AgoraContext,
        notice: &Notice,
        jobs: &JobsById,
    ) {
        let Some(outbound) = notice_envelope_among(context, notice, jobs) else { return };
        let mut data =
            responses::write_event(&outbound.envelope, Some(&outbound.receipt)).into_bytes();
        sse::replace_newlines(&mut data);
        let data = String::from_utf8_lossy(&data);
        sse::write_frame(out, Some(&notice.position.to_string()), "envelope", &data);
    }
}

impl InboxEncoder for FrameEncoder {
    type State = AgoraState;

    const NEEDS_JOBS: bool = true;

    fn is_authorized(&self, context: &AgoraContext, agent: AgentId) -> bool {
        is_listed(context, agent)
    }

    /// The WELCOME was sent before the inbox was opened.
    fn encode_connected(&self, _: &AgoraContext, _: AgentId, _: u64) -> Bytes {
        Bytes::new()
    }

    /// A WebSocket has its own pings.
    fn encode_ping(&self) -> Bytes {
        Bytes::new()
    }

    fn encode_notice(
        &self,
        out: &mut Vec<u8>,
        context: &AgoraContext,
        notice: &Notice,
        jobs: &JobsById,
    ) {
        let Some(outbound) = notice_envelope_among(context, notice, jobs) else { return };
        for text in [&outbound.receipt, &*outbound.envelope] {
            let at = out.len();
            out.extend_from_slice(text.as_bytes());
            sse::replace_newlines(&mut out[at..]);
            out.push(b'\n');
        }
    }
}
