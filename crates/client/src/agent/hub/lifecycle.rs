//! Goes online at startup and offline at shutdown.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::dispatcher::{self, Dispatcher};
use super::event::{AgentEvent, EventCallback};
use super::report::{self, is_retryable, retry_delay};
use super::wire::{self, KnownAssignments};
use crate::agent::handlers::Handlers;
use crate::agent::outcome::Outcome;
use crate::agent::program;
use crate::agent::record::{AssignmentRef, FinishedJob};
use crate::call::{CallError, Hub};

/// How long running jobs may continue after shutdown. Then they are terminated, and killed two
/// seconds later.
const FINISH_TIME: Duration = Duration::from_millis(1_500);
/// Maximum time for the whole shutdown.
const SHUTDOWN_TIME: Duration = Duration::from_millis(4_500);
/// Timeout of one call to the hub, so that a call that hangs leaves time for the others.
const CALL_TIME: Duration = Duration::from_millis(500);

/// Reports the agent as online; retries until the hub accepts it.
pub(super) async fn go_online(hub: &Hub, tell: &EventCallback) -> Result<(), CallError> {
    let mut failures = 0;
    loop {
        match set_status(hub, "online").await {
            Err(error) if is_retryable(&error) => {
                failures += 1;
                tell(AgentEvent::from_error("cannot go online", &error));
                sleep(retry_delay(&error, failures)).await;
            }
            told => return told,
        }
    }
}

/// Stops accepting work, finishes what can be finished soon, returns the rest, and unregisters. A
/// hub that cannot be reached notices by itself. Programs are ended whatever the hub responds.
pub(super) async fn go_offline(
    hub: &Hub,
    shop: &Handlers,
    instance: Option<&str>,
    mut agent_state: Dispatcher,
) {
    let until = Instant::now() + SHUTDOWN_TIME;
    // This comes first: a returned job must not be assigned to this agent again.
    let _ = timeout(CALL_TIME, set_status(hub, "offline")).await;
    // Jobs that wait for a permit are not started any more.
    shop.stop_accepting();
    let _ =
        timeout(FINISH_TIME, async { while agent_state.next_finished().await.is_some() {} }).await;
    let left = timeout_at(until, agent_state.abort_all()).await.unwrap_or_default();
    let handed_back = timeout_at(until, return_all(hub, instance, &agent_state, &left));
    let programs_ended = async {
        shop.close_handlers().await;
        program::wait_for_groups().await;
    };
    let _ = tokio::join!(handed_back, programs_ended);
}

/// Returns the remaining assignments and unregisters.
async fn return_all(
    hub: &Hub,
    instance: Option<&str>,
    agent_state: &Dispatcher,
    left: &[AssignmentRef],
) {
    for turn in left {
        let _ = timeout(CALL_TIME, return_assignment(hub, agent_state, turn)).await;
    }
    // Unregistering would fail the assignments that remain, so then being offline is enough.
    if return_remaining(hub, instance, agent_state).await {
        let _ = unregister(hub).await;
    }
}

/// Returns all assignments the hub has given the agent in the meantime. Returns whether none is
/// left.
async fn return_remaining(hub: &Hub, instance: Option<&str>, agent_state: &Dispatcher) -> bool {
    while let Ok(work) = wire::fetch_work(hub, instance, &KnownAssignments::default(), 0).await {
        if work.jobs.is_empty() {
            return true;
        }
        for job in &work.jobs {
            let turn = AssignmentRef { id: job.id.clone(), epoch: job.epoch };
            let _ = timeout(CALL_TIME, return_assignment(hub, agent_state, &turn)).await;
        }
    }
    false
}

/// Reports the outcome of an assignment, or declines it.
async fn return_assignment(hub: &Hub, agent_state: &Dispatcher, turn: &AssignmentRef) {
    let found = agent_state.find_record(turn);
    let ended = found.as_ref().and_then(|(_, ended)| ended.clone()).unwrap_or_else(|| {
        let outcome = Outcome::Declined("the agent is shutting down".to_owned());
        FinishedJob { outcome, took_ms: 0 }
    });
    let told = report::report_once(hub, turn, &ended).await;
    if let (Ok(_), Some((record, _))) = (told, found) {
        dispatcher::close_record(&record);
    }
}

pub(super) async fn set_status(hub: &Hub, status: &str) -> Result<(), CallError> {
    hub.post("/v1/me/status", &json!({ "status": status })).await.map(drop)
}

/// Unregisters the agent until it registers again with its key.
async fn unregister(hub: &Hub) -> Result<(), CallError> {
    hub.call(Method::DELETE, "/v1/me", None).await.map(|(_, _): (u16, Value)| ())
}
