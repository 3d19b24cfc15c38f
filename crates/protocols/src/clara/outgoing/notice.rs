//! Notices that the spec does not have: the state of a task or an offer, with a sentence for
//! people.

use super::OutgoingMessage;

/// A notice to a bidder or a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskNotice<'a> {
    /// To a bidder: the offer was received.
    OfferReceived {
        /// The bidding agent.
        agent_id: &'a str,
    },
    /// To a bidder: another offer was accepted.
    OfferRejected {
        /// The bidding agent.
        agent_id: &'a str,
    },
    /// To the requester: there was no offer.
    QueryFailed,
    /// To the requester: the task waits for an agent (R56).
    TaskQueued,
    /// To the requester: the named agent declined (R42).
    TaskUnassigned,
    /// To the requester: the named agent failed.
    TaskFailed,
    /// To the requester: the deadline passed (R62).
    TaskExpired,
}

impl TaskNotice<'_> {
    const fn action(self) -> &'static str {
        match self {
            Self::OfferReceived { .. } => "Offer-Received",
            Self::OfferRejected { .. } => "Offer-Rejected",
            Self::QueryFailed => "Query-Failed",
            Self::TaskQueued => "Task-Queued",
            Self::TaskUnassigned => "Task-Unassigned",
            Self::TaskFailed | Self::TaskExpired => "Task-Expired",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::OfferReceived { .. } => "The offer is valid until the auction closes",
            Self::OfferRejected { .. } => "Another offer was accepted",
            Self::QueryFailed => "No agent made an offer; the reward was released",
            Self::TaskQueued => "The task is queued for an agent; the reward stays held",
            Self::TaskUnassigned => "The agent declined the task; the reward was released",
            Self::TaskFailed => "The agent failed to do the task; the reward was released",
            Self::TaskExpired => "The task was not completed in time; the reward was released",
        }
    }

    const fn agent_id(&self) -> Option<&str> {
        match self {
            Self::OfferReceived { agent_id } | Self::OfferRejected { agent_id } => Some(agent_id),
            Self::QueryFailed
            | Self::TaskQueued
            | Self::TaskUnassigned
            | Self::TaskFailed
            | Self::TaskExpired => None,
        }
    }
}

impl OutgoingMessage {
    /// A notice about a task.
    pub fn notice(to: &str, task_id: &str, notice: TaskNotice<'_>) -> Self {
        Self::new(to, notice.action())
            .about(task_id)
            .maybe_tag("Agent-Id", notice.agent_id())
            .data(notice.sentence())
    }

    /// Adds the reason, as its author wrote it.
    pub fn with_reason(self, reason: Option<&str>) -> Self {
        self.maybe_tag("Reason", reason)
    }
}
