//! The world: all rows that decisions need in memory, as one value.
//!
//! It holds every row that decisions need often (agents, accounts, keys, live jobs) and indexes
//! over them. Finished jobs and old ids are cold rows: the lane loads them for the commands that
//! name them. The world changes only by `apply`, so copies that get the same changes are equal.

// Hash maps are only looked up by key and never iterated for a decision; iterated maps are BTrees.
#![allow(clippy::disallowed_types)]

mod agent_table;
mod agents;
mod confusables;
pub mod discover;
pub mod footprint;
pub mod id_map;
pub(crate) mod jobs;
mod keys;
mod owner_failures;
mod rules;
pub mod skills;
pub(crate) mod sorted_merge;
mod sorted_set;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::agent::key::KeyHash;
use crate::agent::{Agent, AgentState};
use crate::alias::{Alias, Claim, Digest, Protocol};
use crate::changes::{Changes, Counters, ExpiredRows};
use crate::command::Timer;
use crate::id::*;
use crate::idempotency::{IdempotencyEntry, Principal, SavedSize};
use crate::job::Job;
use crate::job::select::Rotation;
use crate::ledger::Transfer;
use crate::market::Markets;
use crate::message::inbox::Inbox;
use crate::money::Credits;
use crate::notice::Delivery;
use crate::owner::Owner;
use crate::time::Timestamp;
use agent_table::AgentTable;
use agents::OwnerAgents;
use confusables::ConfusableIndex;
use footprint::Footprint;
use id_map::IdMap;
use keys::KeyByHash;
pub use rules::Rules;
use skills::SkillIndex;
use sorted_set::SortedSet;
use waiting::WaitingJobs;

/// All hot rows and their indexes.
#[derive(Clone)]
pub struct World {
    pub rules: Rules,
    /// The protocols that publish their records.
    pub markets: Markets,
    pub next: Counters,
    agents: AgentTable,
    /// When agents go offline without further activity.
    presence_ends: SortedSet<(Timestamp, AgentId)>,
    inboxes: IdMap<AgentId, Inbox>,
    owners: IdMap<OwnerId, Arc<Owner>>,
    owner_names: HashMap<String, OwnerId>,
    suspended_owners: BTreeSet<OwnerId>,
    confusables: ConfusableIndex,
    aliases: HashMap<Protocol, HashMap<Arc<str>, AgentId>>,
    /// Names of agents other than their native ids.
    agent_aliases: HashMap<(AgentId, Protocol), Arc<str>>,
    keys: HashSet<KeyByHash>,
    /// Keys of agents besides their first.
    further_keys: IdMap<AgentId, Vec<KeyHash>>,
    /// Expiry times of keys that expire.
    key_expiries: BTreeMap<(Timestamp, KeyId), KeyHash>,
    jobs: IdMap<JobId, Arc<Job>>,
    job_uuids: IdMap<uuid::Uuid, JobId>,
    job_names: HashMap<Protocol, HashMap<String, JobId>>,
    rotations: HashMap<String, Arc<Rotation>>,
    deliveries: IdMap<NoticeId, Arc<Delivery>>,
    /// Saved answers, and the newest of each scope. An older one of the same scope stays until it
    /// expires, so that its row is removed too.
    idempotency_entries: BTreeMap<AnswerId, Arc<IdempotencyEntry>>,
    idempotency_scopes: IdMap<Digest, AnswerId>,
    /// Saved answers per caller, in total, and for callers without a key.
    saved_by_principal: HashMap<Principal, SavedSize>,
    saved_total: SavedSize,
    saved_anonymous: SavedSize,
    agents_by_owner: IdMap<OwnerId, OwnerAgents>,
    /// How often the agents of an owner have failed.
    owner_failures: IdMap<OwnerId, u64>,
    /// Agents whose published score is below their score in the hub's own ranking.
    underrated: BTreeSet<AgentId>,
    assigned_jobs: IdMap<AgentId, BTreeSet<JobId>>,
    /// Jobs deferred until their agent is back or they are approved.
    deferred_jobs: IdMap<AgentId, BTreeSet<JobId>>,
    /// When agents started their last jobs, for the last minute.
    start_times: IdMap<AgentId, VecDeque<Timestamp>>,
    /// At this many agents those that started nothing in the last minute are dropped.
    start_times_max: usize,
    /// Jobs whose worker has not read their notice yet, by its position in the inbox.
    unread: IdMap<AgentId, BTreeMap<u64, JobId>>,
    requested_jobs: IdMap<AgentId, BTreeSet<JobId>>,
    /// Jobs whose requesters invited an agent themselves, by that agent.
    inviting_jobs: IdMap<AgentId, BTreeSet<JobId>>,
    /// Bytes of input of those jobs.
    requested_bytes: IdMap<AgentId, usize>,
    /// Agents each requester has invited that have not answered; guests count as one.
    invitations: BTreeMap<Option<AgentId>, usize>,
    waiting: WaitingJobs,
    timers: BTreeSet<(Timestamp, Timer)>,
    deliveries_due: BTreeSet<(Timestamp, NoticeId)>,
    pub skills: SkillIndex,
    footprint: Footprint,
    cold_rows: ColdRows,
    /// Those of the batch before, which the store may not show yet.
    earlier_cold_rows: ColdRows,
}

/// Cold rows of each kind for which capacity is kept between batches.
const COLD_ROWS_CAPACITY_MAX: usize = 8_192;

/// Rows in memory only for one batch.
#[derive(Clone, Default)]
struct ColdRows {
    /// Agents that have left, with the parts that are otherwise on disk only.
    agents: IdMap<AgentId, Arc<Agent>>,
    jobs: IdMap<JobId, Arc<Job>>,
    transfers: IdMap<TransferId, Arc<Transfer>>,
    /// `None`: looked up, and known not to exist.
    claims: IdMap<Digest, Option<Claim>>,
}

impl World {
    /// A world with only the issue account.
    pub fn new(rules: Rules) -> Self {
        let mut world = Self {
            rules,
            markets: Markets::new(),
            next: Counters::default(),
            agents: AgentTable::default(),
            presence_ends: SortedSet::default(),
            inboxes: IdMap::default(),
            owners: IdMap::default(),
            owner_names: HashMap::new(),
            suspended_owners: BTreeSet::new(),
            confusables: ConfusableIndex::default(),
            aliases: HashMap::new(),
            agent_aliases: HashMap::new(),
            keys: HashSet::new(),
            further_keys: IdMap::default(),
            key_expiries: BTreeMap::new(),
            jobs: IdMap::default(),
            job_uuids: IdMap::default(),
            job_names: HashMap::new(),
            rotations: HashMap::new(),
            deliveries: IdMap::default(),
            idempotency_entries: BTreeMap::new(),
            idempotency_scopes: IdMap::default(),
            saved_by_principal: HashMap::new(),
            saved_total: SavedSize::default(),
            saved_anonymous: SavedSize::default(),
            agents_by_owner: IdMap::default(),
            owner_failures: IdMap::default(),
            underrated: BTreeSet::new(),
            assigned_jobs: IdMap::default(),
            deferred_jobs: IdMap::default(),
            start_times: IdMap::default(),
            start_times_max: jobs::START_TIMES_MIN,
            unread: IdMap::default(),
            requested_jobs: IdMap::default(),
            inviting_jobs: IdMap::default(),
            requested_bytes: IdMap::default(),
            invitations: BTreeMap::new(),
            waiting: WaitingJobs::default(),
            timers: BTreeSet::new(),
            deliveries_due: BTreeSet::new(),
            skills: SkillIndex::default(),
            footprint: Footprint::default(),
            cold_rows: ColdRows::default(),
            earlier_cold_rows: ColdRows::default(),
        };
        world.set_owner(Arc::new(Owner {
            id: Owner::ISSUANCE,
            name: Owner::ISSUANCE_NAME.to_owned(),
            available: Credits::ZERO,
            held: Credits::ZERO,
            welcomed: true,
            opened_at: Timestamp(0),
            newest_entry: None,
            payment_count: 0,
            suspended: false,
        }));
        world.footprint = world.recount_footprint();
        world
    }

    /// Nothing later is decided at a time before this one. Returns the counters that say so.
    pub fn advance_time(&mut self, now: Timestamp) -> Counters {
        self.next.at = self.next.at.max(now);
        self.next
    }

    /// An agent; of one that has left only the small part, see [`Agent::hot_row`].
    pub fn agent(&self, id: AgentId) -> Option<&Arc<Agent>> {
        self.agents.row(id)
    }

    /// The full row of an agent. For one that has left, only if it was loaded.
    pub fn full_agent(&self, id: AgentId) -> Option<&Arc<Agent>> {
        let at_hand = self.agents.row(id).filter(|agent| agent.active);
        at_hand.or_else(|| self.cold_row(|rows| rows.agents.get(&id)))
    }

    pub fn agent_state(&self, id: AgentId) -> Option<&Arc<AgentState>> {
        self.agents.state(id)
    }

    /// An agent's inbox positions.
    pub fn inbox(&self, id: AgentId) -> Inbox {
        self.inboxes.get(&id).copied().unwrap_or_else(|| Inbox::new(id))
    }

    pub fn owner(&self, id: OwnerId) -> Option<&Arc<Owner>> {
        self.owners.get(&id)
    }

    pub fn owner_by_name(&self, name: &str) -> Option<OwnerId> {
        self.owner_names.get(name).copied()
    }

    /// Every account, in no order.
    pub fn owners(&self) -> impl Iterator<Item = &Arc<Owner>> {
        self.owners.values()
    }

    /// Every agent that is or was registered, in order of registration.
    pub fn agents(&self) -> impl ExactSizeIterator<Item = &Arc<Agent>> {
        self.agents.rows()
    }

    /// The agent with that name in that protocol, its own id or an alias.
    pub fn agent_by_alias(&self, protocol: Protocol, name: &str) -> Option<AgentId> {
        self.aliases.get(&protocol)?.get(name).copied()
    }

    /// How many aliases a protocol has.
    pub fn alias_count(&self, protocol: Protocol) -> usize {
        self.aliases.get(&protocol).map_or(0, HashMap::len)
    }

    /// An agent's name in a protocol.
    pub fn alias_of(&self, agent: AgentId, protocol: Protocol) -> Option<&str> {
        let given = self.agent_aliases.get(&(agent, protocol)).map(|name| &**name);
        given.or_else(|| self.native_alias(self.agents.row(agent)?, protocol))
    }

    /// An agent's native id, if that is its name in the protocol.
    fn native_alias<'a>(&self, agent: &'a Agent, protocol: Protocol) -> Option<&'a str> {
        let native = agent.native_id.as_str();
        let is_name = agent.home == protocol
            && !self.agent_aliases.contains_key(&(agent.id, protocol))
            && self.agent_by_alias(protocol, native) == Some(agent.id);
        is_name.then_some(native)
    }

    fn set_alias(&mut self, alias: &Alias) {
        let key = (alias.agent, alias.protocol);
        let names = self.aliases.entry(alias.protocol).or_default();
        names.insert(alias.name.clone(), alias.agent);
        let is_native =
            |agent: &Arc<Agent>| agent.home == alias.protocol && *agent.native_id == *alias.name;
        if self.agents.row(alias.agent).is_some_and(is_native) {
            self.agent_aliases.remove(&key);
        } else {
            self.agent_aliases.insert(key, alias.name.clone());
        }
    }

    pub fn transfer(&self, id: TransferId) -> Option<&Arc<Transfer>> {
        self.cold_row(|rows| rows.transfers.get(&id))
    }

    /// A claim that was loaded; see `has_loaded_claim`.
    pub fn claim(&self, digest: Digest) -> Option<Claim> {
        self.cold_row(|rows| rows.claims.get(&digest)).copied().flatten()
    }

    /// Whether the store was asked about this id in this batch or the one before.
    pub fn has_loaded_claim(&self, digest: Digest) -> bool {
        self.cold_row(|rows| rows.claims.get(&digest)).is_some()
    }

    /// A cold row in its newest version.
    fn cold_row<'w, R>(&'w self, get: impl Fn(&'w ColdRows) -> Option<&'w R>) -> Option<&'w R> {
        get(&self.cold_rows).or_else(|| get(&self.earlier_cold_rows))
    }

    pub fn rotation(&self, skill: &str) -> Option<&Arc<Rotation>> {
        self.rotations.get(skill)
    }

    pub fn delivery(&self, id: NoticeId) -> Option<&Arc<Delivery>> {
        self.deliveries.get(&id)
    }

    /// All deliveries, pending or abandoned, in no order.
    pub fn deliveries(&self) -> impl Iterator<Item = &Arc<Delivery>> {
        self.deliveries.values()
    }

    /// Deliveries to attempt now, the longest due first.
    pub fn deliveries_due(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Delivery>> {
        let due = self.deliveries_due.iter().take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.deliveries.get(id))
    }

    /// When the next delivery is due.
    pub fn next_delivery_at(&self) -> Option<Timestamp> {
        self.deliveries_due.first().map(|(at, _)| *at)
    }

    /// A saved answer that has not expired.
    pub fn idempotency_entry(
        &self,
        scope: Digest,
        now: Timestamp,
    ) -> Option<&Arc<IdempotencyEntry>> {
        let newest = self.idempotency_entries.get(self.idempotency_scopes.get(&scope)?);
        newest.filter(|memory| now < memory.expires_at())
    }

    /// Expired rows, the oldest of each kind first, at most `limit` of each kind.
    pub fn expired_rows(&self, now: Timestamp, limit: usize) -> ExpiredRows {
        let newest = |memory: &IdempotencyEntry| {
            self.idempotency_scopes.get(&memory.scope) == Some(&memory.id)
        };
        let is_over =
            |memory: &&Arc<IdempotencyEntry>| !newest(memory) || memory.expires_at() <= now;
        let answers = self.idempotency_entries.values().take_while(is_over).map(|memory| memory.id);
        // An expired key is answered like an unknown one, so its row can be removed.
        let keys = self.key_expiries.keys().take_while(|(until, _)| *until <= now).copied();
        ExpiredRows { answers: answers.take(limit).collect(), keys: keys.take(limit).collect() }
    }

    /// All saved answers, oldest first.
    pub fn idempotency_entries(&self) -> impl ExactSizeIterator<Item = &Arc<IdempotencyEntry>> {
        self.idempotency_entries.values()
    }

    /// Saved answers of a caller.
    pub fn saved_for(&self, principal: Principal) -> SavedSize {
        self.saved_by_principal.get(&principal).copied().unwrap_or_default()
    }

    /// Saved answers of all callers.
    pub fn saved_total(&self) -> SavedSize {
        self.saved_total
    }

    /// Saved answers of callers without a key.
    pub fn saved_anonymous(&self) -> SavedSize {
        self.saved_anonymous
    }

    pub fn agents_of(&self, owner: OwnerId) -> impl Iterator<Item = AgentId> {
        self.agents_by_owner.get(&owner).into_iter().flat_map(OwnerAgents::iter)
    }

    /// How many agents an owner has, including unregistered ones.
    pub fn agent_count(&self, owner: OwnerId) -> usize {
        self.agents_by_owner.get(&owner).map_or(0, OwnerAgents::len)
    }

    /// Loads the full row of an agent that has left, for this batch.
    pub fn load_agent(&mut self, agent: Arc<Agent>) {
        self.cold_rows.agents.insert(agent.id, agent);
    }

    /// Loads a stored job for this batch.
    pub fn load_job(&mut self, job: Arc<Job>) {
        self.cold_rows.jobs.insert(job.id, job);
    }

    /// Loads a stored transfer for this batch.
    pub fn load_transfer(&mut self, transfer: Arc<Transfer>) {
        self.cold_rows.transfers.insert(transfer.id, transfer);
    }

    /// Loads what the store knows about an id, which may be nothing.
    pub fn load_claim(&mut self, digest: Digest, claim: Option<Claim>) {
        self.cold_rows.claims.insert(digest, claim);
    }

    /// Begins the next batch while the current one is being committed. Its cold rows are kept for
    /// one batch more: until it is committed, the store does not have what it changed.
    pub fn begin_batch(&mut self) {
        std::mem::swap(&mut self.cold_rows, &mut self.earlier_cold_rows);
        self.cold_rows.clear();
    }

    /// Drops the cold rows when nothing is being committed.
    pub fn drop_cold_rows(&mut self) {
        self.cold_rows.clear();
        self.earlier_cold_rows.clear();
    }

    /// Fills an empty world with every hot row of a store.
    pub fn restore(&mut self, rows: &Changes) {
        self.apply_batch(rows);
        for turn in rows.jobs.values().filter_map(|job| job.assignment.as_ref()) {
            self.record_start(turn.worker, turn.since);
        }
        self.drop_cold_rows();
    }

    /// Applies one batch of the log. Every copy of the world is made this way: the published one,
    /// that of a start, and that of another node.
    pub fn replay(&mut self, changes: &Changes, expired: &ExpiredRows) {
        self.apply_batch(changes);
        self.remove_expired(expired);
        self.drop_cold_rows();
    }

    /// Applies the changes of one command, so that later ones of the same batch see them.
    pub fn apply(&mut self, changes: &Changes) {
        self.apply_batch(changes);
        for claim in &changes.claims {
            self.cold_rows.claims.insert(claim.digest, Some(*claim));
        }
        for transfer in &changes.transfers {
            self.cold_rows.transfers.insert(transfer.id, transfer.clone());
        }
    }

    /// Applies the changes of a whole batch. Cold rows are dropped already.
    pub fn apply_batch(&mut self, changes: &Changes) {
        self.track_growth(changes);
        if let Some(next) = changes.next {
            self.next = next;
        }
        for owner in changes.owners.values() {
            self.set_owner(owner.clone());
        }
        for key in changes.keys.values() {
            self.set_key(key.clone());
        }
        for (id, agent) in &changes.agents {
            self.set_agent(agent.clone(), changes.agent_states.get(id).cloned());
        }
        changes.aliases.iter().for_each(|alias| self.set_alias(alias));
        for agent_state in changes.agent_states.values() {
            self.set_agent_state(agent_state.clone());
        }
        self.inboxes.extend(changes.inboxes.iter().map(|(id, mailbox)| (*id, *mailbox)));
        for job in changes.jobs.values() {
            self.set_job(job.clone());
        }
        self.record_starts(changes);
        for (skill, turn) in &changes.rotations {
            match self.rotations.get_mut(skill) {
                Some(known) => *known = turn.clone(),
                None => drop(self.rotations.insert(skill.clone(), turn.clone())),
            }
        }
        for (id, push) in &changes.deliveries {
            self.set_delivery(*id, push.clone());
        }
        for memory in changes.idempotency_entries.values() {
            self.set_idempotency_entry(memory.clone());
        }
    }

    /// Removes expired rows.
    pub fn remove_expired(&mut self, forgotten: &ExpiredRows) {
        self.track_expired(forgotten);
        for id in &forgotten.answers {
            let Some(memory) = self.drop_idempotency_entry(*id) else { continue };
            if self.idempotency_scopes.get(&memory.scope) == Some(id) {
                self.idempotency_scopes.remove(&memory.scope);
            }
        }
        for end in &forgotten.keys {
            self.drop_key(*end);
        }
    }

    fn set_owner(&mut self, owner: Arc<Owner>) {
        // Balances change often, but names never do.
        if self.owners.get(&owner.id).is_none_or(|known| known.name != owner.name) {
            self.owner_names.entry(owner.name.clone()).or_insert(owner.id);
            self.index_owner_skeletons(&owner);
        }
        let (id, suspended) = (owner.id, owner.suspended);
        let changed = suspended != self.suspended_owners.contains(&id);
        self.owners.insert(id, owner);
        if changed {
            match suspended {
                true => self.suspended_owners.insert(id),
                false => self.suspended_owners.remove(&id),
            };
            self.reindex_agents_of(id);
        }
    }

    fn set_idempotency_entry(&mut self, memory: Arc<IdempotencyEntry>) {
        self.drop_idempotency_entry(memory.id);
        self.saved_by_principal.entry(memory.principal).or_default().add(memory.bytes);
        self.saved_total.add(memory.bytes);
        if let Principal::Anonymous(_) = memory.principal {
            self.saved_anonymous.add(memory.bytes);
        }
        self.idempotency_scopes.insert(memory.scope, memory.id);
        self.idempotency_entries.insert(memory.id, memory);
    }

    fn drop_idempotency_entry(&mut self, id: AnswerId) -> Option<Arc<IdempotencyEntry>> {
        let memory = self.idempotency_entries.remove(&id)?;
        self.saved_total.subtract(memory.bytes);
        if let Principal::Anonymous(_) = memory.principal {
            self.saved_anonymous.subtract(memory.bytes);
        }
        if let Some(own) = self.saved_by_principal.get_mut(&memory.principal) {
            own.subtract(memory.bytes);
            if *own == SavedSize::default() {
                self.saved_by_principal.remove(&memory.principal);
            }
        }
        Some(memory)
    }

    fn set_delivery(&mut self, id: NoticeId, push: Option<Arc<Delivery>>) {
        let old = self.deliveries.remove(&id);
        if let Some(at) = old.and_then(|push| push.next_try) {
            self.deliveries_due.remove(&(at, id));
        }
        if let Some(mut push) = push {
            if push.has_text() {
                push =
                    Arc::new(Delivery { kind: push.kind.without_text(), ..Delivery::clone(&push) });
            }
            if let Some(at) = push.next_try {
                self.deliveries_due.insert((at, id));
            }
            self.deliveries.insert(id, push);
        }
    }
}

impl ColdRows {
    fn clear(&mut self) {
        clear_rows(&mut self.agents);
        clear_rows(&mut self.jobs);
        clear_rows(&mut self.transfers);
        clear_rows(&mut self.claims);
    }
}

/// Capacity for a large batch is kept for the next one; the excess of a huge one is released.
fn clear_rows<K, V>(cold_rows: &mut IdMap<K, V>) {
    match cold_rows.capacity() <= COLD_ROWS_CAPACITY_MAX {
        true => cold_rows.clear(),
        false => *cold_rows = IdMap::default(),
    }
}
