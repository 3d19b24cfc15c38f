//! Answers: what a command gives back once it is committed.

use std::sync::Arc;

use crate::agent::{Agent, Desk};
use crate::id::{AgentId, JobId, NoticeId, PostingId};
use crate::job::{Job, State};
use crate::ledger::Transfer;
use crate::memory::Receipt;
use crate::money::Credits;
use crate::owner::Owner;

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done and there is nothing to tell.
    Done,
    Agent {
        agent: Arc<Agent>,
        desk: Arc<Desk>,
        new: bool,
        /// Whether it had been taken off the lists and is on them again.
        returned: bool,
    },
    Account {
        owner: Arc<Owner>,
        granted: Credits,
    },
    Paid {
        transfer: Arc<Transfer>,
        repeated: bool,
    },
    Job {
        job: Arc<Job>,
        repeated: bool,
    },
    Jobs(Vec<Arc<Job>>),
    /// How far an inbox is acknowledged.
    Position(u64),
    /// A signed order was taken, now or before: by whom, about which job, and how that stood then.
    Heard {
        by: AgentId,
        job: Option<JobId>,
        state: Option<State>,
        repeated: bool,
    },
    /// A posted order was carried out or refused, now or before; its posting says which.
    Posted {
        posting: PostingId,
        repeated: bool,
    },
    /// A message is in its receiver's inbox.
    Sent {
        notice: NoticeId,
        repeated: bool,
    },
}

impl Answer {
    /// What to write down so that this answer can be told again.
    pub fn receipt(&self) -> Receipt {
        match self {
            // A signed order remembers itself, for ever.
            Self::Done
            | Self::Position(_)
            | Self::Jobs(_)
            | Self::Heard { .. }
            | Self::Posted { .. } => Receipt::Nothing,
            Self::Sent { notice, .. } => Receipt::Message(*notice),
            Self::Agent { agent, .. } => Receipt::Agent(agent.id),
            Self::Account { owner, .. } => Receipt::Owner(owner.id),
            Self::Paid { transfer, .. } => Receipt::Transfer(transfer.id),
            Self::Job { job, .. } => Receipt::Job(job.id),
        }
    }
}
