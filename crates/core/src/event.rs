//! Events: the hub's history, one line per command, for operators and auditors.
//!
//! Lines name ids and never carry payloads, so the history reveals no content.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, EventId, JobId, NoticeId, OwnerId};
use crate::job::{Cause, State};
use crate::money::Credits;
use crate::time::Timestamp;

/// What one command did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryLine {
    pub id: EventId,
    pub at: Timestamp,
    /// The operator issued the command. A line covers one command, so this applies to all its
    /// events.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_operator: bool,
    pub events: Vec<Event>,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    #[serde(rename = "agent_enrolled")]
    AgentRegistered {
        agent: AgentId,
        owner: OwnerId,
    },
    AgentUpdated {
        agent: AgentId,
    },
    AgentRemoved {
        agent: AgentId,
        by_operator: bool,
    },
    /// The agent reported its status.
    #[serde(rename = "agent_stood")]
    AgentStatusReported {
        agent: AgentId,
    },
    /// The agent started working, or has no work left.
    AgentAtWork {
        agent: AgentId,
    },
    AgentFree {
        agent: AgentId,
    },
    /// The outcome of one of its jobs was recorded.
    #[serde(rename = "agent_judged")]
    AgentOutcomeRecorded {
        agent: AgentId,
        job: JobId,
        ok: bool,
    },
    KeyIssued {
        agent: AgentId,
    },
    OperatorKeyIssued,
    KeyRevoked {
        agent: AgentId,
    },
    SecretRenewed {
        agent: AgentId,
    },
    AgentSuspended {
        agent: AgentId,
    },
    AgentResumed {
        agent: AgentId,
    },
    OwnerSuspended {
        owner: OwnerId,
    },
    OwnerResumed {
        owner: OwnerId,
    },
    /// The store was restored from a backup. History before this line is shared with the original.
    HubRestored {
        epoch: u64,
    },
    AccountOpened {
        owner: OwnerId,
    },
    Granted {
        owner: OwnerId,
        amount: Credits,
        welcome: bool,
    },
    Burned {
        owner: OwnerId,
        amount: Credits,
    },
    Transferred {
        from: OwnerId,
        to: OwnerId,
        amount: Credits,
    },
    SettlementConfirmed {
        job: JobId,
    },
    JobOpened {
        job: JobId,
    },
    JobAssigned {
        job: JobId,
        worker: AgentId,
        epoch: u32,
    },
    JobQueued {
        job: JobId,
    },
    JobDeferred {
        job: JobId,
        until: Timestamp,
    },
    JobStarted {
        job: JobId,
    },
    JobDeclined {
        job: JobId,
        worker: AgentId,
    },
    JobOffered {
        job: JobId,
        by: AgentId,
    },
    JobProgressed {
        job: JobId,
    },
    /// The worker asked a question; the requester answered it.
    JobInputRequested {
        job: JobId,
    },
    JobInputProvided {
        job: JobId,
    },
    JobEnded {
        job: JobId,
        state: State,
        cause: Option<Cause>,
        paid: Credits,
    },
    JobRequeued {
        job: JobId,
    },
    ReportedAbovePrice {
        job: JobId,
        reported: Credits,
        paid: Credits,
    },
    SentByOperator {
        from: AgentId,
        to: AgentId,
    },
    #[serde(rename = "push_delivered")]
    DeliverySucceeded {
        notice: NoticeId,
    },
    #[serde(rename = "push_failed")]
    DeliveryFailed {
        notice: NoticeId,
        attempts: u32,
    },
    #[serde(rename = "push_given_up")]
    DeliveryAbandoned {
        notice: NoticeId,
    },
    #[serde(rename = "endpoint_switched_off")]
    EndpointDisabled {
        agent: AgentId,
    },
}

impl Event {
    /// The agent whose state or standing it changed, for watchers of that agent.
    pub fn watched_agent(&self) -> Option<AgentId> {
        match self {
            Self::AgentStatusReported { agent }
            | Self::AgentAtWork { agent }
            | Self::AgentFree { agent }
            | Self::AgentOutcomeRecorded { agent, .. } => Some(*agent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_from_before_say_nothing_of_the_operator_and_are_read_all_the_same() {
        let old = r#"{"id":7,"at":5,"events":[{"event":"job_requeued","job":3}]}"#;
        let line: HistoryLine = serde_json::from_str(old).unwrap();
        assert!(!line.by_operator);
        assert_eq!(serde_json::to_string(&line).unwrap(), old);
        let line = HistoryLine { by_operator: true, ..line };
        let kept = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<HistoryLine>(&kept).unwrap(), line);
    }
}
