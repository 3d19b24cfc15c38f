//! The state of a message: always exactly one (R49).

use std::sync::Arc;

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::Job;
use rialto_core::notice::{CompletedDelivery, Notice, NoticeKind};
use rialto_core::time::Millis;
use rialto_core::world::World;
use rialto_engine::Failure;
use rialto_engine::store::{Row, RowKey};

use super::letter::{OutgoingEnvelope, held_until, is_expired};
use super::shape::write_json_string;
use super::{ID, record, stored};
use crate::adapter::HubContext;
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
pub fn is_handed_over(context: &HubContext, notice: &Notice) -> bool {
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
pub async fn message_state(context: &HubContext, id: NoticeId) -> Result<MessageState, Failure> {
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
    context: &HubContext,
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
    pub fn lost_first_attempt(&self, context: &HubContext) -> bool {
        let up = i64::try_from(context.relay.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        context.engine.now().since(self.notice.at) > Millis(up)
            && context.engine.with_world(|world| {
                world.delivery(self.notice.id).is_some_and(|push| push.attempts == 0)
            })
    }

    /// Whether the loop guard held it back when it came (R89).
    pub fn was_delayed(&self) -> bool {
        match &self.notice.news {
            NoticeKind::Message { body, .. } => {
                stored::read_stored_message(body).1.loop_guard.is_some()
            }
            _ => false,
        }
    }

    pub fn write(
        &self,
        out: &mut Vec<u8>,
        context: &HubContext,
        trace_id: &str,
        state: &MessageState,
    ) {
        context.engine.with_world(|world| {
            let envelope = OutgoingEnvelope::of(world, &self.notice, self.job.as_deref());
            let sender = envelope.as_ref().map_or("", |envelope| &envelope.sender_id);
            for (name, value) in [
                ("{\"trace_id\":", trace_id),
                (",\"sender_id\":", sender),
                (",\"receiver_id\":", &record::address_of(world, self.notice.to)),
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
