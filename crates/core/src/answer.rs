//! Answers: what a command returns after it is committed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentState};
use crate::id::{AgentId, JobId, KeyId, NoticeId, PostingId};
use crate::idempotency::Receipt;
use crate::job::{Job, State};
use crate::ledger::Transfer;
use crate::money::Credits;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Done, with nothing to return.
    Done,
    Agent {
        #[serde(with = "crate::encoding::named_fields")]
        agent: Arc<Agent>,
        #[serde(with = "crate::encoding::named_fields")]
        state: Arc<AgentState>,
        new: bool,
        /// Whether the agent had been unlisted and is listed again.
        returned: bool,
    },
    Account {
        #[serde(with = "crate::encoding::named_fields")]
        owner: Arc<Owner>,
        granted: Credits,
    },
    Transfer {
        #[serde(with = "crate::encoding::named_fields")]
        transfer: Arc<Transfer>,
        repeated: bool,
    },
    Job {
        #[serde(with = "crate::encoding::named_fields")]
        job: Arc<Job>,
        repeated: bool,
    },
    Jobs(#[serde(with = "crate::encoding::named_fields")] Vec<Arc<Job>>),
    /// How far an inbox is acknowledged.
    Position(u64),
    /// A signed order was executed, now or earlier: its signer, its job, and the job's state at
    /// that time.
    SignedOrder {
        by: AgentId,
        job: Option<JobId>,
        state: Option<State>,
        repeated: bool,
    },
    /// A market order was executed or refused, now or earlier; its record says which.
    MarketOrder {
        record: PostingId,
        repeated: bool,
    },
    /// The result of a delivery is recorded; and why the report that came with it was refused, if
    /// it was.
    Delivery {
        refused: Option<Refusal>,
    },
    /// A message is in its receiver's inbox.
    Message {
        notice: NoticeId,
        repeated: bool,
    },
    /// A key was issued or revoked.
    Key {
        id: KeyId,
    },
}

impl Answer {
    /// What to save so that this answer can be given again.
    pub fn receipt(&self) -> Receipt {
        match self {
            // A signed order keeps its own claim forever.
            Self::Done
            | Self::Position(_)
            | Self::Jobs(_)
            | Self::Delivery { .. }
            | Self::SignedOrder { .. }
            | Self::MarketOrder { .. } => Receipt::Nothing,
            Self::Message { notice, .. } => Receipt::Message(*notice),
            Self::Agent { agent, .. } => Receipt::Agent(agent.id),
            Self::Account { owner, .. } => Receipt::Owner(owner.id),
            Self::Transfer { transfer, .. } => Receipt::Transfer(transfer.id),
            Self::Job { job, .. } => Receipt::Job(job.id),
            Self::Key { id } => Receipt::Key(*id),
        }
    }
}
