//! Notices of ours, which the spec does not have: a word on how a task or an offer stands, and a
//! sentence for people.

use super::Outgoing;

/// Something a bidder or a requester is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// To a bidder: the offer counts.
    OfferReceived {
        /// Whose offer.
        agent_id: &'a str,
    },
    /// To a bidder: another offer was taken.
    OfferRejected {
        /// Whose offer.
        agent_id: &'a str,
    },
    /// To the requester: nobody made an offer.
    QueryFailed,
    /// To the requester: the task waits for an agent (R56).
    TaskQueued,
    /// To the requester: the one agent that was to do it will not (R42).
    TaskUnassigned,
    /// To the requester: the one agent that was to do it could not.
    TaskFailed,
    /// To the requester: the deadline passed (R62).
    TaskExpired,
}

impl Notice<'_> {
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
            Self::OfferRejected { .. } => "Another offer was taken",
            Self::QueryFailed => "No agent made an offer; the reward was released",
            Self::TaskQueued => "The task is queued for an agent; the reward stays held",
            Self::TaskUnassigned => "The agent declined the task; the reward was released",
            Self::TaskFailed => "The agent could not do the task, and the reward is free again",
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

impl Outgoing {
    /// A notice about a task.
    pub fn notice(to: &str, task_id: &str, notice: Notice<'_>) -> Self {
        Self::new(to, notice.action())
            .about(task_id)
            .maybe_tag("Agent-Id", notice.agent_id())
            .data(notice.sentence())
    }

    /// The same with why, in the words of whoever said so.
    pub fn because(self, reason: Option<&str>) -> Self {
        self.maybe_tag("Reason", reason)
    }
}
