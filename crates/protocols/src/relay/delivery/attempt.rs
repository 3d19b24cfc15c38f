//! The first delivery attempt, whose result the sender waits for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rialto_core::id::NoticeId;
use rialto_core::notice::Delivery;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::{self, AttemptResult, AttemptStatus, DeliveryEncoder, retry};
use tokio::sync::watch;

use super::{RelayEncoder, is_gone, read_answer};
use crate::relay::RelayContext;
use crate::relay::{Code, DeliveryOutcome};

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstAttemptOutcome {
    /// The receiver's own answer.
    Delivered {
        reply: String,
    },
    Failed {
        code: Code,
        detail: String,
    },
    /// The message was read in the inbox before it could be attempted.
    AlreadyRead,
    /// The receiver's host has too many calls running; the attempt follows when one is free.
    HostBusy,
}

impl FirstAttemptOutcome {
    /// The same as reported to the sender.
    pub fn outcome(&self) -> DeliveryOutcome<'_> {
        match self {
            Self::Delivered { reply } => DeliveryOutcome::Delivered { reply },
            Self::Failed { code, detail } => DeliveryOutcome::Failed { code: *code, detail },
            Self::AlreadyRead => DeliveryOutcome::Streamed,
            Self::HostBusy => DeliveryOutcome::Queued,
        }
    }
}

/// Running attempts, so that a repeated request waits for the same result.
#[derive(Debug, Default)]
pub struct RunningAttempts(Mutex<HashMap<NoticeId, watch::Receiver<Option<FirstAttemptOutcome>>>>);

impl RunningAttempts {
    /// The result of a running attempt.
    fn of(&self, notice: NoticeId) -> Option<watch::Receiver<Option<FirstAttemptOutcome>>> {
        self.lock().get(&notice).cloned()
    }

    fn lock(
        &self,
    ) -> MutexGuard<'_, HashMap<NoticeId, watch::Receiver<Option<FirstAttemptOutcome>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Attempts the delivery once and records the result, or waits for the running attempt. It goes on
/// when the sender disconnects.
pub async fn attempt_delivery(hub_context: &RelayContext, notice: NoticeId) -> FirstAttemptOutcome {
    let end = match hub_context.state.running_attempts.lock().entry(notice) {
        Entry::Occupied(under_way) => under_way.get().clone(),
        Entry::Vacant(place) => {
            let (told, end) = watch::channel(None);
            place.insert(end.clone());
            let trying = RunningAttempt { hub_context: hub_context.clone(), notice };
            tokio::spawn(async move {
                let ended = trying.run().await;
                drop(trying);
                told.send_replace(Some(ended));
            });
            end
        }
    };
    heard(end).await
}

/// The result of the running attempt, if there is one.
pub async fn join_running_attempt(
    hub_context: &RelayContext,
    notice: NoticeId,
) -> Option<FirstAttemptOutcome> {
    let end = hub_context.state.running_attempts.of(notice)?;
    Some(heard(end).await)
}

async fn heard(mut end: watch::Receiver<Option<FirstAttemptOutcome>>) -> FirstAttemptOutcome {
    let ended = end.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
    ended.unwrap_or_else(|| FirstAttemptOutcome::Failed {
        code: Code::AgentUnreachable,
        detail: describe_retry("internal error", None),
    })
}

/// An attempt. It leaves the list however it ends, also by a panic.
struct RunningAttempt {
    hub_context: RelayContext,
    notice: NoticeId,
}

impl RunningAttempt {
    async fn run(&self) -> FirstAttemptOutcome {
        let push = self.hub_context.engine.with_world(|world| world.delivery(self.notice).cloned());
        let Some(push) = push else { return FirstAttemptOutcome::AlreadyRead };
        match delivery::load_message_text(&self.hub_context.engine, &push).await {
            Some(push) => once(&self.hub_context, &push).await,
            None => FirstAttemptOutcome::HostBusy,
        }
    }
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.hub_context.state.running_attempts.lock().remove(&self.notice);
    }
}

async fn once(hub_context: &RelayContext, push: &Delivery) -> FirstAttemptOutcome {
    let encoder = RelayEncoder { context: hub_context.clone() };
    let Some(envelope) = encoder.encode_if_due(&hub_context.engine, push, None) else {
        let over = AttemptResult { status: AttemptStatus::Obsolete, report: None };
        delivery::record_attempt(&hub_context.engine, push, over).await;
        return FirstAttemptOutcome::AlreadyRead;
    };
    if hub_context.egress.try_acquire_call(&envelope.url, hub_context.engine.now()).is_err() {
        return FirstAttemptOutcome::HostBusy;
    }
    let answer =
        delivery::send_signed(&hub_context.engine, &hub_context.egress, push.to, envelope).await;
    let verdict = encoder.interpret_response(&hub_context.engine, push, None, &answer);
    delivery::record_attempt(&hub_context.engine, push, verdict).await;
    match read_answer(&answer) {
        Ok(reply) => FirstAttemptOutcome::Delivered { reply },
        Err((code, why)) => {
            let attempts = (!is_gone(&answer)).then_some(push.attempts + 1);
            FirstAttemptOutcome::Failed { code, detail: describe_retry(&why, attempts) }
        }
    }
}

/// What happens next, as text for the sender (R45). `attempts` so far, or `None` if there will be
/// no more.
pub fn describe_retry(why: &str, attempts: Option<u32>) -> String {
    let next = attempts.and_then(|attempts| retry::next_attempt_at(attempts, Timestamp(0)));
    let wait = next.map(|at| at.0 / 1_000);
    let next = match wait {
        Some(seconds) if seconds >= 3_600 => format!("next try in {} h", seconds / 3_600),
        Some(seconds) if seconds >= 60 => format!("next try in {} min", seconds / 60),
        Some(seconds) => format!("next try in {seconds} s"),
        None => "no further attempt".to_owned(),
    };
    format!("{why}; kept in the receiver's inbox, {next}")
}
