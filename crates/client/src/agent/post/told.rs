//! What an agent at work has to tell whoever watches it.

use std::sync::Arc;

use crate::agent::outcome::Outcome;
use crate::call::CallError;

/// Who is told.
pub type Tell = Arc<dyn Fn(Told) + Send + Sync>;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The agent is registered and at work.
    AtWork {
        /// Its name.
        agent: String,
        /// Its id.
        agent_id: String,
        /// Who gets what it earns.
        owner: String,
        /// The hub's address.
        hub: String,
    },
    /// The agent answers peers.
    ServesPeers {
        /// Its name.
        agent: String,
        /// Where.
        url: String,
    },
    /// There is no hub yet, and it is waited for. This is told at every look.
    Waiting {
        /// Where it should be.
        hub: String,
    },
    /// The hub does not know the agent any more; it registers again.
    Forgotten,
    /// Work came.
    Took {
        /// The job.
        job: String,
        /// What is wanted.
        skill: String,
    },
    /// Work ended, and the hub knows.
    Ended {
        /// The job.
        job: String,
        /// What came of it.
        outcome: Outcome,
        /// What it earned, in decimal text.
        paid: Option<String>,
        /// The hub had heard it before: from an earlier try, or from another program.
        repeated: bool,
    },
    /// Work ended, and the hub does not want to know.
    Refused {
        /// The job.
        job: String,
        /// Why, in the hub's words.
        why: String,
    },
    /// A price was named for a job.
    Offered {
        /// The job.
        job: String,
        /// In decimal text.
        price: String,
    },
    /// The hub took a job away.
    CalledOff {
        /// The job.
        job: String,
    },
    /// Something did not work and is tried again.
    Trouble {
        /// What could not be done.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// Something about a job did not work, and is not tried again.
    Mishap {
        /// The job.
        job: String,
        /// What could not be done.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// The hub's operator has suspended the agent; it goes on once it is resumed. This is told at
    /// every try.
    Suspended,
    /// What did not work works again.
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
