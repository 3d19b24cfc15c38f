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
use crate::call::{CallError, Hub};
use crate::clock;

/// Decimals an amount may have.
const DECIMALS: usize = 6;

/// Jobs the hub need not tell us of again.
#[derive(Clone, Debug, Default)]
pub(super) struct InHand(Arc<Mutex<BTreeSet<String>>>);

impl InHand {
    pub(super) fn set(&self, ids: BTreeSet<String>) {
        *self.lock() = ids;
    }

    fn listed(&self) -> String {
        let ids: Vec<String> = self.lock().iter().cloned().collect();
        ids.join(",")
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything that is in our hands.
#[derive(Debug, Deserialize)]
pub(super) struct Work {
    pub(super) jobs: Vec<Item>,
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
pub(super) async fn work(hub: &Hub, known: &InHand, wait: u32) -> Result<Work, CallError> {
    let path = format!("/v1/work?wait={wait}&known={}", known.listed());
    let (_, text) = hub.call_text(Method::GET, &path, None).await?;
    serde_json::from_str(&text).map_err(|error| CallError::Unreadable(error.to_string()))
}
