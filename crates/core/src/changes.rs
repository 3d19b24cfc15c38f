//! Changes: all rows that one command, or one batch of commands, changes.
//!
//! Changed rows are kept once each, in key order, because a store writes that order fastest. Rows
//! that are only added are kept in the order they came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::key::Key;
use crate::agent::{Agent, Desk};
use crate::alias::{Alias, Claim};
use crate::event::Line;
use crate::id::*;
use crate::job::Job;
use crate::job::select::Turn;
use crate::ledger::{Entry, Hash, Transfer};
use crate::market::Posting;
use crate::idempotency::{Memory, Remembered};
use crate::message::inbox::Mailbox;
use crate::money::Credits;
use crate::notice::{Arrival, Notice, Push};
use crate::owner::Owner;
use crate::reputation::Outcome;
use crate::time::Timestamp;

/// A batch of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub agents: BTreeMap<AgentId, Arc<Agent>>,
    pub desks: BTreeMap<AgentId, Arc<Desk>>,
    pub mailboxes: BTreeMap<AgentId, Mailbox>,
    /// Inboxes that changed in a way that cannot be rebuilt from notices, so their rows must be
    /// written.
    pub settled: BTreeSet<AgentId>,
    pub owners: BTreeMap<OwnerId, Arc<Owner>>,
    pub jobs: BTreeMap<JobId, Arc<Job>>,
    pub keys: BTreeMap<KeyId, Arc<Key>>,
    pub turns: BTreeMap<String, Arc<Turn>>,
    /// `None` once the delivery succeeded.
    pub pushes: BTreeMap<NoticeId, Option<Arc<Push>>>,
    /// Saved answers as the store keeps them.
    pub memories: BTreeMap<AnswerId, Arc<Memory>>,
    /// The same as the world holds them. A start reads only these.
    pub remembered: BTreeMap<AnswerId, Arc<Remembered>>,
    pub aliases: Vec<Alias>,
    pub claims: Vec<Claim>,
    pub entries: Vec<Entry>,
    pub transfers: Vec<Arc<Transfer>>,
    pub notices: Vec<Arc<Notice>>,
    pub arrivals: Vec<Arrival>,
    pub outcomes: Vec<Outcome>,
    pub lines: Vec<Arc<Line>>,
    pub postings: Vec<Arc<Posting>>,
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
    #[serde(default = "first_posting")]
    pub posting: PostingId,
    /// Orders submitted to the market so far, and messages the market sent.
    #[serde(default)]
    pub posts: u64,
    #[serde(default)]
    pub sent: u64,
    /// Raised at each restore from a backup, so that a restored hub differs from the original.
    #[serde(default = "first_epoch")]
    pub epoch: u64,
    /// Hash of the newest ledger entry.
    pub chain: Hash,
    /// When the last change was written.
    #[serde(default)]
    pub at: Timestamp,
    /// Number of payments between owners so far, and their sum.
    pub payments: u64,
    pub volume: Credits,
}

fn first_posting() -> PostingId {
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
            posting: first_posting(),
            posts: 0,
            sent: 0,
            epoch: first_epoch(),
            chain: Hash::default(),
            at: Timestamp::default(),
            payments: 0,
            volume: Credits::ZERO,
        }
    }
}

/// Expired rows to remove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Saved answers past their retention time.
    pub answers: Vec<AnswerId>,
    /// Keys that have expired, with the time they did.
    pub keys: Vec<(Timestamp, KeyId)>,
}

impl Forgotten {
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.keys.is_empty()
    }
}

impl Changes {
    /// Merges the changes of a later command of the same batch; the later row wins.
    pub fn absorb(&mut self, later: Self) {
        self.agents.extend(later.agents);
        self.desks.extend(later.desks);
        self.mailboxes.extend(later.mailboxes);
        self.settled.extend(later.settled);
        self.owners.extend(later.owners);
        self.jobs.extend(later.jobs);
        self.keys.extend(later.keys);
        self.turns.extend(later.turns);
        self.pushes.extend(later.pushes);
        self.memories.extend(later.memories);
        self.remembered.extend(later.remembered);
        self.aliases.extend(later.aliases);
        self.claims.extend(later.claims);
        self.entries.extend(later.entries);
        self.transfers.extend(later.transfers);
        self.notices.extend(later.notices);
        self.arrivals.extend(later.arrivals);
        self.outcomes.extend(later.outcomes);
        self.lines.extend(later.lines);
        self.postings.extend(later.postings);
        self.next = later.next.or(self.next);
    }

    /// How many rows it changes or adds.
    pub fn rows(&self) -> usize {
        let changed = self.agents.len()
            + self.desks.len()
            + self.mailboxes.len()
            + self.owners.len()
            + self.jobs.len()
            + self.keys.len()
            + self.turns.len()
            + self.pushes.len()
            + self.memories.len();
        let added = self.aliases.len()
            + self.claims.len()
            + self.entries.len()
            + self.transfers.len()
            + self.notices.len()
            + self.arrivals.len()
            + self.outcomes.len()
            + self.lines.len()
            + self.postings.len();
        changed + added
    }

    /// Whether there is nothing to write. An inbox's presented position may be written with any
    /// later change: losing it only costs a repeated presentation.
    pub fn is_empty(&self) -> bool {
        self.next.is_none()
    }
}
