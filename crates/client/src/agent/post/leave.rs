//! Going online at the start and offline at the end.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::desk::{self, Desk};
use super::report::{self, may_pass, pause};
use super::told::{Tell, Told};
use super::wire::{self, InHand};
use crate::agent::outcome::Outcome;
use crate::agent::program;
use crate::agent::record::{Ended, Turn};
use crate::agent::workshop::Workshop;
use crate::call::{CallError, Hub};

/// How long what runs may go on after the end. Then it is asked to end, and two seconds later ended.
const FINISH: Duration = Duration::from_millis(1_500);
/// How long all of leaving may take.
const LEAVE: Duration = Duration::from_millis(4_500);
/// How long one answer of the hub is waited for: one that hangs must not take the time of the rest.
const CALL: Duration = Duration::from_millis(500);

/// Says that the agent is there, however long it takes to be heard.
pub(super) async fn come(hub: &Hub, tell: &Tell) -> Result<(), CallError> {
    let mut failures = 0;
    loop {
        match stand(hub, "online").await {
            Err(error) if may_pass(&error) => {
                failures += 1;
                tell(Told::trouble("cannot go online", &error));
                sleep(pause(&error, failures)).await;
            }
            told => return told,
        }
    }
}

/// Takes no more work, finishes what can be finished soon, hands the rest back, and goes off the
/// lists. A hub that cannot be reached finds out by itself; programs end whatever it says.
pub(super) async fn leave(hub: &Hub, shop: &Workshop, instance: Option<&str>, mut desk: Desk) {
    let until = Instant::now() + LEAVE;
    // First of all: a returned job must not be assigned to this agent again.
    let _ = timeout(CALL, stand(hub, "offline")).await;
    // What waits for room is not begun any more.
    shop.close();
    let _ = timeout(FINISH, async { while desk.turn_ended().await.is_some() {} }).await;
    let left = timeout_at(until, desk.drop_all()).await.unwrap_or_default();
    let handed_back = timeout_at(until, hand_over(hub, instance, &desk, &left));
    let programs_ended = async {
        shop.dismiss().await;
        program::all_ended().await;
    };
    let _ = tokio::join!(handed_back, programs_ended);
}

/// Hands back what was left and goes off the lists.
async fn hand_over(hub: &Hub, instance: Option<&str>, desk: &Desk, left: &[Turn]) {
    for turn in left {
        let _ = timeout(CALL, hand_back(hub, desk, turn)).await;
    }
    // While anything is in hand, leaving would let it fail: being offline is enough then.
    if all_handed_back(hub, instance, desk).await {
        let _ = off(hub).await;
    }
}

/// Hands back what the hub has given us meanwhile, as much as there is; whether nothing is left.
async fn all_handed_back(hub: &Hub, instance: Option<&str>, desk: &Desk) -> bool {
    while let Ok(work) = wire::work(hub, instance, &InHand::default(), 0).await {
        if work.jobs.is_empty() {
            return true;
        }
        for job in &work.jobs {
            let turn = Turn { id: job.id.clone(), turn: job.epoch };
            let _ = timeout(CALL, hand_back(hub, desk, &turn)).await;
        }
    }
    false
}

/// Tells what came of a turn, or that nothing will.
async fn hand_back(hub: &Hub, desk: &Desk, turn: &Turn) {
    let found = desk.look_up(turn);
    let ended = found.as_ref().and_then(|(_, ended)| ended.clone()).unwrap_or_else(|| {
        let outcome = Outcome::Declined("the agent is shutting down".to_owned());
        Ended { outcome, took_ms: 0 }
    });
    let told = report::once(hub, turn, &ended).await;
    if let (Ok(_), Some((record, _))) = (told, found) {
        desk::close(&record);
    }
}

pub(super) async fn stand(hub: &Hub, status: &str) -> Result<(), CallError> {
    hub.post("/v1/me/status", &json!({ "status": status })).await.map(drop)
}

/// Off the lists, until it comes with its key again.
async fn off(hub: &Hub) -> Result<(), CallError> {
    hub.call(Method::DELETE, "/v1/me", None).await.map(|(_, _): (u16, Value)| ())
}
