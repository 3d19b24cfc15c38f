//! The shared state of an online agent: its condition, its work history, and what the hub has not
//! received yet.

use std::collections::VecDeque;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::message::{Details, Metrics, Report};
use rialto_protocols::openclaw::score::Score;
use rialto_protocols::openclaw::state::{ErrorType, Status, UpdateType};
use tokio::sync::watch;
use uuid::Uuid;

use super::history::{Done, Record};
use crate::clock;

/// Maximum number of claims that wait for the hub; the oldest is dropped first.
const CLAIMS_MAX: usize = 1_000;

/// What an agent reports about itself, apart from its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    Broken { code: String, message: String, error_type: ErrorType },
    Away { until: Timestamp, reason: Option<String> },
}

/// The condition of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) mood: Mood,
    /// How many collaborations it works on.
    pub(super) active: usize,
}

/// A reputation claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) update_type: UpdateType,
    pub(super) collaboration_id: Option<Uuid>,
    pub(super) score: Score,
    pub(super) metrics: Metrics,
    pub(super) at: Timestamp,
}

/// The current state.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) condition: Condition,
    /// When the condition last changed.
    pub(super) since: Timestamp,
    /// The condition last reported to the hub.
    told: Option<Condition>,
    record: Record,
    claims: VecDeque<Claim>,
    trouble: Option<String>,
}

/// The state, shared by readers and writers.
#[derive(Debug)]
pub(super) struct Book(watch::Sender<Page>);

impl Condition {
    /// The status word for it.
    pub(super) fn status(&self) -> Status {
        match self.mood {
            Mood::Well if self.active == 0 => Status::Idle,
            Mood::Well => Status::Busy,
            Mood::Broken { .. } => Status::Error,
            Mood::Away { .. } => Status::Maintenance,
        }
    }

    /// The status report for the hub.
    pub(super) fn report(&self, at: Timestamp) -> Report {
        let active = i64::try_from(self.active).ok();
        let details = match self.mood.clone() {
            Mood::Well => Details { active_tasks: active.filter(|n| *n > 0), ..Details::default() },
            Mood::Broken { code, message, error_type } => Details {
                error_code: Some(code),
                error_message: Some(message),
                error_type: Some(error_type),
                ..Details::default()
            },
            Mood::Away { until, reason } => Details {
                maintenance_until: Some(until),
                maintenance_reason: reason,
                ..Details::default()
            },
        };
        Report { status: self.status(), at, details }
    }
}

impl Claim {
    /// A claim from the current work history.
    pub(super) fn of(
        record: &Record,
        update_type: UpdateType,
        collaboration_id: Option<Uuid>,
    ) -> Self {
        let (score, metrics) = (record.score(), record.metrics());
        Self { update_type, collaboration_id, score, metrics, at: clock::now() }
    }
}

impl Page {
    /// The next claim about a collaboration.
    pub(super) fn claim(&self) -> Option<&Claim> {
        self.claims.front()
    }

    /// A periodic claim, not about a collaboration.
    pub(super) fn periodic(&self) -> Claim {
        Claim::of(&self.record, UpdateType::Periodic, None)
    }
}

impl Book {
    /// The state of a healthy agent without work.
    pub(super) fn new(record: Record, now: Timestamp) -> Self {
        let condition = Condition { mood: Mood::Well, active: 0 };
        let (told, claims, trouble) = (None, VecDeque::new(), None);
        Self(watch::Sender::new(Page { condition, since: now, told, record, claims, trouble }))
    }

    /// Subscribes to changes.
    pub(super) fn read(&self) -> watch::Receiver<Page> {
        self.0.subscribe()
    }

    pub(super) fn begin(&self) {
        self.change(|condition| condition.active += 1);
    }

    pub(super) fn end(&self) {
        self.change(|condition| condition.active = condition.active.saturating_sub(1));
    }

    pub(super) fn set(&self, mood: Mood) {
        self.change(|condition| condition.mood = mood);
    }

    /// Records a finished collaboration, and queues a claim about it.
    pub(super) fn finished(&self, done: Done) {
        self.0.send_modify(|page| {
            page.record.push(done);
            let why = if done.ok { UpdateType::Completed } else { UpdateType::Failed };
            page.claims.push_back(Claim::of(&page.record, why, Some(done.collaboration_id)));
            if page.claims.len() > CLAIMS_MAX {
                page.claims.pop_front();
            }
        });
    }

    /// Records that the hub has this condition.
    pub(super) fn status_told(&self, condition: Condition) {
        self.0.send_modify(|page| {
            page.told = Some(condition);
            page.trouble = None;
        });
    }

    /// Removes a claim that the hub has accepted or will never accept.
    pub(super) fn claim_over(&self, claim: &Claim, trouble: Option<String>) {
        self.0.send_modify(|page| {
            if page.claims.front() == Some(claim) {
                page.claims.pop_front();
            }
            page.trouble = trouble;
        });
    }

    /// Records that a report to the hub failed.
    pub(super) fn troubled(&self, why: String) {
        self.0.send_modify(|page| page.trouble = Some(why));
    }

    pub(super) fn record(&self) -> Record {
        self.0.borrow().record.clone()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.0.borrow().trouble.clone()
    }

    /// Waits until the hub has the current condition and all claims.
    pub(super) async fn settled(&self) {
        let known =
            |page: &Page| page.told.as_ref() == Some(&page.condition) && page.claims.is_empty();
        // `self` holds the sender, so the channel cannot be closed.
        let _ = self.read().wait_for(known).await;
    }

    fn change(&self, change: impl FnOnce(&mut Condition)) {
        self.0.send_modify(|page| {
            change(&mut page.condition);
            page.since = clock::now();
        });
    }
}
