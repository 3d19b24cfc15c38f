//! The memory that the rows of a world take, per owner and in total.
//!
//! A row counts its content plus its index entries, in both copies of the world that a hub has. The
//! sums are updated from changed rows, in one place, so a new kind of row only defines its size
//! ([`MemorySize`]) and its owner ([`compute_growth`]). Rows that are not in memory do not count: finished jobs,
//! notices, ledger entries, and the cards and schemas of agents that have left.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::mem::size_of;

use super::World;
use super::id_map::IdMap;
use crate::agent::key::{Holder, Key};
use crate::agent::key_limits::KeyRecord;
use crate::agent::{Agent, AgentState, OldSecret, Skill};
use crate::changes::{Changes, ExpiredRows};
use crate::command::{Command, OriginalReport};
use crate::envelope::{Envelope, Proof};
use crate::id::{AgentId, OwnerId};
use crate::idempotency::IdempotencyEntry;
use crate::job::select::Rotation;
use crate::job::{Job, JobWebhook, Offer, Question, Requester, RequesterMessage};
use crate::notice::{Delivery, NoticeKind};
use crate::owner::Owner;
use crate::refusal::{MemoryBudget, Refusal};

/// Allocator overhead per text.
const ALLOCATION: usize = 16;
/// An agent without its texts: its row, its agent state, its inbox, and its index entries.
const AGENT: usize = size_of::<Agent>() + size_of::<AgentState>() + 600;
/// A skill without its texts: its entry, and an index entry that no other agent shares.
const SKILL: usize = size_of::<Skill>() + 1_800;
/// An alias in one protocol without its text: its entries in the indexes.
const ALIAS: usize = 200;
/// An account without its name.
const OWNER: usize = size_of::<Owner>() + 620;
/// A credential.
const KEY: usize = size_of::<Key>() + 220;
/// A job without its texts: its row, its ids and its index entries.
const JOB: usize = size_of::<Job>() + 1_700;
/// A delivery without its texts.
const DELIVERY: usize = size_of::<Delivery>() + 180;
/// A saved answer without its body.
const IDEMPOTENCY_ENTRY: usize = size_of::<IdempotencyEntry>() + 220;
/// A rotation without the name of the skill.
const ROTATION: usize = size_of::<Rotation>() + 160;
/// New owners together may use 1/`NEWCOMERS_SHARE` of all memory. They are owners without a single
/// ledger entry, and requesters without an account: one caller can create any number of them for
/// free.
const NEW_OWNERS_SHARE: u64 = 2;
/// One new owner may use 1/`FREE_SHARE` of what new owners have free, so that the next one finds
/// room however many came before.
const FREE_SHARE: u64 = 4;

/// Memory limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes for all rows together.
    pub total: u64,
    /// Bytes for the rows of one owner; all requesters without an account count as one owner.
    pub per_owner: u64,
}

impl MemoryLimits {
    /// No limit.
    pub const NONE: Self = Self { total: u64::MAX, per_owner: u64::MAX };
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { total: 1 << 30, per_owner: 128 << 20 }
    }
}

/// The owner of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowOwner {
    Owner(OwnerId),
    /// Requesters without an account, all together.
    Guests,
    /// The hub: rows that belong to no owner.
    Hub,
}

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowKind {
    Agents,
    Jobs,
    Deliveries,
    Answers,
    Accounts,
}

impl RowKind {
    pub const ALL: [Self; 5] =
        [Self::Agents, Self::Jobs, Self::Deliveries, Self::Answers, Self::Accounts];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Jobs => "jobs",
            Self::Deliveries => "pushes",
            Self::Answers => "answers",
            Self::Accounts => "accounts",
        }
    }
}

/// The bytes in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    total: u64,
    new_owners: u64,
    /// In the order of [`Kind::ALL`].
    kinds: [u64; RowKind::ALL.len()],
    accounts: IdMap<RowOwner, u64>,
}

impl Footprint {
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes used by new owners together.
    pub fn new_owners(&self) -> u64 {
        self.new_owners
    }

    pub fn bytes_of(&self, account: RowOwner) -> u64 {
        self.accounts.get(&account).copied().unwrap_or(0)
    }

    pub fn bytes_of_kind(&self, kind: RowKind) -> u64 {
        self.kinds[kind as usize]
    }

    /// Every owner with rows, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = (RowOwner, u64)> {
        self.accounts.iter().map(|(account, bytes)| (*account, *bytes))
    }

    pub(super) fn grow(&mut self, growth: &Growth) {
        self.total = self.total.saturating_add_signed(growth.total());
        for (held, bytes) in self.kinds.iter_mut().zip(growth.kinds) {
            *held = held.saturating_add_signed(bytes);
        }
        for (account, bytes) in &growth.accounts {
            let held = self.accounts.entry(*account).or_default();
            *held = held.saturating_add_signed(*bytes);
            if *held == 0 {
                self.accounts.remove(account);
            }
        }
    }
}

/// How changes affect the bytes in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    kinds: [i64; RowKind::ALL.len()],
    accounts: BTreeMap<RowOwner, i64>,
}

impl Growth {
    pub fn total(&self) -> i64 {
        self.kinds.iter().sum()
    }

    fn add(&mut self, kind: RowKind, account: RowOwner, bytes: usize) {
        self.put(kind, account, i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn release(&mut self, kind: RowKind, account: RowOwner, bytes: usize) {
        self.put(kind, account, -i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// How the bytes used by new owners change, including owners that stop being new.
    fn of_new_owners(&self, world: &World, changes: &Changes) -> i64 {
        let touched = changes.owners.keys().map(|id| RowOwner::Owner(*id));
        let only_touched = touched.filter(|account| !self.accounts.contains_key(account));
        let grown = self.accounts.iter().map(|(account, grown)| (*account, *grown));
        let more = grown.chain(only_touched.map(|account| (account, 0))).map(|(account, grown)| {
            let held = i64::try_from(world.footprint.bytes_of(account)).unwrap_or(i64::MAX);
            let before = if is_new_owner(world, None, account) { held } else { 0 };
            let after = if is_new_owner(world, Some(changes), account) { held + grown } else { 0 };
            after - before
        });
        more.sum()
    }

    fn put(&mut self, kind: RowKind, account: RowOwner, bytes: i64) {
        if bytes != 0 {
            self.kinds[kind as usize] += bytes;
            *self.accounts.entry(account).or_default() += bytes;
        }
    }
}

/// Whether rows belong to a new owner, before or after changes.
fn is_new_owner(world: &World, changes: Option<&Changes>, account: RowOwner) -> bool {
    match account {
        RowOwner::Hub => false,
        RowOwner::Guests => true,
        RowOwner::Owner(id) => {
            let changed = changes.and_then(|changes| changes.owners.get(&id));
            let owner = changed.or_else(|| world.owners.get(&id));
            owner.is_none_or(|owner| owner.newest_entry.is_none())
        }
    }
}

/// A row that is kept in memory.
pub trait MemorySize {
    /// The bytes it takes, including texts and indexes.
    fn memory_bytes(&self) -> usize;
}

fn text(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.len() + ALLOCATION }
}

fn optional_text(given: &Option<String>) -> usize {
    given.as_deref().map_or(0, text)
}

impl MemorySize for Agent {
    fn memory_bytes(&self) -> usize {
        let texts = text(&self.native_id) + text(&self.name) + text(&self.card);
        let perhaps = optional_text(&self.original_name) + optional_text(&self.endpoint);
        let skills: usize = self.skills.iter().map(MemorySize::memory_bytes).sum();
        let lists = self.old_secrets.len() * size_of::<OldSecret>()
            + self.blocked.len() * size_of::<AgentId>();
        AGENT + texts + perhaps + skills + lists
    }
}

impl MemorySize for Skill {
    fn memory_bytes(&self) -> usize {
        // The row and both indexes contain the name.
        let texts = text(&self.name) * 3 + text(&self.description) + text(&self.input);
        SKILL
            + texts
            + text(&self.output)
            + optional_text(&self.category)
            + optional_text(&self.native_name)
    }
}

/// Only the variable part: the rest is counted with its agent.
impl MemorySize for AgentState {
    fn memory_bytes(&self) -> usize {
        let said = self.status.as_ref().map_or(0, |said| text(&said.text));
        let claim = self.claimed_reputation.as_deref().map_or(0, text);
        let declined: usize =
            self.declined_jobs.iter().map(|name| text(name) + size_of::<String>()).sum();
        let keys: usize = self.key_records().iter().map(MemorySize::memory_bytes).sum();
        said + claim + declined + keys + self.window.heap_bytes() + self.customers.heap_bytes()
    }
}

impl MemorySize for KeyRecord {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + optional_text(&self.label)
    }
}

impl MemorySize for Key {
    fn memory_bytes(&self) -> usize {
        KEY
    }
}

impl MemorySize for Owner {
    fn memory_bytes(&self) -> usize {
        // The row and both indexes contain the name.
        OWNER + text(&self.name) * 3
    }
}

/// A job that has ended is not in memory.
impl MemorySize for Job {
    fn memory_bytes(&self) -> usize {
        if self.state.is_final() {
            return 0;
        }
        let also: usize = self
            .request
            .alternative_skills
            .iter()
            .map(|name| text(name) + size_of::<String>())
            .sum();
        let guest = match &self.request.requester {
            Requester::Agent(_) => 0,
            Requester::Guest(name) => text(name),
        };
        let offers: usize =
            self.candidates.offers.iter().map(|offer| text(&offer.name) + size_of::<Offer>()).sum();
        let agents =
            (self.candidates.declined.len() + self.candidates.invited.len()) * size_of::<AgentId>();
        let perhaps = optional_text(&self.payment.proof)
            + optional_text(&self.request.callback)
            + optional_text(&self.request.input_error);
        let dialogue: usize = self.questions.iter().map(MemorySize::memory_bytes).sum();
        let sent: usize = self.messages.iter().map(MemorySize::memory_bytes).sum();
        let webhooks: usize = self.webhooks.iter().map(MemorySize::memory_bytes).sum();
        let dialogue = dialogue + sent + webhooks + optional_text(&self.progress.text);
        let handed = self.handover.as_ref().map_or(0, |handover| text(&handover.state));
        // The row and both indexes contain the requester's id for it.
        let texts = text(&self.request.foreign_id) * 3
            + text(&self.request.skill)
            + text(&self.request.input);
        let asked = texts + text(&self.request.meta) + also + guest;
        JOB + asked + offers + agents + perhaps + dialogue + handed
    }
}

impl MemorySize for Question {
    fn memory_bytes(&self) -> usize {
        let original = self.original.as_ref().map_or(0, |original| text(&original.text));
        let perhaps = optional_text(&self.schema) + optional_text(&self.answer) + original;
        size_of::<Self>() + text(&self.text) + perhaps
    }
}

impl MemorySize for RequesterMessage {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + text(&self.body) + text(&self.input)
    }
}

impl MemorySize for JobWebhook {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + text(&self.id) + text(&self.url) + text(&self.meta)
    }
}

/// The text of a message is read from the store for every attempt.
impl MemorySize for Delivery {
    fn memory_bytes(&self) -> usize {
        DELIVERY + text(&self.url) + optional_text(&self.last_error)
    }
}

/// The body of an answer is read from the store when a repeat comes.
impl MemorySize for IdempotencyEntry {
    fn memory_bytes(&self) -> usize {
        IDEMPOTENCY_ENTRY
    }
}

impl MemorySize for Rotation {
    fn memory_bytes(&self) -> usize {
        // The row and both indexes contain the name.
        ROTATION + text(&self.skill) * 3 + self.agents.len() * size_of::<(OwnerId, AgentId)>()
    }
}

/// An alias of an agent: its text, which all indexes share, and its index entries.
fn alias_bytes(name: &str) -> usize {
    ALIAS + text(name)
}

/// How these changes affect the bytes in use.
pub fn compute_growth(world: &World, changes: &Changes) -> Growth {
    let mut growth = Growth::default();
    let of = |agent: AgentId| {
        let agent = changes.agents.get(&agent).or_else(|| world.agents.row(agent));
        agent.map_or(RowOwner::Hub, |agent| RowOwner::Owner(agent.owner))
    };
    for (id, agent) in &changes.agents {
        let old = world.agents.row(*id);
        growth.release(RowKind::Agents, of(*id), old.map_or(0, |old| old.memory_bytes()));
        growth.add(RowKind::Agents, of(*id), agent.hot_row().memory_bytes());
        // An agent state that existed before its agent belonged to no owner.
        if let Some(agent_state) = world.agents.state(*id).filter(|_| old.is_none()) {
            growth.release(RowKind::Agents, RowOwner::Hub, agent_state.memory_bytes());
            growth.add(RowKind::Agents, of(*id), agent_state.memory_bytes());
        }
    }
    for (id, agent_state) in &changes.agent_states {
        let old = world.agents.state(*id);
        growth.release(RowKind::Agents, of(*id), old.map_or(0, |old| old.memory_bytes()));
        growth.add(RowKind::Agents, of(*id), agent_state.memory_bytes());
    }
    let mut named = BTreeMap::new();
    for alias in &changes.aliases {
        let key = (alias.agent, alias.protocol);
        let old = named.insert(key, &*alias.name);
        let old = old.or_else(|| world.alias_of(alias.agent, alias.protocol));
        growth.release(RowKind::Agents, of(alias.agent), old.map_or(0, alias_bytes));
        growth.add(RowKind::Agents, of(alias.agent), alias_bytes(&alias.name));
    }
    let mut keys = BTreeMap::new();
    for key in changes.keys.values() {
        let old = keys.insert(key.hash, key).or_else(|| world.key(&key.hash));
        if let Some(old) = old {
            growth.release(RowKind::Agents, key_owner(old, of), old.memory_bytes());
        }
        growth.add(RowKind::Agents, key_owner(key, of), key.memory_bytes());
    }
    for (id, owner) in &changes.owners {
        let old = world.owners.get(id);
        growth.release(
            RowKind::Accounts,
            RowOwner::Owner(*id),
            old.map_or(0, |old| old.memory_bytes()),
        );
        growth.add(RowKind::Accounts, RowOwner::Owner(*id), owner.memory_bytes());
    }
    for (id, job) in &changes.jobs {
        let account = job_owner(job, of);
        let old = world.jobs.get(id);
        growth.release(RowKind::Jobs, account, old.map_or(0, |old| old.memory_bytes()));
        growth.add(RowKind::Jobs, account, job.memory_bytes());
    }
    for (id, push) in &changes.deliveries {
        if let Some(old) = world.deliveries.get(id) {
            growth.release(RowKind::Deliveries, delivery_owner(old, of), old.memory_bytes());
        }
        if let Some(push) = push {
            growth.add(RowKind::Deliveries, delivery_owner(push, of), push.memory_bytes());
        }
    }
    for (skill, turn) in &changes.rotations {
        let old = world.rotations.get(skill);
        growth.release(RowKind::Accounts, RowOwner::Hub, old.map_or(0, |old| old.memory_bytes()));
        growth.add(RowKind::Accounts, RowOwner::Hub, turn.memory_bytes());
    }
    for (id, memory) in &changes.idempotency_entries {
        let old = world.idempotency_entries.get(id);
        growth.release(RowKind::Answers, RowOwner::Hub, old.map_or(0, |old| old.memory_bytes()));
        growth.add(RowKind::Answers, RowOwner::Hub, memory.memory_bytes());
    }
    growth
}

fn key_owner(key: &Key, of: impl Fn(AgentId) -> RowOwner) -> RowOwner {
    match key.holder {
        Holder::Agent(agent) => of(agent),
        Holder::Operator => RowOwner::Hub,
    }
}

fn job_owner(job: &Job, of: impl Fn(AgentId) -> RowOwner) -> RowOwner {
    match job.request.requester {
        Requester::Agent(agent) => of(agent),
        Requester::Guest(_) => RowOwner::Guests,
    }
}

/// A waiting message counts for its sender. Notices of the hub about a job have no sender.
fn delivery_owner(push: &Delivery, of: impl Fn(AgentId) -> RowOwner) -> RowOwner {
    match push.kind {
        NoticeKind::Message { from: Some(from), .. } => of(from),
        _ => RowOwner::Hub,
    }
}

/// Whether a command is accepted however little memory is left: it ends, forwards or acknowledges
/// something, which frees memory, or it is the operator's.
pub fn is_always_accepted(envelope: &Envelope) -> bool {
    let command = &envelope.command;
    match envelope.proof {
        // Any other first order registers its signer.
        Proof::Signature(_) => matches!(
            command,
            Command::AcceptOffer(_) | Command::ReportResult(_) | Command::AbandonJob(_)
        ),
        Proof::Market(_) => !matches!(
            command,
            Command::Register(_)
                | Command::OpenJob(_)
                | Command::OpenJobWithWebhook(_)
                | Command::Offer { .. }
        ),
        Proof::Credential | Proof::Key(_) => match command {
            Command::Register(_)
            | Command::IssueKey { .. }
            | Command::IssueLimitedKey(_)
            | Command::RenewSecret { .. }
            | Command::OpenAccount { .. }
            | Command::Pay(_)
            | Command::OpenJob(_)
            | Command::OpenJobWithWebhook(_)
            | Command::RequestJob(_)
            | Command::Offer { .. }
            | Command::ReportProgress(_)
            | Command::AskQuestion(_)
            | Command::AnswerQuestion(_)
            | Command::AskToSignIn(_)
            | Command::SendToWorker(_)
            | Command::SetJobWebhook(_)
            | Command::UpdateCard(_)
            | Command::UpdateProfile { .. }
            | Command::ReportStatus { .. }
            | Command::ReportReputation { .. }
            | Command::AddAliases { .. }
            | Command::SendMessage(_)
            | Command::Forward { .. }
            | Command::SetBlocked { .. } => command.is_by_operator(),
            // A report that ends the job frees memory.
            Command::ReportOriginal(order) => {
                use OriginalReport as Own;
                matches!(order.report, Own::Result(_) | Own::Decline { .. })
            }
            _ => true,
        },
    }
}

/// Whether there is memory for what a command adds.
pub fn check_limits(world: &World, changes: &Changes) -> Result<(), Refusal> {
    let growth = compute_growth(world, changes);
    let limits = world.rules.memory;
    let held = world.footprint.total.saturating_add_signed(growth.total());
    if growth.total() > 0 && held > limits.total {
        return Err(Refusal::MemoryFull { budget: MemoryBudget::Hub });
    }
    let new_owners = growth.of_new_owners(world, changes);
    let new_owners = world.footprint.new_owners.saturating_add_signed(new_owners);
    let free = (limits.total / NEW_OWNERS_SHARE).saturating_sub(new_owners);
    for (account, grown) in &growth.accounts {
        let held = world.footprint.bytes_of(*account).saturating_add_signed(*grown);
        // Growth of a job that was already open is caused by others, not by its requester.
        if *account == RowOwner::Hub || *grown <= growth_of_open_jobs(world, changes, *account) {
            continue;
        }
        if held > limits.per_owner {
            return Err(Refusal::MemoryFull { budget: MemoryBudget::Owner });
        }
        if held > free / FREE_SHARE && is_new_owner(world, Some(changes), *account) {
            return Err(Refusal::MemoryFull { budget: MemoryBudget::Newcomers });
        }
    }
    Ok(())
}

/// How much an owner's rows grow by jobs that were already open.
fn growth_of_open_jobs(world: &World, changes: &Changes, account: RowOwner) -> i64 {
    let of = |agent: AgentId| {
        world.agents.row(agent).map_or(RowOwner::Hub, |agent| RowOwner::Owner(agent.owner))
    };
    let grown = changes.jobs.iter().map(|(id, job)| {
        let old = world.jobs.get(id).filter(|old| job_owner(old, of) == account);
        let size = |job: &Job| i64::try_from(job.memory_bytes()).unwrap_or(i64::MAX);
        old.map_or(0, |old| size(job) - size(old))
    });
    grown.sum()
}

impl World {
    /// The bytes in use.
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// Updates the sums for changes, before they are applied.
    pub(super) fn track_growth(&mut self, changes: &Changes) {
        let growth = compute_growth(self, changes);
        self.add_growth(&growth, changes);
    }

    /// Updates the sums for expired rows, before they are removed.
    pub(super) fn track_expired(&mut self, forgotten: &ExpiredRows) {
        let mut growth = Growth::default();
        let of = |agent: AgentId| {
            self.agents.row(agent).map_or(RowOwner::Hub, |agent| RowOwner::Owner(agent.owner))
        };
        for memory in forgotten.answers.iter().filter_map(|id| self.idempotency_entries.get(id)) {
            growth.release(RowKind::Answers, RowOwner::Hub, memory.memory_bytes());
        }
        for end in &forgotten.keys {
            let key = self.key_expiries.get(end).and_then(|hash| self.key(hash));
            if let Some(key) = key.filter(|key| key.id == end.1) {
                growth.release(RowKind::Agents, key_owner(key, of), key.memory_bytes());
            }
        }
        self.add_growth(&growth, &Changes::default());
    }

    fn add_growth(&mut self, growth: &Growth, changes: &Changes) {
        let new_owners = growth.of_new_owners(self, changes);
        self.footprint.new_owners = self.footprint.new_owners.saturating_add_signed(new_owners);
        self.footprint.grow(growth);
    }

    /// The same, recounted from every row.
    pub fn recount_footprint(&self) -> Footprint {
        let mut growth = Growth::default();
        let of = |agent: AgentId| {
            self.agents.row(agent).map_or(RowOwner::Hub, |agent| RowOwner::Owner(agent.owner))
        };
        for agent in self.agents.rows() {
            growth.add(RowKind::Agents, of(agent.id), agent.memory_bytes());
        }
        for agent_state in self.agents.states() {
            growth.add(RowKind::Agents, of(agent_state.agent), agent_state.memory_bytes());
        }
        for ((agent, _), name) in &self.agent_aliases {
            growth.add(RowKind::Agents, of(*agent), alias_bytes(name));
        }
        for agent in self.agents.rows() {
            let bytes = self.native_alias(agent, agent.home).map_or(0, alias_bytes);
            growth.add(RowKind::Agents, of(agent.id), bytes);
        }
        for key in self.all_keys() {
            growth.add(RowKind::Agents, key_owner(key, of), key.memory_bytes());
        }
        for owner in self.owners.values() {
            growth.add(RowKind::Accounts, RowOwner::Owner(owner.id), owner.memory_bytes());
        }
        for job in self.jobs.values() {
            growth.add(RowKind::Jobs, job_owner(job, of), job.memory_bytes());
        }
        for push in self.deliveries.values() {
            growth.add(RowKind::Deliveries, delivery_owner(push, of), push.memory_bytes());
        }
        for turn in self.rotations.values() {
            growth.add(RowKind::Accounts, RowOwner::Hub, turn.memory_bytes());
        }
        for memory in self.idempotency_entries.values() {
            growth.add(RowKind::Answers, RowOwner::Hub, memory.memory_bytes());
        }
        let mut counted = Footprint::default();
        counted.grow(&growth);
        let new_owners =
            counted.accounts().filter(|(account, _)| is_new_owner(self, None, *account));
        counted.new_owners = new_owners.map(|(_, bytes)| bytes).sum();
        counted
    }
}
