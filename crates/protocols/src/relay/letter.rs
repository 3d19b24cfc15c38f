//! Encodes a notice as the envelope its reader gets.

use std::borrow::Cow;

use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::notice::{News, Notice};
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::a2a::Format;
use super::event::{Annotations, Marks, Message};
use super::wording::{self, Worded};
use super::{ID, VERSION, record, stored};
use crate::adapter::{Floor, bridge};
use crate::kit::ijson::{self, Kind};
use crate::kit::object::Object;

/// The sender and the envelope of a message.
pub struct Letter<'n> {
    pub sender_id: Cow<'n, str>,
    pub envelope: Cow<'n, str>,
    pub annotations: Annotations,
    pub marks: Marks,
}

impl<'n> Letter<'n> {
    /// A message of any protocol, or a notice about a job; `None` for other notices.
    pub fn of(world: &'n World, notice: &'n Notice, job: Option<&Job>) -> Option<Self> {
        let News::Message { from, words, body, .. } = &notice.news else {
            // Agents of other protocols get notices about work in their own protocol.
            world.agent(notice.to?).filter(|reader| reader.home == ID)?;
            let Worded { sender_id, envelope, annotations } = wording::of(world, notice, job?)?;
            let (sender_id, envelope) = (sender_id.into(), envelope.into());
            return Some(Self { sender_id, envelope, annotations, marks: Marks::default() });
        };
        if *words != ID {
            let envelope = foreign(world, *from, body).into();
            let sender_id = record::address_of(world, *from);
            let bridge = from.and_then(|from| world.agent(from)).map(|agent| bridge::of_agent(agent));
            let annotations = Annotations { bridge, ..Annotations::default() };
            return Some(Self { sender_id, envelope, annotations, marks: Marks::default() });
        }
        let (envelope, marks) = stored::read(body);
        Some(Self {
            sender_id: sender(world, *from, envelope),
            envelope: envelope.into(),
            annotations: Annotations::default(),
            marks,
        })
    }
}

/// The sender as registered; for an unregistered sender, the one the envelope names.
fn sender<'n>(world: &'n World, from: Option<AgentId>, envelope: &'n str) -> Cow<'n, str> {
    if from.is_some() {
        return record::address_of(world, from);
    }
    let said = ijson::read(envelope.as_bytes()).ok();
    let said = said.as_ref().and_then(|said| said.get("sender_id")).map(|id| id.kind().clone());
    match said {
        Some(Kind::Text(name)) => name,
        _ => "".into(),
    }
}

/// A message from an agent of another protocol, as an envelope. A string becomes its text, anything
/// else its JSON.
fn foreign(world: &World, from: Option<AgentId>, body: &str) -> String {
    let json = ijson::read(body.as_bytes());
    let said = match json.as_ref().map(|json| json.kind()) {
        Ok(Kind::Text(said)) => said.as_ref(),
        _ => body,
    };
    Object::new()
        .text("chorus_version", VERSION)
        .text("sender_id", &record::address_of(world, from))
        .text("original_text", said)
        .text("sender_culture", "en")
        .finish()
}

/// Appends a notice as an event. A notice that has no form here, has expired (R49) or is obsolete
/// appends nothing.
pub fn write(
    out: &mut Vec<u8>,
    floor: &Floor,
    world: &World,
    notice: &Notice,
    job: Option<&Job>,
    format: Option<Format>,
) {
    if is_expired(floor, notice) || wording::is_over(&notice.news, job) {
        return;
    }
    let Some(letter) = Letter::of(world, notice, job) else { return };
    let trace = floor.relay.traces.of(notice.id);
    let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
    let message = Message {
        position: notice.position,
        trace_id: trace.hyphenated().encode_lower(&mut buffer),
        sender_id: &letter.sender_id,
        envelope: &letter.envelope,
        at: notice.at,
        format,
        annotations: &letter.annotations,
        marks: letter.marks,
    };
    message.write(out);
}

/// Until when the loop guard holds a message back (R89), if that is in the future.
pub fn held_until(news: &News, at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let News::Message { words: ID, body, .. } = news else { return None };
    let until = at.plus(stored::read(body).1.loop_guard?);
    (until > now).then_some(until)
}

/// Whether a message's retention time is over.
pub fn is_expired(floor: &Floor, notice: &Notice) -> bool {
    notice.at.plus(floor.relay.settings.retention) <= floor.engine.now()
}
