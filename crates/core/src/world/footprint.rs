//! The memory that the rows of a world take, per owner and in total.
//!
//! A row counts its content plus its index entries, in both copies of the world that a hub has. The
//! sums are updated from changed rows, in one place, so a new kind of row only defines its size
//! ([`Held`]) and its owner ([`growth`]). Rows that are not in memory do not count: finished jobs,
//! notices, ledger entries, and the cards and schemas of agents that have left.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::mem::size_of;

use super::World;
use super::id_map::QuickMap;
use crate::agent::key::{Holder, Key};
use crate::agent::{Agent, Desk, OldSecret, Skill};
use crate::changes::{Changes, Forgotten};
use crate::command::Command;
use crate::id::{AgentId, OwnerId};
use crate::job::select::Turn;
use crate::job::{Job, Offer, Requester};
use crate::market::Deed as Posted;
use crate::idempotency::Remembered;
use crate::notice::{News, Push};
use crate::owner::Owner;
use crate::refusal::{Budget, Refusal};
use crate::signed_order::Deed;

/// Allocator overhead per text.
const ALLOCATION: usize = 16;
/// An agent without its texts: its row, its agent state, its inbox, and its index entries.
const AGENT: usize = size_of::<Agent>() + size_of::<Desk>() + 1_100;
/// A skill without its texts: its entry, and an index entry that no other agent shares.
const SKILL: usize = size_of::<Skill>() + 1_800;
/// An alias in one protocol: its entries in the two indexes.
const ALIAS: usize = 260;
/// An account without its name.
const OWNER: usize = size_of::<Owner>() + 620;
/// A credential.
const KEY: usize = size_of::<Key>() + 420;
/// A job without its texts: its row, its ids and its index entries.
const JOB: usize = size_of::<Job>() + 1_700;
/// A delivery without its texts.
const PUSH: usize = size_of::<Push>() + 180;
/// A saved answer without its body.
const ANSWER: usize = size_of::<Remembered>() + 220;
/// A rotation without the name of the skill.
const TURN: usize = size_of::<Turn>() + 160;
/// New owners together may use 1/`NEWCOMERS_SHARE` of all memory. They are owners without a single
/// ledger entry, and requesters without an account: one caller can create any number of them for
/// free.
const NEWCOMERS_SHARE: u64 = 2;
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
pub enum Account {
    Owner(OwnerId),
    /// Requesters without an account, all together.
    Guests,
    /// The hub: rows that belong to no owner.
    Hub,
}

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Agents,
    Jobs,
    Pushes,
    Answers,
    Accounts,
}

impl Kind {
    pub const ALL: [Self; 5] =
        [Self::Agents, Self::Jobs, Self::Pushes, Self::Answers, Self::Accounts];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Jobs => "jobs",
            Self::Pushes => "pushes",
            Self::Answers => "answers",
            Self::Accounts => "accounts",
        }
    }
}

/// The bytes in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    total: u64,
    newcomers: u64,
    /// In the order of [`Kind::ALL`].
    kinds: [u64; Kind::ALL.len()],
    accounts: QuickMap<Account, u64>,
}

impl Footprint {
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes used by new owners together.
    pub fn newcomers(&self) -> u64 {
        self.newcomers
    }

    pub fn of(&self, account: Account) -> u64 {
        self.accounts.get(&account).copied().unwrap_or(0)
    }

    pub fn of_kind(&self, kind: Kind) -> u64 {
        self.kinds[kind as usize]
    }

    /// Every owner with rows, in no order.
    pub fn accounts(&self) -> impl Iterator<Item = (Account, u64)> {
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
    kinds: [i64; Kind::ALL.len()],
    accounts: BTreeMap<Account, i64>,
}

impl Growth {
    pub fn total(&self) -> i64 {
        self.kinds.iter().sum()
    }

    fn add(&mut self, kind: Kind, account: Account, bytes: usize) {
        self.put(kind, account, i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    pub(super) fn release(&mut self, kind: Kind, account: Account, bytes: usize) {
        self.put(kind, account, -i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// How the bytes used by new owners change, including owners that stop being new.
    fn of_newcomers(&self, world: &World, changes: &Changes) -> i64 {
        let touched = changes.owners.keys().map(|id| Account::Owner(*id));
        let only_touched = touched.filter(|account| !self.accounts.contains_key(account));
        let grown = self.accounts.iter().map(|(account, grown)| (*account, *grown));
        let more = grown.chain(only_touched.map(|account| (account, 0))).map(|(account, grown)| {
            let held = i64::try_from(world.footprint.of(account)).unwrap_or(i64::MAX);
            let before = if is_newcomer(world, None, account) { held } else { 0 };
            let after = if is_newcomer(world, Some(changes), account) { held + grown } else { 0 };
            after - before
        });
        more.sum()
    }

    fn put(&mut self, kind: Kind, account: Account, bytes: i64) {
        if bytes != 0 {
            self.kinds[kind as usize] += bytes;
            *self.accounts.entry(account).or_default() += bytes;
        }
    }
}

/// Whether rows belong to a new owner, before or after changes.
fn is_newcomer(world: &World, changes: Option<&Changes>, account: Account) -> bool {
    match account {
        Account::Hub => false,
        Account::Guests => true,
        Account::Owner(id) => {
            let changed = changes.and_then(|changes| changes.owners.get(&id));
            let owner = changed.or_else(|| world.owners.get(&id));
            owner.is_none_or(|owner| owner.newest.is_none())
        }
    }
}

/// A row that is kept in memory.
pub trait Held {
    /// The bytes it takes, including texts and indexes.
    fn held_bytes(&self) -> usize;
}

fn text(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.len() + ALLOCATION }
}

fn maybe(given: &Option<String>) -> usize {
    given.as_deref().map_or(0, text)
}

impl Held for Agent {
    fn held_bytes(&self) -> usize {
        let texts = text(&self.native) + text(&self.name) + text(&self.card);
        let perhaps = maybe(&self.came_as) + maybe(&self.endpoint);
        let skills: usize = self.skills.iter().map(Held::held_bytes).sum();
        let lists = self.old_secrets.len() * size_of::<OldSecret>()
            + self.blocked.len() * size_of::<AgentId>();
        AGENT + texts + perhaps + skills + lists
    }
}

impl Held for Skill {
    fn held_bytes(&self) -> usize {
        // The row and both indexes contain the name.
        let texts = text(&self.name) * 3 + text(&self.about) + text(&self.input);
        SKILL + texts + text(&self.output) + maybe(&self.sort) + maybe(&self.stands_for)
    }
}

/// Only the variable part: the rest is counted with its agent.
impl Held for Desk {
    fn held_bytes(&self) -> usize {
        let said = self.said.as_ref().map_or(0, |said| text(&said.words));
        let claim = self.claim.as_deref().map_or(0, text);
        let declined: usize =
            self.declined.iter().map(|name| text(name) + size_of::<String>()).sum();
        said + claim + declined + self.window.held_bytes() + self.patrons.held_bytes()
    }
}

impl Held for Key {
    fn held_bytes(&self) -> usize {
        KEY
    }
}

impl Held for Owner {
    fn held_bytes(&self) -> usize {
        // The row and both indexes contain the name.
        OWNER + text(&self.name) * 3
    }
}

/// A job that has ended is not in memory.
impl Held for Job {
    fn held_bytes(&self) -> usize {
        if self.state.is_final() {
            return 0;
        }
        let also: usize = self.also.iter().map(|name| text(name) + size_of::<String>()).sum();
        let guest = match &self.requester {
            Requester::Agent(_) => 0,
            Requester::Guest(name) => text(name),
        };
        let offers: usize =
            self.offers.iter().map(|offer| text(&offer.name) + size_of::<Offer>()).sum();
        let agents = (self.declined.len() + self.asked.len()) * size_of::<AgentId>();
        let perhaps = maybe(&self.payment_proof) + maybe(&self.callback) + maybe(&self.flaw);
        // The row and both indexes contain the requester's id for it.
        let texts = text(&self.foreign) * 3 + text(&self.skill) + text(&self.input);
        JOB + texts + text(&self.meta) + also + guest + offers + agents + perhaps
    }
}

/// The text of a message is read from the store for every attempt.
impl Held for Push {
    fn held_bytes(&self) -> usize {
        PUSH + text(&self.url) + maybe(&self.trouble)
    }
}

/// The body of an answer is read from the store when a repeat comes.
impl Held for Remembered {
    fn held_bytes(&self) -> usize {
        ANSWER
    }
}

impl Held for Turn {
    fn held_bytes(&self) -> usize {
        // The row and both indexes contain the name.
        TURN + text(&self.skill) * 3 + self.agents.len() * size_of::<(OwnerId, AgentId)>()
    }
}

/// An alias of an agent. Each index contains it twice, by name and by agent.
fn alias_bytes(name: &str) -> usize {
    ALIAS + text(name) * 4
}

/// How these changes affect the bytes in use.
pub fn growth(world: &World, changes: &Changes) -> Growth {
    let mut growth = Growth::default();
    let of = |agent: AgentId| {
        let agent = changes.agents.get(&agent).or_else(|| world.agents.get(&agent));
        agent.map_or(Account::Hub, |agent| Account::Owner(agent.owner))
    };
    for (id, agent) in &changes.agents {
        let old = world.agents.get(id);
        growth.release(Kind::Agents, of(*id), old.map_or(0, |old| old.held_bytes()));
        growth.add(Kind::Agents, of(*id), agent.at_hand().held_bytes());
        // An agent state that existed before its agent belonged to no owner.
        if let Some(desk) = world.desks.get(id).filter(|_| old.is_none()) {
            growth.release(Kind::Agents, Account::Hub, desk.held_bytes());
            growth.add(Kind::Agents, of(*id), desk.held_bytes());
        }
    }
    for (id, desk) in &changes.desks {
        let old = world.desks.get(id);
        growth.release(Kind::Agents, of(*id), old.map_or(0, |old| old.held_bytes()));
        growth.add(Kind::Agents, of(*id), desk.held_bytes());
    }
    let mut named = BTreeMap::new();
    for alias in &changes.aliases {
        let key = (alias.agent, alias.protocol);
        let old = named.insert(key, alias.name.as_str());
        let old = old.or_else(|| world.names.get(&key).map(String::as_str));
        growth.release(Kind::Agents, of(alias.agent), old.map_or(0, alias_bytes));
        growth.add(Kind::Agents, of(alias.agent), alias_bytes(&alias.name));
    }
    let mut keys = BTreeMap::new();
    for key in changes.keys.values() {
        let old = keys.insert(key.hash, key).or_else(|| world.keys.get(&key.hash));
        if let Some(old) = old {
            growth.release(Kind::Agents, key_account(old, of), old.held_bytes());
        }
        growth.add(Kind::Agents, key_account(key, of), key.held_bytes());
    }
    for (id, owner) in &changes.owners {
        let old = world.owners.get(id);
        growth.release(Kind::Accounts, Account::Owner(*id), old.map_or(0, |old| old.held_bytes()));
        growth.add(Kind::Accounts, Account::Owner(*id), owner.held_bytes());
    }
    for (id, job) in &changes.jobs {
        let account = job_account(job, of);
        let old = world.jobs.get(id);
        growth.release(Kind::Jobs, account, old.map_or(0, |old| old.held_bytes()));
        growth.add(Kind::Jobs, account, job.held_bytes());
    }
    for (id, push) in &changes.pushes {
        if let Some(old) = world.pushes.get(id) {
            growth.release(Kind::Pushes, push_account(old, of), old.held_bytes());
        }
        if let Some(push) = push {
            growth.add(Kind::Pushes, push_account(push, of), push.held_bytes());
        }
    }
    for (skill, turn) in &changes.turns {
        let old = world.turns.get(skill);
        growth.release(Kind::Accounts, Account::Hub, old.map_or(0, |old| old.held_bytes()));
        growth.add(Kind::Accounts, Account::Hub, turn.held_bytes());
    }
    for (id, memory) in &changes.remembered {
        let old = world.memories.get(id);
        growth.release(Kind::Answers, Account::Hub, old.map_or(0, |old| old.held_bytes()));
        growth.add(Kind::Answers, Account::Hub, memory.held_bytes());
    }
    growth
}

fn key_account(key: &Key, of: impl Fn(AgentId) -> Account) -> Account {
    match key.holder {
        Holder::Agent(agent) => of(agent),
        Holder::Operator => Account::Hub,
    }
}

fn job_account(job: &Job, of: impl Fn(AgentId) -> Account) -> Account {
    match job.requester {
        Requester::Agent(agent) => of(agent),
        Requester::Guest(_) => Account::Guests,
    }
}

/// A waiting message counts for its sender. Notices of the hub about a job have no sender.
fn push_account(push: &Push, of: impl Fn(AgentId) -> Account) -> Account {
    match push.news {
        News::Message { from: Some(from), .. } => of(from),
        _ => Account::Hub,
    }
}

/// Whether a command is accepted however little memory is left: it ends, forwards or acknowledges
/// something, which frees memory, or it is the operator's.
pub fn is_always_accepted(command: &Command) -> bool {
    match command {
        Command::Enrol(_)
        | Command::IssueKey { .. }
        | Command::RenewSecret { .. }
        | Command::OpenAccount { .. }
        | Command::Pay(_)
        | Command::OpenJob(_)
        | Command::Offer { .. }
        | Command::Stand { .. }
        | Command::Boast { .. }
        | Command::Name { .. }
        | Command::Send(_)
        | Command::Block { .. } => command.is_by_operator(),
        // Any other first order registers its signer.
        Command::Signed(order) => {
            matches!(order.deed, Deed::Accept(_) | Deed::Result(_) | Deed::Fail(_))
        }
        Command::Post(order) => {
            !matches!(order.deed, Posted::Enrol(_) | Posted::Open(_) | Posted::Offer { .. })
        }
        _ => true,
    }
}

/// Whether there is memory for what a command adds.
pub fn check(world: &World, changes: &Changes) -> Result<(), Refusal> {
    let growth = growth(world, changes);
    let limits = world.rules.memory;
    let held = world.footprint.total.saturating_add_signed(growth.total());
    if growth.total() > 0 && held > limits.total {
        return Err(Refusal::MemoryFull { of: Budget::Hub });
    }
    let newcomers = growth.of_newcomers(world, changes);
    let newcomers = world.footprint.newcomers.saturating_add_signed(newcomers);
    let free = (limits.total / NEWCOMERS_SHARE).saturating_sub(newcomers);
    for (account, grown) in &growth.accounts {
        let held = world.footprint.of(*account).saturating_add_signed(*grown);
        // Growth of a job that was already open is caused by others, not by its requester.
        if *account == Account::Hub || *grown <= open_jobs(world, changes, *account) {
            continue;
        }
        if held > limits.per_owner {
            return Err(Refusal::MemoryFull { of: Budget::Owner });
        }
        if held > free / FREE_SHARE && is_newcomer(world, Some(changes), *account) {
            return Err(Refusal::MemoryFull { of: Budget::Newcomers });
        }
    }
    Ok(())
}

/// How much an owner's rows grow by jobs that were already open.
fn open_jobs(world: &World, changes: &Changes, account: Account) -> i64 {
    let of = |agent: AgentId| {
        world.agents.get(&agent).map_or(Account::Hub, |agent| Account::Owner(agent.owner))
    };
    let grown = changes.jobs.iter().map(|(id, job)| {
        let old = world.jobs.get(id).filter(|old| job_account(old, of) == account);
        let size = |job: &Job| i64::try_from(job.held_bytes()).unwrap_or(i64::MAX);
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
    pub(super) fn count(&mut self, changes: &Changes) {
        let growth = growth(self, changes);
        self.take_in(&growth, changes);
    }

    /// Updates the sums for expired rows, before they are removed.
    pub(super) fn count_forgotten(&mut self, forgotten: &Forgotten) {
        let mut growth = Growth::default();
        let of = |agent: AgentId| {
            self.agents.get(&agent).map_or(Account::Hub, |agent| Account::Owner(agent.owner))
        };
        for memory in forgotten.answers.iter().filter_map(|id| self.memories.get(id)) {
            growth.release(Kind::Answers, Account::Hub, memory.held_bytes());
        }
        for end in &forgotten.keys {
            let key = self.key_ends.get(end).and_then(|hash| self.keys.get(hash));
            if let Some(key) = key.filter(|key| key.id == end.1) {
                growth.release(Kind::Agents, key_account(key, of), key.held_bytes());
            }
        }
        self.take_in(&growth, &Changes::default());
    }

    fn take_in(&mut self, growth: &Growth, changes: &Changes) {
        let newcomers = growth.of_newcomers(self, changes);
        self.footprint.newcomers = self.footprint.newcomers.saturating_add_signed(newcomers);
        self.footprint.grow(growth);
    }

    /// The same, recounted from every row.
    pub fn counted_footprint(&self) -> Footprint {
        let mut growth = Growth::default();
        let of = |agent: AgentId| {
            self.agents.get(&agent).map_or(Account::Hub, |agent| Account::Owner(agent.owner))
        };
        for (id, agent) in &self.agents {
            growth.add(Kind::Agents, of(*id), agent.held_bytes());
        }
        for (id, desk) in &self.desks {
            growth.add(Kind::Agents, of(*id), desk.held_bytes());
        }
        for ((agent, _), name) in &self.names {
            growth.add(Kind::Agents, of(*agent), alias_bytes(name));
        }
        for key in self.keys.values() {
            growth.add(Kind::Agents, key_account(key, of), key.held_bytes());
        }
        for owner in self.owners.values() {
            growth.add(Kind::Accounts, Account::Owner(owner.id), owner.held_bytes());
        }
        for job in self.jobs.values() {
            growth.add(Kind::Jobs, job_account(job, of), job.held_bytes());
        }
        for push in self.pushes.values() {
            growth.add(Kind::Pushes, push_account(push, of), push.held_bytes());
        }
        for turn in self.turns.values() {
            growth.add(Kind::Accounts, Account::Hub, turn.held_bytes());
        }
        for memory in self.memories.values() {
            growth.add(Kind::Answers, Account::Hub, memory.held_bytes());
        }
        let mut counted = Footprint::default();
        counted.grow(&growth);
        let newcomers = counted.accounts().filter(|(account, _)| is_newcomer(self, None, *account));
        counted.newcomers = newcomers.map(|(_, bytes)| bytes).sum();
        counted
    }
}
