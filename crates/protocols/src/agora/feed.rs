//! Encodes the inbox as SSE events or WebSocket frames, and checks that the reader may still read.

use bytes::Bytes;
use rialto_core::id::AgentId;
use rialto_core::notice::Notice;

use super::inbox;
use super::token::InboxToken;
use super::{ID, letter};
use crate::adapter::HubContext;
use crate::adapter::inbox_stream::{InboxEncoder, JobsById};
use crate::kit::object::ObjectWriter;
use crate::kit::sse;

/// Encodes SSE events for a reader with a token.
pub struct EventEncoder(pub InboxToken);

/// Encodes frames for a reader on a WebSocket that it opened with a HELLO: lines of JSON, a receipt
/// before each envelope.
pub struct FrameEncoder;

fn is_listed(context: &HubContext, agent: AgentId) -> bool {
    context.engine.with_world(|world| world.may_act(agent))
}

impl InboxEncoder for EventEncoder {
    const NEEDS_JOBS: bool = true;

    fn is_authorized(&self, context: &HubContext, agent: AgentId) -> bool {
        context.engine.now() < self.0.expires_at && is_listed(context, agent)
    }

    fn encode_connected(&self, context: &HubContext, agent: AgentId, after: u64) -> Bytes {
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
        context: &HubContext,
        notice: &Notice,
        jobs: &JobsById,
    ) {
        let job = notice.news.job().and_then(|id| jobs.get(&id));
        let Some(envelope) = letter::notice_envelope(context, notice, job.map(|job| &**job)) else {
            return;
        };
        let mut data = inbox::write_event(&envelope.envelope, Some(&envelope.receipt)).into_bytes();
        sse::replace_newlines(&mut data);
        let data = String::from_utf8_lossy(&data);
        sse::write_frame(out, Some(&notice.position.to_string()), "envelope", &data);
    }
}

impl InboxEncoder for FrameEncoder {
    const NEEDS_JOBS: bool = true;

    fn is_authorized(&self, context: &HubContext, agent: AgentId) -> bool {
        is_listed(context, agent)
    }

    /// The WELCOME was sent before the inbox was opened.
    fn encode_connected(&self, _: &HubContext, _: AgentId, _: u64) -> Bytes {
        Bytes::new()
    }

    /// A WebSocket has its own pings.
    fn encode_ping(&self) -> Bytes {
        Bytes::new()
    }

    fn encode_notice(
        &self,
        out: &mut Vec<u8>,
        context: &HubContext,
        notice: &Notice,
        jobs: &JobsById,
    ) {
        let job = notice.news.job().and_then(|id| jobs.get(&id));
        let Some(envelope) = letter::notice_envelope(context, notice, job.map(|job| &**job)) else {
            return;
        };
        for text in [&envelope.receipt, &*envelope.envelope] {
            let at = out.len();
            out.extend_from_slice(text.as_bytes());
            sse::replace_newlines(&mut out[at..]);
            out.push(b'\n');
        }
    }
}
