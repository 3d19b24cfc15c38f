//! Encodes a notice as the envelope its reader gets.

use std::borrow::Cow;

use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::a2a::EnvelopeFormat;
use super::event::{Annotations, MessageEvent, MessageFlags};
use super::wording::{self, JobEnvelope};
use super::{ID, VERSION, record, stored};
use crate::adapter::{HubContext, bridge};
use crate::kit::ijson::{self, JsonValue};
use crate::kit::object::ObjectWriter;

/// The sender and the envelope of a message.
pub struct OutgoingEnvelope<'n> {
    pub sender_id: Cow<'n, str>,
    pub envelope: Cow<'n, str>,
    pub annotations: Annotations,
    pub flags: MessageFlags,
}

impl<'n> OutgoingEnvelope<'n> {
    /// A message of any protocol, or a notice about a job; `None` for other notices.
    pub fn of(world: &'n World, notice: &'n Notice, job: Option<&Job>) -> Option<Self> {
        let NoticeKind::Message { from, protocol: words, body, .. } = &notice.news else {
            // Agents of other protocols get notices about work in their own protocol.
            world.agent(notice.to?).filter(|reader| reader.home == ID)?;
            let JobEnvelope { sender_id, envelope, annotations } =
                wording::job_envelope(world, notice, job?)?;
            let (sender_id, envelope) = (sender_id.into(), envelope.into());
            return Some(Self { sender_id, envelope, annotations, flags: MessageFlags::default() });
        };
        if *words != ID {
            let envelope = foreign(world, *from, body).into();
            let sender_id = record::address_of(world, *from);
            let bridge =
                from.and_then(|from| world.agent(from)).map(|agent| bridge::bridge_of_agent(agent));
            let annotations = Annotations { bridge, ..Annotations::default() };
            return Some(Self { sender_id, envelope, annotations, flags: MessageFlags::default() });
        }
        let (envelope, marks) = stored::read_stored_message(body);
        Some(Self {
            sender_id: sender(world, *from, envelope),
            envelope: envelope.into(),
            annotations: Annotations::default(),
            flags: marks,
        })
    }
}

/// The sender as registered; for an unregistered sender, the one the envelope names.
fn sender<'n>(world: &'n World, from: Option<AgentId>, envelope: &'n str) -> Cow<'n, str> {
    if from.is_some() {
        return record::address_of(world, from);
    }
    let said = ijson::read(envelope.as_bytes()).ok();
    let said = said.as_ref().and_then(|said| said.get("sender_id")).map(|id| id.value().clone());
    match said {
        Some(JsonValue::String(name)) => name,
        _ => "".into(),
    }
}

/// A message from an agent of another protocol, as an envelope. A string becomes its text, anything
/// else its JSON.
fn foreign(world: &World, from: Option<AgentId>, body: &str) -> String {
    let json = ijson::read(body.as_bytes());
    let said = match json.as_ref().map(|json| json.value()) {
        Ok(JsonValue::String(said)) => said.as_ref(),
        _ => body,
    };
    ObjectWriter::new()
        .text("chorus_version", VERSION)
        .text("sender_id", &record::address_of(world, from))
        .text("original_text", said)
        .text("sender_culture", "en")
        .finish()
}

/// Appends a notice as an event. A notice that has no form here, has expired (R49) or is obsolete
/// appends nothing.
pub fn write_event(
    out: &mut Vec<u8>,
    context: &HubContext,
    world: &World,
    notice: &Notice,
    job: Option<&Job>,
    format: Option<EnvelopeFormat>,
) {
    if is_expired(context, notice) || wording::is_obsolete(&notice.news, job) {
        return;
    }
    let Some(outbound) = OutgoingEnvelope::of(world, notice, job) else { return };
    let trace = context.relay.trace_ids.of(notice.id);
    let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
    let message = MessageEvent {
        position: notice.position,
        trace_id: trace.hyphenated().encode_lower(&mut buffer),
        sender_id: &outbound.sender_id,
        envelope: &outbound.envelope,
        at: notice.at,
        format,
        annotations: &outbound.annotations,
        flags: outbound.flags,
    };
    message.write(out);
}

/// Until when the loop guard holds a message back (R89), if that is in the future.
pub fn held_until(news: &NoticeKind, at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let NoticeKind::Message { protocol: ID, body, .. } = news else { return None };
    let until = at.plus(stored::read_stored_message(body).1.loop_guard?);
    (until > now).then_some(until)
}

/// Whether a message's retention time is over.
pub fn is_expired(context: &HubContext, notice: &Notice) -> bool {
    notice.at.plus(context.relay.settings.retention) <= context.engine.now()
}
