//! Events that a working agent emits.

use std::sync::Arc;

use crate::agent::job::Outcome;
use crate::call::CallError;

/// Receives the events.
pub type EventCallback = Arc<dyn Fn(AgentEvent) + Send + Sync>;

/// An event of a working agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// The agent is registered and working.
    Started {
        /// The agent's name.
        agent: String,
        /// The agent's id.
        agent_id: String,
        /// The owner that receives its earnings.
        owner: String,
        /// The hub's URL.
        hub: String,
    },
    /// The agent serves peers.
    ServingPeers {
        /// The agent's name.
        agent: String,
        /// Its URL.
        url: String,
    },
    /// The hub is not reachable yet; the agent waits. Emitted at every check.
    WaitingForHub {
        /// The hub's URL.
        hub: String,
    },
    /// The hub no longer knows the agent; it registers again.
    Reregistering,
    /// The agent's skills have changed, and it is registered with the new ones.
    SkillsChanged {
        /// The names of all skills.
        skills: Vec<String>,
    },
    /// A job started.
    JobStarted {
        /// The job's id.
        job: String,
        /// The requested skill.
        skill: String,
    },
    /// A job ended, and the hub has its result.
    JobEnded {
        /// The job's id.
        job: String,
        /// The outcome.
        outcome: Outcome,
        /// What it earned, as decimal text.
        paid: Option<String>,
        /// The hub already had this result, from an earlier attempt or from another program.
        repeated: bool,
    },
    /// A job ended, and the hub refused its result.
    ResultRefused {
        /// The job's id.
        job: String,
        /// The hub's reason.
        reason: String,
    },
    /// The requester of a job was asked.
    QuestionAsked {
        /// The job's id.
        job: String,
        /// The question.
        question: String,
    },
    /// An offer was sent for a job.
    OfferSent {
        /// The job's id.
        job: String,
        /// The price, as decimal text.
        price: String,
    },
    /// The hub cancelled an assignment.
    JobCancelled {
        /// The job's id.
        job: String,
    },
    /// An action failed and is retried.
    Retrying {
        /// The action that failed.
        action: &'static str,
        /// The reason.
        why: String,
    },
    /// An action for a job failed and is not retried.
    JobError {
        /// The job's id.
        job: String,
        /// The action that failed.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// The hub's operator has suspended the agent; it continues when it is resumed. Emitted at
    /// every attempt.
    Suspended,
    /// The last failure is over.
    Recovered,
}

impl AgentEvent {
    /// Something failed and is retried.
    pub(in crate::agent) fn from_error(action: &'static str, error: &CallError) -> Self {
        if error.is_suspended() {
            return Self::Suspended;
        }
        Self::Retrying { action, why: error.to_string() }
    }
}
