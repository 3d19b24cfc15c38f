//! Changes: all rows that one command, or one batch of commands, changes.
//!
//! Changed rows are kept once each, in key order, because a store writes that order fastest. Rows
//! that are only added are kept in the order they came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::key::Key;
use crate::agent::{Agent, AgentState};
use crate::alias::{Alias, Claim};
use crate::event::HistoryLine;
use crate::id::*;
use crate::idempotency::{IdempotencyEntry, IdempotencyRecord, Receipt};
use crate::job::Job;
use crate::job::select::Rotation;
use crate::ledger::{Entry, EntryHash, Transfer};
use crate::market::MarketRecord;
use crate::message::inbox::Inbox;
use crate::money::Credits;
use crate::notice::{CompletedDelivery, Delivery, Notice};
use crate::owner::Owner;
use crate::reputation::Outcome;
use crate::time::Timestamp;

/// A batch of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    #[serde(with = "crate::encoding::named_fields")]
    pub agents: BTreeMap<AgentId, Arc<Agent>>,
    #[serde(with = "crate::encoding::named_fields")]
    pub agent_states: BTreeMap<AgentId, Arc<AgentState>>,
    pub inboxes: BTreeMap<AgentId, Inbox>,
    /// Inboxes that changed in a way that cannot be rebuilt from notices, so their rows must be
    /// written.
    pub inboxes_to_persist: BTreeSet<AgentId>,
    #[serde(with = "crate::encoding::named_fields")]
    pub owners: BTreeMap<OwnerId, Arc<Owner>>,
    #[serde(with = "crate::encoding::named_fields")]
    pub jobs: BTreeMap<JobId, Arc<Job>>,
    pub keys: BTreeMap<KeyId, Arc<Key>>,
    pub rotations: BTreeMap<String, Arc<Rotation>>,
    /// `None` once the delivery succeeded.
    pub deliveries: BTreeMap<NoticeId, Option<Arc<Delivery>>>,
    /// Saved answers as the store keeps them.
    pub idempotency_records: BTreeMap<AnswerId, Arc<IdempotencyRecord>>,
    /// The same as the world holds them. A start reads only these.
    pub idempotency_entries: BTreeMap<AnswerId, Arc<IdempotencyEntry>>,
    pub aliases: Vec<Alias>,
    pub claims: Vec<Claim>,
    pub entries: Vec<Entry>,
    pub transfers: Vec<Arc<Transfer>>,
    pub notices: Vec<Arc<Notice>>,
    pub completed_deliveries: BTreeMap<NoticeId, CompletedDelivery>,
    #[serde(with = "crate::encoding::named_fields")]
    pub outcomes: Vec<Outcome>,
    #[serde(with = "crate::encoding::named_fields")]
    pub history_lines: Vec<Arc<HistoryLine>>,
    #[serde(with = "crate::encoding::named_fields")]
    pub market_records: Vec<Arc<MarketRecord>>,
    pub next: Option<Counters>,
}

/// The next ids to hand out, and the running sums of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub agent: AgentId,
    pub owner: OwnerId,
    pub job: JobId,
    pub entry: EntryId,
    pub transfer: TransferId,
    pub notice: NoticeId,
    pub event: EventId,
    pub outcome: OutcomeId,
    pub key: KeyId,
    pub alias: AliasId,
    pub claim: ClaimId,
    pub answer: AnswerId,
    #[serde(default = "first_market_record")]
    #[serde(rename = "posting")]
    pub market_record: PostingId,
    /// Orders submitted to the market so far, and messages the market sent.
    #[serde(default)]
    #[serde(rename = "posts")]
    pub market_orders: u64,
    #[serde(default)]
    #[serde(rename = "sent")]
    pub market_messages: u64,
    /// Raised at each restore from a backup, so that a restored hub differs from the original.
    #[serde(default = "first_epoch")]
    pub epoch: u64,
    /// Hash of the newest ledger entry.
    pub chain: EntryHash,
    /// When the last change was written.
    #[serde(default)]
    pub at: Timestamp,
    /// Number of payments between owners so far, and their sum.
    pub payments: u64,
    pub volume: Credits,
}

fn first_market_record() -> PostingId {
    PostingId(1)
}

fn first_epoch() -> u64 {
    1
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            agent: AgentId(1),
            // 0 is the issue account.
            owner: OwnerId(1),
            job: JobId(1),
            entry: EntryId(1),
            transfer: TransferId(1),
            notice: NoticeId(1),
            event: EventId(1),
            outcome: OutcomeId(1),
            key: KeyId(1),
            alias: AliasId(1),
            claim: ClaimId(1),
            answer: AnswerId(1),
            market_record: first_market_record(),
            market_orders: 0,
            market_messages: 0,
            epoch: first_epoch(),
            chain: EntryHash::default(),
            at: Timestamp::default(),
            payments: 0,
            volume: Credits::ZERO,
        }
    }
}

/// Expired rows to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiredRows {
    /// Saved answers past their retention time.
    pub answers: Vec<AnswerId>,
    /// Keys that have expired, with the time they did.
    pub keys: Vec<(Timestamp, KeyId)>,
}

impl ExpiredRows {
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.keys.is_empty()
    }
}

/// What one batch commits: the content of its record in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    pub changes: Changes,
    pub expired: ExpiredRows,
    /// What other nodes need besides the rows. Empty for a hub of one node.
    pub for_nodes: ForNodes,
}

/// The part of a batch that only the nodes of a cluster read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForNodes {
    /// The time at which the batch was decided.
    pub at: Timestamp,
    /// When agents were last seen. A hub of one node keeps this in memory only.
    pub last_seen: Vec<(AgentId, Timestamp)>,
    /// What the commands did that other nodes passed on.
    pub receipts: Vec<ForwardedReceipt>,
}

/// What a command did that a node passed on to the writer: proof for that node that the command is
/// committed, also if the writer is gone before it answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForwardedReceipt {
    /// The node that passed it on, and that node's number for it.
    pub node: u64,
    pub number: u64,
    pub receipt: Receipt,
}

impl Batch {
    /// The batch of a hub of one node.
    pub fn new(changes: Changes, expired: ExpiredRows) -> Self {
        Self { changes, expired, for_nodes: ForNodes::default() }
    }
}

impl ForNodes {
    /// Whether other nodes would miss something without a record.
    pub fn is_empty(&self) -> bool {
        self.last_seen.is_empty() && self.receipts.is_empty()
    }
}

impl Changes {
    /// Merges the changes of a later command of the same batch; the later row wins.
    pub fn merge(&mut self, later: Self) {
        self.agents.extend(later.agents);
        self.agent_states.extend(later.agent_states);
        self.inboxes.extend(later.inboxes);
        self.inboxes_to_persist.extend(later.inboxes_to_persist);
        self.owners.extend(later.owners);
        self.jobs.extend(later.jobs);
        self.keys.extend(later.keys);
        self.rotations.extend(later.rotations);
        self.deliveries.extend(later.deliveries);
        self.idempotency_records.extend(later.idempotency_records);
        self.idempotency_entries.extend(later.idempotency_entries);
        self.aliases.extend(later.aliases);
        self.claims.extend(later.claims);
        self.entries.extend(later.entries);
        self.transfers.extend(later.transfers);
        self.notices.extend(later.notices);
        self.completed_deliveries.extend(later.completed_deliveries);
        self.outcomes.extend(later.outcomes);
        self.history_lines.extend(later.history_lines);
        self.market_records.extend(later.market_records);
        self.next = later.next.or(self.next);
    }

    /// How many rows it changes or adds.
    pub fn row_count(&self) -> usize {
        let changed = self.agents.len()
            + self.agent_states.len()
            + self.inboxes.len()
            + self.owners.len()
            + self.jobs.len()
            + self.keys.len()
            + self.rotations.len()
            + self.deliveries.len()
            + self.idempotency_records.len();
        let added = self.aliases.len()
            + self.claims.len()
            + self.entries.len()
            + self.transfers.len()
            + self.notices.len()
            + self.completed_deliveries.len()
            + self.outcomes.len()
            + self.history_lines.len()
            + self.market_records.len();
        changed + added
    }

    /// Whether there is nothing to write. An inbox's presented position may be written with any
    /// later change: losing it only costs a repeated presentation.
    pub fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}
