//! Encodes the inbox as SSE events or WebSocket frames, and checks that the reader may still read.

use bytes::Bytes;
use rialto_core::id::AgentId;
use rialto_core::notice::Notice;

use super::inbox;
use super::token::Token;
use super::{ID, letter};
use crate::adapter::Floor;
use crate::adapter::inbox_stream::{Jobs, Wording};
use crate::kit::object::Object;
use crate::kit::sse;

/// Encodes SSE events for a reader with a token.
pub struct Events(pub Token);

/// Encodes frames for a reader on a WebSocket that it opened with a HELLO: lines of JSON, a receipt
/// before each envelope.
pub struct Frames;

fn is_listed(floor: &Floor, agent: AgentId) -> bool {
    floor.engine.look(|world| world.admits(agent))
}

impl Wording for Events {
    const JOBS: bool = true;

    fn may_read(&self, floor: &Floor, agent: AgentId) -> bool {
        floor.engine.now() < self.0.until && is_listed(floor, agent)
    }

    fn hello(&self, floor: &Floor, agent: AgentId, after: u64) -> Bytes {
        let (did, head) = floor.engine.look(|world| {
            let did = world.name_of(agent, ID).unwrap_or_default().to_owned();
            (did, world.mailbox(agent).head)
        });
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let data = Object::new()
            .text("id", &did)
            .whole("resume_from", number(after))
            .whole("backlog", number(head.saturating_sub(after)))
            .finish();
        let mut out = b"retry: 2000\n".to_vec();
        sse::write(&mut out, Some(&after.to_string()), "connected", &data);
        out.into()
    }

    fn ping(&self) -> Bytes {
        let mut out = Vec::with_capacity(8);
        sse::comment(&mut out, "ping");
        out.into()
    }

    fn write(&self, out: &mut Vec<u8>, floor: &Floor, notice: &Notice, jobs: &Jobs) {
        let job = notice.news.job().and_then(|id| jobs.get(&id));
        let Some(letter) = letter::of(floor, notice, job.map(|job| &**job)) else { return };
        let mut data = inbox::event(&letter.envelope, Some(&letter.receipt)).into_bytes();
        sse::keep_on_one_line(&mut data);
        let data = String::from_utf8_lossy(&data);
        sse::write(out, Some(&notice.position.to_string()), "envelope", &data);
    }
}

impl Wording for Frames {
    const JOBS: bool = true;

    fn may_read(&self, floor: &Floor, agent: AgentId) -> bool {
        is_listed(floor, agent)
    }

    /// The WELCOME was sent before the inbox was opened.
    fn hello(&self, _: &Floor, _: AgentId, _: u64) -> Bytes {
        Bytes::new()
    }

    /// A WebSocket has its own pings.
    fn ping(&self) -> Bytes {
        Bytes::new()
    }

    fn write(&self, out: &mut Vec<u8>, floor: &Floor, notice: &Notice, jobs: &Jobs) {
        let job = notice.news.job().and_then(|id| jobs.get(&id));
        let Some(letter) = letter::of(floor, notice, job.map(|job| &**job)) else { return };
        for text in [&letter.receipt, &*letter.envelope] {
            let at = out.len();
            out.extend_from_slice(text.as_bytes());
            sse::keep_on_one_line(&mut out[at..]);
            out.push(b'\n');
        }
    }
}
