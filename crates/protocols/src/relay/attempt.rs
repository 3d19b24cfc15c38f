//! The first delivery attempt, whose result the sender waits for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rialto_core::id::NoticeId;
use rialto_core::notice::Push;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::{self, Arrived, Courier, Verdict, retry};
use tokio::sync::watch;

use super::codes::Code;
use super::courier::{RelayCourier, is_gone, said};
use super::delivery::Outcome;
use crate::adapter::Floor;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The receiver's own answer.
    Delivered {
        reply: String,
    },
    Failed {
        code: Code,
        detail: String,
    },
    /// The message was read in the inbox before it could be attempted.
    Read,
    /// The receiver's host has too many calls running; the attempt follows when one is free.
    Waits,
}

impl Ended {
    /// The same as reported to the sender.
    pub fn outcome(&self) -> Outcome<'_> {
        match self {
            Self::Delivered { reply } => Outcome::Delivered { reply },
            Self::Failed { code, detail } => Outcome::Failed { code: *code, detail },
            Self::Read => Outcome::Presented,
            Self::Waits => Outcome::Queued,
        }
    }
}

/// Running attempts, so that a repeated request waits for the same result.
#[derive(Debug, Default)]
pub struct Tries(Mutex<HashMap<NoticeId, watch::Receiver<Option<Ended>>>>);

impl Tries {
    /// The result of a running attempt.
    fn of(&self, notice: NoticeId) -> Option<watch::Receiver<Option<Ended>>> {
        self.lock().get(&notice).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NoticeId, watch::Receiver<Option<Ended>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Attempts the delivery once and records the result, or waits for the running attempt. It goes on
/// when the sender disconnects.
pub async fn attempt(floor: &Floor, notice: NoticeId) -> Ended {
    let end = match floor.relay.tries.lock().entry(notice) {
        Entry::Occupied(under_way) => under_way.get().clone(),
        Entry::Vacant(place) => {
            let (told, end) = watch::channel(None);
            place.insert(end.clone());
            let trying = Trying { floor: floor.clone(), notice };
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
pub async fn under_way(floor: &Floor, notice: NoticeId) -> Option<Ended> {
    let end = floor.relay.tries.of(notice)?;
    Some(heard(end).await)
}

async fn heard(mut end: watch::Receiver<Option<Ended>>) -> Ended {
    let ended = end.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
    ended.unwrap_or_else(|| Ended::Failed {
        code: Code::AgentUnreachable,
        detail: kept("internal error", None),
    })
}

/// An attempt. It leaves the list however it ends, also by a panic.
struct Trying {
    floor: Floor,
    notice: NoticeId,
}

impl Trying {
    async fn run(&self) -> Ended {
        let push = self.floor.engine.look(|world| world.push(self.notice).cloned());
        let Some(push) = push else { return Ended::Read };
        match delivery::with_text(&self.floor.engine, &push).await {
            Some(push) => once(&self.floor, &push).await,
            None => Ended::Waits,
        }
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        self.floor.relay.tries.lock().remove(&self.notice);
    }
}

async fn once(floor: &Floor, push: &Push) -> Ended {
    let courier = RelayCourier { floor: floor.clone() };
    let Some(letter) = courier.letter(&floor.engine, push, None) else {
        let over = Verdict { arrived: Arrived::Over, commands: Vec::new() };
        delivery::record(&floor.engine, push, over).await;
        return Ended::Read;
    };
    if floor.egress.take_turn(&letter.url, floor.engine.now()).is_err() {
        return Ended::Waits;
    }
    let answer = delivery::post(&floor.engine, &floor.egress, push.to, letter).await;
    let verdict = courier.verdict(&floor.engine, push, None, &answer);
    delivery::record(&floor.engine, push, verdict).await;
    match said(&answer) {
        Ok(reply) => Ended::Delivered { reply },
        Err((code, why)) => {
            let attempts = (!is_gone(&answer)).then_some(push.attempts + 1);
            Ended::Failed { code, detail: kept(&why, attempts) }
        }
    }
}

/// What happens next, as text for the sender (R45). `attempts` so far, or `None` if there will be
/// no more.
pub fn kept(why: &str, attempts: Option<u32>) -> String {
    let next = attempts.and_then(|attempts| retry::next_try(attempts, Timestamp(0)));
    let wait = next.map(|at| at.0 / 1_000);
    let next = match wait {
        Some(seconds) if seconds >= 3_600 => format!("next try in {} h", seconds / 3_600),
        Some(seconds) if seconds >= 60 => format!("next try in {} min", seconds / 60),
        Some(seconds) => format!("next try in {seconds} s"),
        None => "no further attempt".to_owned(),
    };
    format!("{why}; kept in the receiver's inbox, {next}")
}
