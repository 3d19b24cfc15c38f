//! What is asked of the hub, and what it answers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::kit::stamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::job::Job;
use crate::agent::record::Turn;
use crate::call::{CallError, Hub};
use crate::clock;

/// Decimals an amount may have.
const DECIMALS: usize = 6;

/// Turns in hand at a time; the hub keeps the rest, and may give it to others.
const HELD_MAX: usize = 150;
/// Turns the hub lists at once.
pub(super) const LISTED_MAX: usize = 50;

/// Turns the hub need not tell us of again.
#[derive(Clone, Debug, Default)]
pub(super) struct InHand(Arc<Mutex<BTreeSet<Turn>>>);

impl InHand {
    pub(super) fn add(&self, turn: Turn) {
        self.lock().insert(turn);
    }

    /// Forgets every turn of these jobs; whether any was known.
    pub(super) fn forget(&self, jobs: &[String]) -> bool {
        let mut held = self.lock();
        let before = held.len();
        held.retain(|turn| !jobs.contains(&turn.id));
        held.len() < before
    }

    /// How many more there is room for, and what there is.
    fn listed(&self) -> (usize, String) {
        let held = self.lock();
        let names: Vec<String> =
            held.iter().take(HELD_MAX).map(|turn| format!("{}.{}", turn.id, turn.turn)).collect();
        (HELD_MAX.saturating_sub(held.len()).min(LISTED_MAX), names.join(","))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Turn>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is new about what is in our hands.
#[derive(Debug, Deserialize)]
pub(super) struct Work {
    pub(super) jobs: Vec<Item>,
    /// What was taken away.
    #[serde(default)]
    pub(super) gone: Vec<String>,
    /// There are more jobs than were listed.
    #[serde(default)]
    pub(super) more: bool,
    /// What time it is at the hub.
    #[serde(default)]
    now: Option<String>,
}

/// One job of it.
#[derive(Debug, Deserialize)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) epoch: u32,
    skill: String,
    input: Box<RawValue>,
    requester: Option<String>,
    budget: Option<Box<RawValue>>,
    deadline: Option<String>,
}

impl Work {
    /// The jobs, with their times as this machine's clock tells them.
    pub(super) fn read(self) -> Vec<Job> {
        let here = clock::now();
        let there = self.now.as_deref().and_then(|now| stamp::parse(now).ok());
        let ahead = there.map_or(Millis(0), |there| here.since(there));
        self.jobs.into_iter().map(|item| item.read(ahead)).collect()
    }
}

impl Item {
    fn read(self, ahead: Millis) -> Job {
        let amount = |text: &RawValue| Credits::parse(text.get(), DECIMALS).ok();
        let deadline = self.deadline.as_deref().and_then(|text| stamp::parse(text).ok());
        Job {
            id: self.id,
            turn: self.epoch,
            skill: self.skill,
            input: self.input.get().to_owned(),
            requester: self.requester.unwrap_or_default(),
            budget: self.budget.as_deref().and_then(amount).unwrap_or(Credits::ZERO),
            deadline: deadline.map(|Timestamp(at)| Timestamp(at.saturating_add(ahead.0))),
            time_limit: Duration::MAX,
        }
    }
}

/// Asks for work, waiting for news of it.
pub(super) async fn work(
    hub: &Hub,
    instance: Option<&str>,
    known: &InHand,
    wait: u32,
) -> Result<Work, CallError> {
    let (limit, known) = known.listed();
    let instance = instance.map(|name| format!("&instance={name}")).unwrap_or_default();
    let path = format!("/v1/work?wait={wait}&limit={limit}&known={known}{instance}");
    let (_, text) = hub.call_text(Method::GET, &path, None).await?;
    serde_json::from_str(&text).map_err(|error| CallError::Unreadable(error.to_string()))
}

/// Whether another program works for the agent already; whatever else may be wrong is found later.
pub(in crate::agent) async fn is_ours(hub: &Hub, instance: &str) -> Result<(), CallError> {
    let path = format!("/v1/work?wait=0&limit=0&instance={instance}");
    match hub.call_text(Method::GET, &path, None).await {
        Err(error @ CallError::Refused { status: 409, .. }) => Err(error),
        _ => Ok(()),
    }
}
