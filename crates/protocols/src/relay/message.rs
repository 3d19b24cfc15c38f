//! Messages: their state, their stored form, and their public ids.
//!
//! A message is always in exactly one state (R49). It is stored as the envelope that was sent; one
//! with flags is an array: the flags, then the envelope. An envelope is an object, so the two cannot
//! be confused. Its public id is the trace id: the message's number, sealed with the hub's key. It
//! looks random, is the same after every restart, is different on every hub, and needs no index to
//! find its message.

use std::sync::Arc;

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::Job;
use rialto_core::notice::{CompletedDelivery, Notice, NoticeKind};
use rialto_core::time::Millis;
use rialto_core::world::World;
use rialto_engine::Failure;
use rialto_engine::store::{Row, RowKey};
use sha2::{Digest, Sha256};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::RelayContext;
use super::delivery::{OutgoingEnvelope, held_until, is_expired};
use super::wire::inbox::MessageFlags;
use super::wire::response::write_json_string;
use super::{ID, translate};
use crate::kit::rfc3339;

/// Where a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageState {
    /// It waits for its receiver.
    Queued,
    /// Handed to an open inbox stream.
    Streamed,
    /// The receiver's endpoint has it.
    Delivered { reply: Option<String>, attempts: u32 },
    /// The receiver has acknowledged it, whichever way it came.
    Acked { reply: Option<String>, attempts: u32 },
    /// The receiver's endpoint did not accept it; it still waits in the inbox.
    Failed { attempts: u32 },
    /// Not fetched in time.
    Expired,
}

impl MessageState {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Streamed => "presented",
            Self::Delivered { .. } => "delivered",
            Self::Acked { .. } => "acked",
            Self::Failed { .. } => "failed",
            Self::Expired => "expired",
        }
    }

    /// How often the receiver's endpoint was called.
    fn attempts(&self) -> u32 {
        match self {
            Self::Delivered { attempts, .. }
            | Self::Acked { attempts, .. }
            | Self::Failed { attempts } => *attempts,
            Self::Queued | Self::Streamed | Self::Expired => 0,
        }
    }
}

/// Whether a reader of the receiver's inbox has the message or will get it next. An open inbox
/// stream counts, because the sender is told so: what was handed to it is recorded later.
pub fn is_handed_over(context: &RelayContext, notice: &Notice) -> bool {
    let engine = &context.engine;
    let is_held = || held_until(&notice.news, notice.at, engine.now()).is_some();
    notice.to.is_some_and(|to| {
        engine.read_position(to) >= notice.position || engine.has_inbox_reader(to) && !is_held()
    })
}

/// The state of a message, from everything known about it.
pub fn derive_state(
    world: &World,
    notice: &Notice,
    arrival: Option<CompletedDelivery>,
    expired: bool,
    handed_over: bool,
) -> MessageState {
    let mailbox = notice.to.map(|to| world.inbox(to));
    if mailbox.is_some_and(|mailbox| mailbox.acked >= notice.position) {
        let CompletedDelivery { reply, attempts, .. } = arrival.unwrap_or(CompletedDelivery {
            notice: notice.id,
            at: notice.at,
            attempts: 0,
            reply: None,
            url: String::new(),
        });
        return MessageState::Acked { reply, attempts };
    }
    if let Some(CompletedDelivery { reply, attempts, .. }) = arrival {
        return MessageState::Delivered { reply, attempts };
    }
    // Checked before `handed_over`: an inbox read past an expired message did not show it, and a
    // message that was shown but never acknowledged expires as well (G4).
    if expired {
        return MessageState::Expired;
    }
    if handed_over {
        return MessageState::Streamed;
    }
    match world.delivery(notice.id).filter(|push| push.attempts > 0) {
        Some(push) => MessageState::Failed { attempts: push.attempts },
        None => MessageState::Queued,
    }
}

/// The state of a message of the relay.
pub async fn message_state(context: &RelayContext, id: NoticeId) -> Result<MessageState, Failure> {
    let Some(Row::Notice(notice)) = context.engine.load_row(RowKey::Notice(id)).await? else {
        return Err(Failure::Fault);
    };
    let arrival = match context.engine.load_row(RowKey::Arrival(id)).await? {
        Some(Row::Arrival(arrival)) => Some(arrival),
        _ => None,
    };
    let (expired, handed_over) = (is_expired(context, &notice), is_handed_over(context, &notice));
    Ok(context
        .engine
        .with_world(|world| derive_state(world, &notice, arrival, expired, handed_over)))
}

/// A message of the relay, or one that the hub wrote about a job.
pub struct StoredMessage {
    notice: Notice,
    from: Option<AgentId>,
    job: Option<Arc<Job>>,
}

/// The message with this id, if it is one of the relay's.
pub async fn load_message(
    context: &RelayContext,
    id: NoticeId,
) -> Result<Option<StoredMessage>, Failure> {
    let Some(Row::Notice(notice)) = context.engine.load_row(RowKey::Notice(id)).await? else {
        return Ok(None);
    };
    let from = match notice.news {
        NoticeKind::Message { protocol: words, .. } if words != ID => return Ok(None),
        NoticeKind::Message { from, .. } => from,
        _ => None,
    };
    let job = match notice.news.job() {
        Some(job) => context.engine.load_job(job).await?,
        None => None,
    };
    let said = context
        .engine
        .with_world(|world| OutgoingEnvelope::of(world, &notice, job.as_deref()).is_some());
    Ok(said.then_some(StoredMessage { notice, from, job }))
}

impl StoredMessage {
    /// Whether the agent sent or received it; for all others it does not exist.
    pub fn is_visible_to(&self, agent: AgentId) -> bool {
        self.from == Some(agent) || self.notice.to == Some(agent)
    }

    /// Whether the hub stopped before the first call of the receiver's endpoint ended. The retry
    /// schedule would call again, but a repeated request need not wait for that.
    pub fn lost_first_attempt(&self, context: &RelayContext) -> bool {
        let up = i64::try_from(context.state.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        context.engine.now().since(self.notice.at) > Millis(up)
            && context.engine.with_world(|world| {
                world.delivery(self.notice.id).is_some_and(|push| push.attempts == 0)
            })
    }

    /// Whether the loop guard held it back when it came (R89).
    pub fn was_delayed(&self) -> bool {
        match &self.notice.news {
            NoticeKind::Message { body, .. } => read_stored_message(body).1.loop_guard.is_some(),
            _ => false,
        }
    }

    pub fn write(
        &self,
        out: &mut Vec<u8>,
        context: &RelayContext,
        trace_id: &str,
        state: &MessageState,
    ) {
        context.engine.with_world(|world| {
            let envelope = OutgoingEnvelope::of(world, &self.notice, self.job.as_deref());
            let sender = envelope.as_ref().map_or("", |envelope| &envelope.sender_id);
            for (name, value) in [
                ("{\"trace_id\":", trace_id),
                (",\"sender_id\":", sender),
                (",\"receiver_id\":", &translate::address_of(world, self.notice.to)),
                (",\"state\":", state.as_str()),
                (",\"timestamp\":", &rfc3339::format_millis(self.notice.at)),
            ] {
                out.extend_from_slice(name.as_bytes());
                write_json_string(out, value);
            }
            let attempts = format!(",\"attempts\":{}", state.attempts());
            out.extend_from_slice(attempts.as_bytes());
            if let Some(envelope) = &envelope {
                out.extend_from_slice(b",\"envelope\":");
                out.extend_from_slice(envelope.envelope.as_bytes());
                envelope.annotations.write(out);
            }
            out.push(b'}');
        });
    }
}

const BY_OPERATOR: &str = r#""operator","#;
const UNVERIFIED: &str = r#""unverified","#;
/// The loop guard's flag, followed by the milliseconds the message is held back. A message of an
/// older version has none.
const LOOP_GUARD: &str = r#""loop_guard","#;

/// The text to store.
pub fn write_stored_message(envelope: &str, marks: MessageFlags) -> String {
    if marks == MessageFlags::default() {
        return envelope.to_owned();
    }
    let mut text = String::with_capacity(envelope.len() + 48);
    text.push('[');
    text.push_str(if marks.by_operator { BY_OPERATOR } else { "" });
    text.push_str(if marks.unverified { UNVERIFIED } else { "" });
    if let Some(delay) = marks.loop_guard {
        text.push_str(&format!("{LOOP_GUARD}{},", delay.0));
    }
    text.push_str(envelope);
    text.push(']');
    text
}

/// The envelope and its flags.
pub fn read_stored_message(text: &str) -> (&str, MessageFlags) {
    let mut marks = MessageFlags::default();
    let Some(mut rest) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return (text, marks);
    };
    for (set, mark) in [(&mut marks.by_operator, BY_OPERATOR), (&mut marks.unverified, UNVERIFIED)]
    {
        if let Some(after) = rest.strip_prefix(mark) {
            (*set, rest) = (true, after);
        }
    }
    if let Some(after) = rest.strip_prefix(LOOP_GUARD) {
        let delay = after.split_once(',').and_then(|(ms, after)| Some((ms.parse().ok()?, after)));
        let (delay, after) = delay.unwrap_or((0, after));
        (marks.loop_guard, rest) = (Some(Millis(delay)), after);
    }
    (rest, marks)
}

/// The payload bits of a version 8 UUID.
const HIGH: u64 = 0xFFFF_FFFF_FFFF_0FFF;
const LOW: u64 = 0x3FFF_FFFF_FFFF_FFFF;

/// Makes and reads trace ids of one hub.
#[derive(Clone)]
pub struct TraceIds {
    key: [u8; 32],
}

impl TraceIds {
    pub fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// The trace id of a message.
    pub fn of(&self, notice: NoticeId) -> Uuid {
        // Half of it proves that this hub made it; the other half is the number, masked by the
        // first.
        let seal = self.hash(b'a', notice.0) & HIGH;
        let number = (notice.0 ^ self.hash(b'b', seal)) & LOW;
        uuid::Builder::from_u128((u128::from(seal) << 64) | u128::from(number))
            .with_version(uuid::Version::Custom)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
    }

    /// The message of a trace id, if this hub made it.
    pub fn read(&self, trace: Uuid) -> Option<NoticeId> {
        let (high, low) = trace.as_u64_pair();
        let notice = NoticeId((low ^ self.hash(b'b', high & HIGH)) & LOW);
        (self.of(notice) == trace).then_some(notice)
    }

    /// The same from text; only the hyphenated form is accepted.
    pub fn read_text(&self, text: &str) -> Option<NoticeId> {
        self.read(text.parse::<Hyphenated>().ok()?.into_uuid())
    }

    fn hash(&self, purpose: u8, number: u64) -> u64 {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update([purpose]);
        hash.update(number.to_be_bytes());
        let full = hash.finalize();
        u64::from_be_bytes(full[..8].try_into().expect("a hash has more than eight bytes"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_kept_is_read_back_with_every_set_of_marks() {
        let envelope = r#"{"original_text":"[\"operator\",{}]"}"#;
        for bits in 0..8 {
            let [by_operator, unverified, held] = [1, 2, 4].map(|bit| bits & bit != 0);
            let loop_guard = held.then_some(Millis(1_500));
            let marks = MessageFlags { by_operator, unverified, loop_guard };
            let kept = write_stored_message(envelope, marks);
            assert!(crate::kit::ijson::read(kept.as_bytes()).is_ok(), "{kept}");
            assert_eq!(read_stored_message(&kept), (envelope, marks));
        }
        assert_eq!(write_stored_message(envelope, MessageFlags::default()), envelope);
    }

    #[test]
    fn a_mark_of_an_older_version_holds_nothing_back() {
        let envelope = r#"{"original_text":"a,b","turn_number":7}"#;
        let marks = MessageFlags { loop_guard: Some(Millis(0)), ..MessageFlags::default() };
        assert_eq!(
            read_stored_message(&format!(r#"["loop_guard",{envelope}]"#)),
            (envelope, marks)
        );
    }

    #[test]
    fn ids_of_two_hubs_never_meet_and_made_up_ones_lead_nowhere() {
        let [ours, theirs] = [1, 2].map(|n| TraceIds::new([n; 32]));
        assert_ne!(ours.of(NoticeId(1)), theirs.of(NoticeId(1)));
        assert_eq!(ours.read(theirs.of(NoticeId(1))), None);
        assert_eq!(ours.read(Uuid::nil()), None);
        assert_eq!(ours.read_text("no trace"), None);
        let text = ours.of(NoticeId(7)).to_string();
        assert_eq!(ours.read_text(&text), Some(NoticeId(7)));
        assert_eq!(ours.read_text(&text.replace('-', "")), None);
    }

    proptest! {
        #[test]
        fn a_trace_id_is_a_uuid_and_leads_back(number in 1_u64..LOW, key: [u8; 32]) {
            let traces = TraceIds::new(key);
            let trace = traces.of(NoticeId(number));
            prop_assert_eq!(trace.get_version_num(), 8);
            prop_assert_eq!(trace.get_variant(), uuid::Variant::RFC4122);
            prop_assert_eq!(traces.read(trace), Some(NoticeId(number)));
        }
    }
}
