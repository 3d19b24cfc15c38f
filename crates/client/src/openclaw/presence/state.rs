//! The shared state of an online agent: its condition, its work history, and what the hub has not
//! received yet.

use std::collections::VecDeque;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::reputation::Score;
use rialto_protocols::openclaw::wire::words::{ErrorType, Status, UpdateType};
use rialto_protocols::openclaw::wire::{ReportedStatus, ReputationMetrics, StatusDetails};
use tokio::sync::watch;
use uuid::Uuid;

use super::history::{FinishedCollaboration, WorkHistory};
use crate::clock;

/// Maximum number of claims that wait for the hub; the oldest is dropped first.
const CLAIMS_MAX: usize = 1_000;

/// What an agent reports about itself, apart from its load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SelfReport {
    Healthy,
    Error { code: String, message: String, error_type: ErrorType },
    Maintenance { until: Timestamp, reason: Option<String> },
}

/// The condition of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentCondition {
    pub(super) self_report: SelfReport,
    /// How many collaborations it works on.
    pub(super) active: usize,
}

/// A reputation claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) update_type: UpdateType,
    pub(super) collaboration_id: Option<Uuid>,
    pub(super) score: Score,
    pub(super) metrics: ReputationMetrics,
    pub(super) at: Timestamp,
}

/// The current state.
#[derive(Clone, Debug)]
pub(super) struct PresenceState {
    pub(super) condition: AgentCondition,
    /// When the condition last changed.
    pub(super) since: Timestamp,
    /// The condition last reported to the hub.
    reported: Option<AgentCondition>,
    history: WorkHistory,
    claims: VecDeque<Claim>,
    last_error: Option<String>,
}

/// The state, shared by readers and writers.
#[derive(Debug)]
pub(super) struct SharedPresence(watch::Sender<PresenceState>);

impl AgentCondition {
    /// The status word for it.
    pub(super) fn status(&self) -> Status {
        match self.self_report {
            SelfReport::Healthy if self.active == 0 => Status::Idle,
            SelfReport::Healthy => Status::Busy,
            SelfReport::Error { .. } => Status::Error,
            SelfReport::Maintenance { .. } => Status::Maintenance,
        }
    }

    /// The status report for the hub.
    pub(super) fn report(&self, at: Timestamp) -> ReportedStatus {
        let active = i64::try_from(self.active).ok();
        let details = match self.self_report.clone() {
            SelfReport::Healthy => StatusDetails {
                active_tasks: active.filter(|n| *n > 0),
                ..StatusDetails::default()
            },
            SelfReport::Error { code, message, error_type } => StatusDetails {
                error_code: Some(code),
                error_message: Some(message),
                error_type: Some(error_type),
                ..StatusDetails::default()
            },
            SelfReport::Maintenance { until, reason } => StatusDetails {
                maintenance_until: Some(until),
                maintenance_reason: reason,
                ..StatusDetails::default()
            },
        };
        ReportedStatus { status: self.status(), at, details }
    }
}

impl Claim {
    /// A claim from the current work history.
    pub(super) fn of(
        history: &WorkHistory,
        update_type: UpdateType,
        collaboration_id: Option<Uuid>,
    ) -> Self {
        let (score, metrics) = (history.score(), history.metrics());
        Self { update_type, collaboration_id, score, metrics, at: clock::now() }
    }
}

impl PresenceState {
    /// The next claim about a collaboration.
    pub(super) fn next_claim(&self) -> Option<&Claim> {
        self.claims.front()
    }

    /// A periodic claim, not about a collaboration.
    pub(super) fn periodic_claim(&self) -> Claim {
        Claim::of(&self.history, UpdateType::Periodic, None)
    }
}

impl SharedPresence {
    /// The state of a healthy agent without work.
    pub(super) fn new(history: WorkHistory, now: Timestamp) -> Self {
        Self(watch::Sender::new(PresenceState {
            condition: AgentCondition { self_report: SelfReport::Healthy, active: 0 },
            since: now,
            reported: None,
            history,
            claims: VecDeque::new(),
            last_error: None,
        }))
    }

    /// Subscribes to changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<PresenceState> {
        self.0.subscribe()
    }

    pub(super) fn begin(&self) {
        self.change(|condition| condition.active += 1);
    }

    pub(super) fn end(&self) {
        self.change(|condition| condition.active = condition.active.saturating_sub(1));
    }

    pub(super) fn set_self_report(&self, report: SelfReport) {
        self.change(|condition| condition.self_report = report);
    }

    /// Records a finished collaboration, and queues a claim about it.
    pub(super) fn record_finished(&self, done: FinishedCollaboration) {
        self.0.send_modify(|state| {
            state.history.push(done);
            let kind = if done.ok { UpdateType::Completed } else { UpdateType::Failed };
            state.claims.push_back(Claim::of(&state.history, kind, Some(done.collaboration_id)));
            if state.claims.len() > CLAIMS_MAX {
                state.claims.pop_front();
            }
        });
    }

    /// Records that the hub has this condition.
    pub(super) fn set_reported(&self, condition: AgentCondition) {
        self.0.send_modify(|state| {
            state.reported = Some(condition);
            state.last_error = None;
        });
    }

    /// Removes a claim that the hub has accepted or will never accept.
    pub(super) fn remove_claim(&self, claim: &Claim, error: Option<String>) {
        self.0.send_modify(|state| {
            if state.claims.front() == Some(claim) {
                state.claims.pop_front();
            }
            state.last_error = error;
        });
    }

    /// Records that a report to the hub failed.
    pub(super) fn set_last_error(&self, why: String) {
        self.0.send_modify(|state| state.last_error = Some(why));
    }

    pub(super) fn history(&self) -> WorkHistory {
        self.0.borrow().history.clone()
    }

    pub(super) fn last_error(&self) -> Option<String> {
        self.0.borrow().last_error.clone()
    }

    /// Waits until the hub has the current condition and all claims.
    pub(super) async fn wait_until_reported(&self) {
        let is_reported = |state: &PresenceState| {
            state.reported.as_ref() == Some(&state.condition) && state.claims.is_empty()
        };
        // `self` holds the sender, so the channel cannot be closed.
        let _ = self.subscribe().wait_for(is_reported).await;
    }

    fn change(&self, change: impl FnOnce(&mut AgentCondition)) {
        self.0.send_modify(|state| {
            change(&mut state.condition);
            state.since = clock::now();
        });
    }
}
