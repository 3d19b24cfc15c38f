//! The world: all rows that decisions need in memory, as one value.
//!
//! It holds every row that decisions need often (agents, accounts, keys, live jobs) and indexes
//! over them. Finished jobs and old ids are cold rows: the lane loads them for the commands that
//! name them. The world changes only by `apply`, so copies that get the same changes are equal.

// Hash maps are only looked up by key and never iterated for a decision; iterated maps are BTrees.
#![allow(clippy::disallowed_types)]

mod owner_failures;
pub mod discover;
pub mod footprint;
mod jobs;
mod confusables;
mod agents;
pub mod id_map;
pub mod skills;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::agent::key::{Holder, Key, KeyHash};
use crate::agent::{Agent, Desk};
use crate::alias::{Claim, Digest, Protocol};
use crate::changes::{Changes, Counters, Forgotten};
use crate::command::Timer;
use crate::id::*;
use crate::job::Job;
use crate::job::select::Turn;
use crate::ledger::Transfer;
use crate::confusables::Likeness;
use crate::market::Market;
use crate::idempotency::{Amount, Principal, Remembered};
use crate::message::inbox::Mailbox;
use crate::money::Credits;
use crate::notice::Push;
use crate::owner::Owner;
use crate::time::{Millis, Timestamp};
use footprint::{Footprint, MemoryLimits};
use confusables::Looks;
use agents::Online;
use id_map::QuickMap;
use skills::Skills;

/// Settings that decisions depend on.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How long an activity keeps an agent online.
    pub presence_ttl: Millis,
    /// What every new owner is granted.
    pub welcome_grant: Credits,
    /// Notices that may wait in one inbox; 0 for no limit.
    pub inbox_messages_max: u64,
    /// Assignments a job may have before it fails.
    pub attempts_max: u32,
    /// Failed assignments that follow each other at once, for a job that could otherwise loop for
    /// ever.
    pub turns_at_once: u32,
    /// How long an agent that registered without proof may stay without any activity.
    pub unproven_ttl: Option<Millis>,
    /// Agents one owner may have.
    pub agents_per_owner_max: usize,
    /// Unfinished jobs one agent may have requested, and the bytes of their input.
    pub open_jobs_max: usize,
    pub open_bytes_max: usize,
    /// Saved answers for repeated requests, per caller and in total.
    pub kept_per_principal: Amount,
    pub kept_total: Amount,
    /// Open invitations of one requester: agents invited to make an offer that have not answered.
    pub invitations_max: usize,
    /// How long an agent that confirms jobs itself may take to answer.
    pub answer_window: Millis,
    /// How long an approval may take.
    pub approval_window: Millis,
    /// How long, at least, a worker must have had a job before a missing response counts against
    /// it.
    pub fair_time: Millis,
    /// Which names are confusable.
    pub likeness: Likeness,
    /// How much memory rows may take.
    pub memory: MemoryLimits,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            presence_ttl: Millis::seconds(90),
            welcome_grant: Credits::ZERO,
            inbox_messages_max: 10_000,
            attempts_max: 16,
            turns_at_once: 8,
            unproven_ttl: None,
            agents_per_owner_max: 100_000,
            open_jobs_max: 10_000,
            open_bytes_max: 32 << 20,
            kept_per_principal: Amount { answers: 50_000, bytes: 32 << 20 },
            kept_total: Amount { answers: 500_000, bytes: 512 << 20 },
            invitations_max: 10_000,
            answer_window: Millis::seconds(9),
            approval_window: Millis::hours(1),
            fair_time: Millis::seconds(30),
            likeness: Likeness::default(),
            memory: MemoryLimits::default(),
        }
    }
}

/// All hot rows and their indexes.
#[derive(Clone)]
pub struct World {
    pub rules: Rules,
    /// The protocol that publishes its records, if there is one.
    pub market: Option<Arc<Market>>,
    pub next: Counters,
    agents: QuickMap<AgentId, Arc<Agent>>,
    desks: QuickMap<AgentId, Arc<Desk>>,
    mailboxes: QuickMap<AgentId, Mailbox>,
    owners: QuickMap<OwnerId, Arc<Owner>>,
    owner_names: HashMap<String, OwnerId>,
    suspended_owners: BTreeSet<OwnerId>,
    looks: Looks,
    aliases: HashMap<Protocol, HashMap<String, AgentId>>,
    names: HashMap<(AgentId, Protocol), String>,
    keys: HashMap<KeyHash, Arc<Key>>,
    agent_keys: QuickMap<AgentId, Vec<KeyHash>>,
    /// Expiry times of keys that expire.
    key_ends: BTreeMap<(Timestamp, KeyId), KeyHash>,
    jobs: QuickMap<JobId, Arc<Job>>,
    job_uuids: QuickMap<uuid::Uuid, JobId>,
    job_names: HashMap<Protocol, HashMap<String, JobId>>,
    turns: HashMap<String, Arc<Turn>>,
    pushes: QuickMap<NoticeId, Arc<Push>>,
    /// Saved answers, and the newest of each scope. An older one of the same scope stays until it
    /// expires, so that its row is removed too.
    memories: BTreeMap<AnswerId, Arc<Remembered>>,
    memory_scopes: QuickMap<Digest, AnswerId>,
    /// Saved answers per caller, in total, and for callers without a key.
    kept: HashMap<Principal, Amount>,
    kept_in_total: Amount,
    kept_anonymously: Amount,
    by_owner: QuickMap<OwnerId, BTreeSet<AgentId>>,
    /// How often the agents of an owner have failed.
    blame: QuickMap<OwnerId, u64>,
    /// Agents whose published score is below their score in the hub's own ranking.
    underrated: BTreeSet<AgentId>,
    in_hand: QuickMap<AgentId, BTreeSet<JobId>>,
    /// Jobs deferred until their agent is back or they are approved.
    put_off: QuickMap<AgentId, BTreeSet<JobId>>,
    /// Start times of the last jobs, for agents with a start limit.
    begun: QuickMap<AgentId, VecDeque<Timestamp>>,
    /// Jobs whose worker has not read their notice yet, by its position in the inbox.
    unread: QuickMap<AgentId, BTreeMap<u64, JobId>>,
    asked: QuickMap<AgentId, BTreeSet<JobId>>,
    /// Jobs whose requesters invited an agent themselves, by that agent.
    asked_to: QuickMap<AgentId, BTreeSet<JobId>>,
    /// Bytes of input of those jobs.
    asked_bytes: QuickMap<AgentId, usize>,
    /// Agents each requester has invited that have not answered; guests count as one.
    invitations: BTreeMap<Option<AgentId>, usize>,
    waiting: BTreeSet<JobId>,
    timers: BTreeSet<(Timestamp, Timer)>,
    pushes_due: BTreeSet<(Timestamp, NoticeId)>,
    pub skills: Skills,
    online: Online,
    footprint: Footprint,
    visitors: Visitors,
}

/// Cold rows of each kind for which capacity is kept between batches.
const VISITORS_KEPT: usize = 8_192;

/// Rows in memory only for the current batch.
#[derive(Clone, Default)]
struct Visitors {
    /// Agents that have left, with the parts that are otherwise on disk only.
    agents: QuickMap<AgentId, Arc<Agent>>,
    jobs: QuickMap<JobId, Arc<Job>>,
    transfers: QuickMap<TransferId, Arc<Transfer>>,
    /// `None`: looked up, and known not to exist.
    claims: QuickMap<Digest, Option<Claim>>,
}

impl World {
    /// A world with only the issue account.
    pub fn new(rules: Rules) -> Self {
        let mut world = Self {
            rules,
            market: None,
            next: Counters::default(),
            agents: QuickMap::default(),
            desks: QuickMap::default(),
            mailboxes: QuickMap::default(),
            owners: QuickMap::default(),
            owner_names: HashMap::new(),
            suspended_owners: BTreeSet::new(),
            looks: Looks::default(),
            aliases: HashMap::new(),
            names: HashMap::new(),
            keys: HashMap::new(),
            agent_keys: QuickMap::default(),
            key_ends: BTreeMap::new(),
            jobs: QuickMap::default(),
            job_uuids: QuickMap::default(),
            job_names: HashMap::new(),
            turns: HashMap::new(),
            pushes: QuickMap::default(),
            memories: BTreeMap::new(),
            memory_scopes: QuickMap::default(),
            kept: HashMap::new(),
            kept_in_total: Amount::default(),
            kept_anonymously: Amount::default(),
            by_owner: QuickMap::default(),
            blame: QuickMap::default(),
            underrated: BTreeSet::new(),
            in_hand: QuickMap::default(),
            put_off: QuickMap::default(),
            begun: QuickMap::default(),
            unread: QuickMap::default(),
            asked: QuickMap::default(),
            asked_to: QuickMap::default(),
            asked_bytes: QuickMap::default(),
            invitations: BTreeMap::new(),
            waiting: BTreeSet::new(),
            timers: BTreeSet::new(),
            pushes_due: BTreeSet::new(),
            skills: Skills::default(),
            online: Online::default(),
            footprint: Footprint::default(),
            visitors: Visitors::default(),
        };
        world.set_owner(Arc::new(Owner {
            id: Owner::ISSUANCE,
            name: Owner::ISSUANCE_NAME.to_owned(),
            available: Credits::ZERO,
            held: Credits::ZERO,
            welcomed: true,
            opened_at: Timestamp(0),
            newest: None,
            movements: 0,
            suspended: false,
        }));
        world.footprint = world.counted_footprint();
        world
    }

    /// An agent; of one that has left only the small part, see [`Agent::at_hand`].
    pub fn agent(&self, id: AgentId) -> Option<&Arc<Agent>> {
        self.agents.get(&id)
    }

    /// The full row of an agent. For one that has left, only if it was loaded.
    pub fn whole_agent(&self, id: AgentId) -> Option<&Arc<Agent>> {
        let at_hand = self.agents.get(&id).filter(|agent| agent.active);
        at_hand.or_else(|| self.visitors.agents.get(&id))
    }

    pub fn desk(&self, id: AgentId) -> Option<&Arc<Desk>> {
        self.desks.get(&id)
    }

    /// An agent's inbox positions.
    pub fn mailbox(&self, id: AgentId) -> Mailbox {
        self.mailboxes.get(&id).copied().unwrap_or_else(|| Mailbox::new(id))
    }

    pub fn owner(&self, id: OwnerId) -> Option<&Arc<Owner>> {
        self.owners.get(&id)
    }

    pub fn owner_named(&self, name: &str) -> Option<OwnerId> {
        self.owner_names.get(name).copied()
    }

    /// Every account, in no order.
    pub fn owners(&self) -> impl Iterator<Item = &Arc<Owner>> {
        self.owners.values()
    }

    /// Every agent that is or was registered, in no order.
    pub fn agents(&self) -> impl ExactSizeIterator<Item = &Arc<Agent>> {
        self.agents.values()
    }

    /// The agent with that name in that protocol, its own id or an alias.
    pub fn agent_named(&self, protocol: Protocol, name: &str) -> Option<AgentId> {
        self.aliases.get(&protocol)?.get(name).copied()
    }

    /// How many aliases a protocol has.
    pub fn names_in(&self, protocol: Protocol) -> usize {
        self.aliases.get(&protocol).map_or(0, HashMap::len)
    }

    /// An agent's name in a protocol.
    pub fn name_of(&self, agent: AgentId, protocol: Protocol) -> Option<&str> {
        self.names.get(&(agent, protocol)).map(String::as_str)
    }

    pub fn key(&self, hash: &KeyHash) -> Option<&Arc<Key>> {
        self.keys.get(hash)
    }

    /// All keys of operators, in no order. An expired one is removed soon after.
    pub fn operator_keys(&self) -> impl Iterator<Item = &Arc<Key>> {
        self.keys.values().filter(|key| key.holder == Holder::Operator)
    }

    /// All keys of an agent. An expired one is removed soon after.
    pub fn keys_of(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Key>> {
        self.agent_keys.get(&agent).into_iter().flatten().filter_map(|hash| self.keys.get(hash))
    }

    pub fn transfer(&self, id: TransferId) -> Option<&Arc<Transfer>> {
        self.visitors.transfers.get(&id)
    }

    /// A claim that was loaded; see `has_loaded_claim`.
    pub fn claim(&self, digest: Digest) -> Option<Claim> {
        self.visitors.claims.get(&digest).copied().flatten()
    }

    /// Whether the store was asked about this id in this batch.
    pub fn knows_claim(&self, digest: Digest) -> bool {
        self.visitors.claims.contains_key(&digest)
    }

    pub fn turn(&self, skill: &str) -> Option<&Arc<Turn>> {
        self.turns.get(skill)
    }

    pub fn push(&self, id: NoticeId) -> Option<&Arc<Push>> {
        self.pushes.get(&id)
    }

    /// All deliveries, pending or abandoned, in no order.
    pub fn pushes(&self) -> impl Iterator<Item = &Arc<Push>> {
        self.pushes.values()
    }

    /// Deliveries to attempt now, the longest due first.
    pub fn pushes_due(&self, now: Timestamp) -> impl Iterator<Item = &Arc<Push>> {
        let due = self.pushes_due.iter().take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.pushes.get(id))
    }

    /// When the next delivery is due.
    pub fn next_push(&self) -> Option<Timestamp> {
        self.pushes_due.first().map(|(at, _)| *at)
    }

    /// A saved answer that has not expired.
    pub fn memory(&self, scope: Digest, now: Timestamp) -> Option<&Arc<Remembered>> {
        let newest = self.memories.get(self.memory_scopes.get(&scope)?);
        newest.filter(|memory| now < memory.until())
    }

    /// Expired rows, the oldest of each kind first, at most `limit` of each kind.
    pub fn stale(&self, now: Timestamp, limit: usize) -> Forgotten {
        let newest =
            |memory: &Remembered| self.memory_scopes.get(&memory.scope) == Some(&memory.id);
        let is_over = |memory: &&Arc<Remembered>| !newest(memory) || memory.until() <= now;
        let answers = self.memories.values().take_while(is_over).map(|memory| memory.id);
        // An expired key is answered like an unknown one, so its row can be removed.
        let keys = self.key_ends.keys().take_while(|(until, _)| *until <= now).copied();
        Forgotten { answers: answers.take(limit).collect(), keys: keys.take(limit).collect() }
    }

    /// All saved answers, oldest first.
    pub fn memories(&self) -> impl ExactSizeIterator<Item = &Arc<Remembered>> {
        self.memories.values()
    }

    /// Saved answers of a caller.
    pub fn kept_for(&self, principal: Principal) -> Amount {
        self.kept.get(&principal).copied().unwrap_or_default()
    }

    /// Saved answers of all callers.
    pub fn kept_in_total(&self) -> Amount {
        self.kept_in_total
    }

    /// Saved answers of callers without a key.
    pub fn kept_anonymously(&self) -> Amount {
        self.kept_anonymously
    }

    pub fn agents_of(&self, owner: OwnerId) -> impl Iterator<Item = AgentId> {
        self.by_owner.get(&owner).into_iter().flatten().copied()
    }

    /// How many agents an owner has, including unregistered ones.
    pub fn agent_count(&self, owner: OwnerId) -> usize {
        self.by_owner.get(&owner).map_or(0, BTreeSet::len)
    }

    /// Loads the full row of an agent that has left, for this batch.
    pub fn admit_agent(&mut self, agent: Arc<Agent>) {
        self.visitors.agents.insert(agent.id, agent);
    }

    /// Loads a stored job for this batch.
    pub fn admit_job(&mut self, job: Arc<Job>) {
        self.visitors.jobs.insert(job.id, job);
    }

    /// Loads a stored transfer for this batch.
    pub fn admit_transfer(&mut self, transfer: Arc<Transfer>) {
        self.visitors.transfers.insert(transfer.id, transfer);
    }

    /// Loads what the store knows about an id, which may be nothing.
    pub fn admit_claim(&mut self, digest: Digest, claim: Option<Claim>) {
        self.visitors.claims.insert(digest, claim);
    }

    /// Drops the cold rows at the end of a batch.
    pub fn dismiss(&mut self) {
        send_home(&mut self.visitors.agents);
        send_home(&mut self.visitors.jobs);
        send_home(&mut self.visitors.claims);
        send_home(&mut self.visitors.transfers);
    }

    /// Applies the changes of one command, so that later ones of the same batch see them.
    pub fn apply(&mut self, changes: &Changes) {
        self.settle(changes);
        for claim in &changes.claims {
            self.visitors.claims.insert(claim.digest, Some(*claim));
        }
        for transfer in &changes.transfers {
            self.visitors.transfers.insert(transfer.id, transfer.clone());
        }
    }

    /// Applies the changes of a whole batch. Cold rows are dropped already.
    pub fn settle(&mut self, changes: &Changes) {
        self.count(changes);
        if let Some(next) = changes.next {
            self.next = next;
        }
        for owner in changes.owners.values() {
            self.set_owner(owner.clone());
        }
        for alias in &changes.aliases {
            let names = self.aliases.entry(alias.protocol).or_default();
            names.insert(alias.name.clone(), alias.agent);
            self.names.insert((alias.agent, alias.protocol), alias.name.clone());
        }
        for key in changes.keys.values() {
            self.set_key(key.clone());
        }
        for (id, agent) in &changes.agents {
            self.set_agent(agent.clone(), changes.desks.get(id).cloned());
        }
        for desk in changes.desks.values() {
            self.set_desk(desk.clone());
        }
        self.mailboxes.extend(changes.mailboxes.iter().map(|(id, mailbox)| (*id, *mailbox)));
        for job in changes.jobs.values() {
            self.set_job(job.clone());
        }
        for (skill, turn) in &changes.turns {
            match self.turns.get_mut(skill) {
                Some(known) => *known = turn.clone(),
                None => drop(self.turns.insert(skill.clone(), turn.clone())),
            }
        }
        for (id, push) in &changes.pushes {
            self.set_push(*id, push.clone());
        }
        for memory in changes.remembered.values() {
            self.set_memory(memory.clone());
        }
    }

    /// Removes expired rows.
    pub fn forget(&mut self, forgotten: &Forgotten) {
        self.count_forgotten(forgotten);
        for id in &forgotten.answers {
            let Some(memory) = self.drop_memory(*id) else { continue };
            if self.memory_scopes.get(&memory.scope) == Some(id) {
                self.memory_scopes.remove(&memory.scope);
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
            self.note_owner_looks(&owner);
        }
        let (id, suspended) = (owner.id, owner.suspended);
        let changed = suspended != self.suspended_owners.contains(&id);
        self.owners.insert(id, owner);
        if changed {
            match suspended {
                true => self.suspended_owners.insert(id),
                false => self.suspended_owners.remove(&id),
            };
            self.reindex(id);
        }
    }

    fn set_key(&mut self, key: Arc<Key>) {
        if let Holder::Agent(agent) = key.holder {
            let known = self.agent_keys.entry(agent).or_default();
            if !known.contains(&key.hash) {
                known.push(key.hash);
            }
        }
        if let Some(until) = key.until {
            self.key_ends.insert((until, key.id), key.hash);
        }
        let before = self.keys.insert(key.hash, key.clone());
        if let Some(until) = before.filter(|old| old.id == key.id).and_then(|old| old.until)
            && key.until != Some(until)
        {
            self.key_ends.remove(&(until, key.id));
        }
    }

    fn drop_key(&mut self, end: (Timestamp, KeyId)) {
        let Some(hash) = self.key_ends.remove(&end) else { return };
        // If the same key was issued again, that has a row of its own.
        let Some(key) = self.keys.get(&hash).filter(|key| key.id == end.1).cloned() else { return };
        self.keys.remove(&hash);
        if let Holder::Agent(agent) = key.holder
            && let Some(known) = self.agent_keys.get_mut(&agent)
        {
            known.retain(|one| *one != hash);
            if known.is_empty() {
                self.agent_keys.remove(&agent);
            }
        }
    }

    fn set_memory(&mut self, memory: Arc<Remembered>) {
        self.drop_memory(memory.id);
        self.kept.entry(memory.principal).or_default().add(memory.bytes);
        self.kept_in_total.add(memory.bytes);
        if let Principal::Anonymous(_) = memory.principal {
            self.kept_anonymously.add(memory.bytes);
        }
        self.memory_scopes.insert(memory.scope, memory.id);
        self.memories.insert(memory.id, memory);
    }

    fn drop_memory(&mut self, id: AnswerId) -> Option<Arc<Remembered>> {
        let memory = self.memories.remove(&id)?;
        self.kept_in_total.subtract(memory.bytes);
        if let Principal::Anonymous(_) = memory.principal {
            self.kept_anonymously.subtract(memory.bytes);
        }
        if let Some(own) = self.kept.get_mut(&memory.principal) {
            own.subtract(memory.bytes);
            if *own == Amount::default() {
                self.kept.remove(&memory.principal);
            }
        }
        Some(memory)
    }

    fn set_push(&mut self, id: NoticeId, push: Option<Arc<Push>>) {
        let old = self.pushes.remove(&id);
        if let Some(at) = old.and_then(|push| push.next_try) {
            self.pushes_due.remove(&(at, id));
        }
        if let Some(mut push) = push {
            if push.has_text() {
                push = Arc::new(Push { news: push.news.without_text(), ..Push::clone(&push) });
            }
            if let Some(at) = push.next_try {
                self.pushes_due.insert((at, id));
            }
            self.pushes.insert(id, push);
        }
    }
}

/// Capacity for a large batch is kept for the next one; the excess of a huge one is released.
fn send_home<K, V>(visitors: &mut QuickMap<K, V>) {
    match visitors.capacity() <= VISITORS_KEPT {
        true => visitors.clear(),
        false => *visitors = QuickMap::default(),
    }
}
