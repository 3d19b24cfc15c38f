//! Events that a working agent emits.

use std::sync::Arc;

use crate::agent::outcome::Outcome;
use crate::call::CallError;

/// Receives the events.
pub type Tell = Arc<dyn Fn(Told) + Send + Sync>;

/// An event of a working agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The agent is registered and working.
    AtWork {
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
    ServesPeers {
        /// The agent's name.
        agent: String,
        /// Its URL.
        url: String,
    },
    /// The hub is not reachable yet; the agent waits. Emitted at every check.
    Waiting {
        /// The hub's URL.
        hub: String,
    },
    /// The hub no longer knows the agent; it registers again.
    Forgotten,
    /// A job started.
    Took {
        /// The job's id.
        job: String,
        /// The requested skill.
        skill: String,
    },
    /// A job ended, and the hub has its result.
    Ended {
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
    Refused {
        /// The job's id.
        job: String,
        /// The hub's reason.
        why: String,
    },
    /// An offer was sent for a job.
    Offered {
        /// The job's id.
        job: String,
        /// The price, as decimal text.
        price: String,
    },
    /// The hub cancelled an assignment.
    CalledOff {
        /// The job's id.
        job: String,
    },
    /// An action failed and is retried.
    Trouble {
        /// The action that failed.
        what: &'static str,
        /// The reason.
        why: String,
    },
    /// An action for a job failed and is not retried.
    Mishap {
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
    Back,
}

impl Told {
    /// Something failed and is retried.
    pub(in crate::agent) fn trouble(what: &'static str, error: &CallError) -> Self {
        match error.is_suspended() {
            true => Self::Suspended,
            false => Self::Trouble { what, why: error.to_string() },
        }
    }
}
