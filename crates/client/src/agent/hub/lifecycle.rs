//! Goes online at startup and offline at shutdown.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::dispatcher::{self, Desk};
use super::report::{self, may_pass, pause};
use super::event::{Tell, Told};
use super::wire::{self, InHand};
use crate::agent::outcome::Outcome;
use crate::agent::program;
use crate::agent::record::{Ended, Turn};
use crate::agent::handlers::Workshop;
use crate::call::{CallError, Hub};

/// How long running jobs may continue after shutdown. Then they are terminated, and killed two
/// seconds later.
const FINISH: Duration = Duration::from_millis(1_500);
/// Maximum time for the whole shutdown.
const LEAVE: Duration = Duration::from_millis(4_500);
/// Timeout of one call to the hub, so that a call that hangs leaves time for the others.
const CALL: Duration = Duration::from_millis(500);

/// Reports the agent as online; retries until the hub accepts it.
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

/// Stops accepting work, finishes what can be finished soon, returns the rest, and unregisters. A
/// hub that cannot be reached notices by itself. Programs are ended whatever the hub responds.
pub(super) async fn leave(hub: &Hub, shop: &Workshop, instance: Option<&str>, mut desk: Desk) {
    let until = Instant::now() + LEAVE;
    // This comes first: a returned job must not be assigned to this agent again.
    let _ = timeout(CALL, stand(hub, "offline")).await;
    // Jobs that wait for a permit are not started any more.
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

/// Returns the remaining assignments and unregisters.
async fn hand_over(hub: &Hub, instance: Option<&str>, desk: &Desk, left: &[Turn]) {
    for turn in left {
        let _ = timeout(CALL, hand_back(hub, desk, turn)).await;
    }
    // Unregistering would fail the assignments that remain, so then being offline is enough.
    if all_handed_back(hub, instance, desk).await {
        let _ = off(hub).await;
    }
}

/// Returns all assignments the hub has given the agent in the meantime. Returns whether none is
/// left.
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

/// Reports the outcome of an assignment, or declines it.
async fn hand_back(hub: &Hub, desk: &Desk, turn: &Turn) {
    let found = desk.look_up(turn);
    let ended = found.as_ref().and_then(|(_, ended)| ended.clone()).unwrap_or_else(|| {
        let outcome = Outcome::Declined("the agent is shutting down".to_owned());
        Ended { outcome, took_ms: 0 }
    });
    let told = report::once(hub, turn, &ended).await;
    if let (Ok(_), Some((record, _))) = (told, found) {
        dispatcher::close(&record);
    }
}

pub(super) async fn stand(hub: &Hub, status: &str) -> Result<(), CallError> {
    hub.post("/v1/me/status", &json!({ "status": status })).await.map(drop)
}

/// Unregisters the agent until it registers again with its key.
async fn off(hub: &Hub) -> Result<(), CallError> {
    hub.call(Method::DELETE, "/v1/me", None).await.map(|(_, _): (u16, Value)| ())
}
