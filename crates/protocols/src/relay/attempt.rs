//! The first try at a receiver's endpoint, whose end the sender waits for.

use std::sync::Arc;

use rialto_core::id::NoticeId;
use rialto_core::notice::Push;
use rialto_core::time::Timestamp;
use rialto_engine::delivery::{self, Arrived, Courier, Verdict, retry};

use super::codes::Code;
use super::courier::{RelayCourier, is_gone, said};
use crate::face::Floor;

/// How a try ended.
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
    /// It was read in the inbox before it could be tried.
    Read,
}

/// Tries once and records what came of it. A sender that goes away does not stop it.
pub async fn attempt(floor: &Floor, notice: NoticeId) -> Ended {
    let floor = floor.clone();
    let trying = tokio::spawn(async move {
        let Some(push) = floor.engine.look(|world| world.push(notice).cloned()) else {
            return Ended::Read;
        };
        once(&floor, &push).await
    });
    trying.await.unwrap_or_else(|_| Ended::Failed {
        code: Code::AgentUnreachable,
        detail: kept("the hub made a mistake", None),
    })
}

async fn once(floor: &Floor, push: &Arc<Push>) -> Ended {
    let courier = RelayCourier { floor: floor.clone() };
    let Some(letter) = courier.letter(&floor.engine, push, None) else {
        let over = Verdict { arrived: Arrived::Over, commands: Vec::new() };
        delivery::record(&floor.engine, push, over).await;
        return Ended::Read;
    };
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

/// What happens next, in the sender's words (R45). `attempts` so far, unless there will be no more.
pub fn kept(why: &str, attempts: Option<u32>) -> String {
    let next = attempts.and_then(|attempts| retry::next_try(attempts, Timestamp(0)));
    let wait = next.map(|at| at.0 / 1_000);
    let next = match wait {
        Some(seconds) if seconds >= 3_600 => format!("next try in {} h", seconds / 3_600),
        Some(seconds) if seconds >= 60 => format!("next try in {} min", seconds / 60),
        Some(seconds) => format!("next try in {seconds} s"),
        None => "no further try".to_owned(),
    };
    format!("{why}; kept in the receiver's inbox, {next}")
}
