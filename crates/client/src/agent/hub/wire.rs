//! Requests to the hub and its responses.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::rfc3339;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::job::Job;
use crate::agent::record::AssignmentRef;
use crate::call::{CallError, Hub};
use crate::clock;

/// Maximum number of decimals in an amount.
const DECIMALS: usize = 6;

/// Maximum number of assignments at a time; the hub keeps the rest and may assign it to others.
const KNOWN_MAX: usize = 150;
/// Maximum number of assignments in one response.
pub(super) const LISTED_MAX: usize = 50;

/// Assignments the hub need not send again.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownAssignments(Arc<Mutex<BTreeSet<AssignmentRef>>>);

impl KnownAssignments {
    pub(super) fn add(&self, turn: AssignmentRef) {
        self.lock().insert(turn);
    }

    /// Removes every assignment of these jobs; returns whether any was known.
    pub(super) fn remove(&self, jobs: &[String]) -> bool {
        let mut held = self.lock();
        let before = held.len();
        held.retain(|turn| !jobs.contains(&turn.id));
        held.len() < before
    }

    /// How many more assignments fit, and the known ones as a query value.
    fn query(&self) -> (usize, String) {
        let held = self.lock();
        let names: Vec<String> =
            held.iter().take(KNOWN_MAX).map(|turn| format!("{}.{}", turn.id, turn.epoch)).collect();
        (KNOWN_MAX.saturating_sub(held.len()).min(LISTED_MAX), names.join(","))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<AssignmentRef>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changes to the agent's assignments.
#[derive(Debug, Deserialize)]
pub(super) struct WorkResponse {
    pub(super) jobs: Vec<WorkItem>,
    /// Jobs that were taken away.
    #[serde(default)]
    pub(super) gone: Vec<String>,
    /// There are more jobs than were listed.
    #[serde(default)]
    pub(super) more: bool,
    /// The hub's clock.
    #[serde(default)]
    now: Option<String>,
}

/// One assigned job.
#[derive(Debug, Deserialize)]
pub(super) struct WorkItem {
    pub(super) id: String,
    pub(super) epoch: u32,
    skill: String,
    input: Box<RawValue>,
    requester: Option<String>,
    budget: Option<Box<RawValue>>,
    deadline: Option<String>,
}

impl WorkResponse {
    /// The jobs, with their times converted to the local clock.
    pub(super) fn into_jobs(self) -> Vec<Job> {
        let here = clock::now();
        let there = self.now.as_deref().and_then(|now| rfc3339::parse(now).ok());
        let ahead = there.map_or(Millis(0), |there| here.since(there));
        self.jobs.into_iter().map(|item| item.read(ahead)).collect()
    }
}

impl WorkItem {
    fn read(self, ahead: Millis) -> Job {
        let amount = |text: &RawValue| Credits::parse(text.get(), DECIMALS).ok();
        let deadline = self.deadline.as_deref().and_then(|text| rfc3339::parse(text).ok());
        Job {
            id: self.id,
            epoch: self.epoch,
            skill: self.skill,
            input: self.input.get().to_owned(),
            requester: self.requester.unwrap_or_default(),
            budget: self.budget.as_deref().and_then(amount).unwrap_or(Credits::ZERO),
            deadline: deadline.map(|Timestamp(at)| Timestamp(at.saturating_add(ahead.0))),
            time_limit: Duration::MAX,
        }
    }
}

/// Polls for work; the hub waits until something changes.
pub(super) async fn fetch_work(
    hub: &Hub,
    instance: Option<&str>,
    known: &KnownAssignments,
    wait: u32,
) -> Result<WorkResponse, CallError> {
    let (limit, known) = known.query();
    let instance = instance.map(|name| format!("&instance={name}")).unwrap_or_default();
    let path = format!("/v1/work?wait={wait}&limit={limit}&known={known}{instance}");
    let (_, text) = hub.call_text(Method::GET, &path, None).await?;
    serde_json::from_str(&text).map_err(|error| CallError::Unreadable(error.to_string()))
}

/// Checks whether another program already works for the agent. Other errors are found later.
pub(in crate::agent) async fn check_instance(hub: &Hub, instance: &str) -> Result<(), CallError> {
    let path = format!("/v1/work?wait=0&limit=0&instance={instance}");
    match hub.call_text(Method::GET, &path, None).await {
        Err(error @ CallError::Refused { status: 409, .. }) => Err(error),
        _ => Ok(()),
    }
}
