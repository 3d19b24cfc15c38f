//! A draft: the changes of one command while it is being decided.
//!
//! Rules read through the draft and see the command's own earlier changes. The draft of a refused
//! command is dropped, so a refusal changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::agent::key::Key;
use crate::agent::presence::{Stance, online_until};
use crate::agent::{Agent, Desk};
use crate::alias::{Alias, Claim, Digest, Protocol, Target};
use crate::changes::{Changes, Counters};
use crate::event::{Event, Line};
use crate::id::*;
use crate::job::Job;
use crate::job::select::Turn;
use crate::ledger::{Entry, Transfer};
use crate::market::Posting;
use crate::idempotency::{Memory, Remembered};
use crate::message::inbox::Mailbox;
use crate::notice::{Arrival, News, Notice, Push};
use crate::owner::Owner;
use crate::reputation::Outcome;
use crate::time::{Millis, Timestamp};
use crate::world::World;

/// The changes of one command in progress.
pub struct Draft<'w> {
    pub world: &'w World,
    pub now: Timestamp,
    pub by_operator: bool,
    pub next: Counters,
    agents: BTreeMap<AgentId, Agent>,
    desks: BTreeMap<AgentId, Desk>,
    mailboxes: BTreeMap<AgentId, Mailbox>,
    settled: BTreeSet<AgentId>,
    owners: BTreeMap<OwnerId, Owner>,
    jobs: BTreeMap<JobId, Job>,
    keys: BTreeMap<KeyId, Key>,
    turns: BTreeMap<String, Turn>,
    pushes: BTreeMap<NoticeId, Option<Push>>,
    pub(crate) memories: Vec<Memory>,
    aliases: Vec<Alias>,
    claims: Vec<Claim>,
    pub(crate) entries: Vec<Entry>,
    transfers: Vec<Arc<Transfer>>,
    notices: Vec<Arc<Notice>>,
    arrivals: Vec<Arrival>,
    outcomes: Vec<Outcome>,
    events: Vec<Event>,
    postings: Vec<Arc<Posting>>,
    /// The command's original text, for receivers of the same protocol.
    pub(crate) said: Option<Said>,
    /// The agent that gets the answer of this command, so it needs no notice.
    pub(crate) answered: Option<AgentId>,
}

/// A command's original text and its protocol.
pub struct Said {
    pub by: AgentId,
    pub words: Protocol,
    pub body: String,
}

impl<'w> Draft<'w> {
    /// An empty draft over the given world.
    pub fn new(world: &'w World, now: Timestamp) -> Self {
        Self {
            world,
            now,
            by_operator: false,
            next: world.next,
            agents: BTreeMap::new(),
            desks: BTreeMap::new(),
            mailboxes: BTreeMap::new(),
            settled: BTreeSet::new(),
            owners: BTreeMap::new(),
            jobs: BTreeMap::new(),
            keys: BTreeMap::new(),
            turns: BTreeMap::new(),
            pushes: BTreeMap::new(),
            memories: Vec::new(),
            aliases: Vec::new(),
            claims: Vec::new(),
            entries: Vec::new(),
            transfers: Vec::new(),
            notices: Vec::new(),
            arrivals: Vec::new(),
            outcomes: Vec::new(),
            events: Vec::new(),
            postings: Vec::new(),
            said: None,
            answered: None,
        }
    }

    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(&id).or_else(|| self.world.agent(id).map(|agent| &**agent))
    }

    /// The full row of an agent, including one that has left.
    pub fn whole_agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(&id).or_else(|| self.world.whole_agent(id).map(|agent| &**agent))
    }

    pub fn desk(&self, id: AgentId) -> Option<&Desk> {
        self.desks.get(&id).or_else(|| self.world.desk(id).map(|desk| &**desk))
    }

    pub fn owner(&self, id: OwnerId) -> Option<&Owner> {
        self.owners.get(&id).or_else(|| self.world.owner(id).map(|owner| &**owner))
    }

    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id).or_else(|| self.world.job(id).map(|job| &**job))
    }

    /// Agents the world's index does not list yet: those this command wrote, and those it may have
    /// brought back by recording activity or by resuming their owner.
    pub fn written(&self) -> impl Iterator<Item = &Agent> {
        let back = self.desks.keys().filter(|id| !self.wrote(**id) && !self.world.shows(**id));
        let resumed = self.owners.values().filter(|owner| {
            let before = self.world.owner(owner.id);
            !owner.suspended && before.is_some_and(|before| before.suspended)
        });
        let resumed = resumed.flat_map(|owner| self.world.agents_of(owner.id));
        let resumed = resumed.filter(|id| !self.wrote(*id) && !self.desks.contains_key(id));
        self.agents.values().chain(back.copied().chain(resumed).filter_map(|id| self.agent(id)))
    }

    /// Whether this command wrote that agent, so that its index entry is outdated.
    pub fn wrote(&self, id: AgentId) -> bool {
        self.agents.contains_key(&id)
    }

    /// Whether the agent or its owner is suspended, including this command's changes.
    pub fn is_suspended(&self, id: AgentId) -> bool {
        let Some(agent) = self.agent(id) else { return false };
        match self.owners.get(&agent.owner) {
            Some(owner) => agent.suspended || owner.suspended,
            None => self.world.suspends(agent),
        }
    }

    /// Whether the agent counts as online, including this command's changes.
    pub fn is_online(&self, id: AgentId) -> bool {
        let (Some(agent), Some(desk)) = (self.agent(id), self.desk(id)) else { return false };
        if self.is_suspended(id) {
            return false;
        }
        let until = online_until(agent, desk, self.world.rules.presence_ttl);
        until.is_some_and(|until| self.now <= until)
    }

    /// How many jobs are assigned to the agent, including those of this command.
    pub fn jobs_in_hand(&self, id: AgentId) -> usize {
        let (mut more, mut less) = (0, 0);
        for job in self.jobs.values() {
            let before = self.world.job(job.id).and_then(|job| job.in_hand_of());
            more += usize::from(job.in_hand_of() == Some(id));
            less += usize::from(before == Some(id));
        }
        (self.world.jobs_in_hand(id) + more).saturating_sub(less)
    }

    /// How many jobs the agent started in the last minute, including those of this command.
    pub fn begun_lately(&self, id: AgentId) -> usize {
        let now = self.now;
        let new = self.jobs.values().filter(|job| {
            let before = self.world.job(job.id).map_or(0, |before| before.epoch);
            job.epoch > before && job.worker() == Some(id)
        });
        self.world.begun_lately(id, now) + new.count()
    }

    /// The owner with this ledger name, including one created by this command.
    pub fn owner_named(&self, name: &str) -> Option<OwnerId> {
        let made = self.owners.values().find(|owner| owner.name == name).map(|owner| owner.id);
        made.or_else(|| self.world.owner_named(name))
    }

    /// What a foreign id was used for, if it was used.
    pub fn claimed(&self, digest: Digest) -> Option<Target> {
        let own = self.claims.iter().rev().find(|claim| claim.digest == digest);
        let claim = own.copied().or_else(|| self.world.claim(digest));
        claim.map(|claim| claim.target).filter(|target| *target != Target::Free)
    }

    pub fn put_agent(&mut self, agent: Agent) {
        self.agents.insert(agent.id, agent);
    }

    pub fn put_owner(&mut self, owner: Owner) {
        self.owners.insert(owner.id, owner);
    }

    pub fn put_job(&mut self, job: Job) {
        self.jobs.insert(job.id, job);
    }

    pub fn put_key(&mut self, key: Key) {
        self.keys.insert(key.id, key);
    }

    pub fn put_push(&mut self, notice: NoticeId, push: Option<Push>) {
        self.pushes.insert(notice, push);
    }

    /// The agent state, for changing. An agent without one gets a new one.
    pub fn desk_mut(&mut self, id: AgentId) -> &mut Desk {
        let (world, now) = (self.world, self.now);
        self.desks.entry(id).or_insert_with(|| {
            world.desk(id).map_or_else(|| Desk::new(id, now), |desk| Desk::clone(desk))
        })
    }

    /// The agent's inbox positions.
    pub fn mailbox(&self, id: AgentId) -> Mailbox {
        self.mailboxes.get(&id).copied().unwrap_or_else(|| self.world.mailbox(id))
    }

    /// The inbox, for changes that follow from this command's notices. Any other change needs
    /// `persist_inbox` as well.
    pub fn mailbox_mut(&mut self, id: AgentId) -> &mut Mailbox {
        let world = self.world;
        self.mailboxes.entry(id).or_insert_with(|| world.mailbox(id))
    }

    /// Writes the inbox row with this command.
    pub fn settle_mailbox(&mut self, id: AgentId) {
        self.settled.insert(id);
    }

    pub fn arrival(&mut self, arrival: Arrival) {
        self.arrivals.push(arrival);
    }

    /// The owner, for changing.
    pub fn owner_mut(&mut self, id: OwnerId) -> &mut Owner {
        let world = self.world;
        self.owners.entry(id).or_insert_with(|| {
            Owner::clone(world.owner(id).expect("owners are looked up before they are changed"))
        })
    }

    /// Marks a foreign id as used.
    pub fn claim(&mut self, digest: Digest, target: Target) {
        let id = self.next.claim;
        self.next.claim = id.next();
        self.claims.push(Claim { id, digest, target });
    }

    pub fn alias(&mut self, protocol: Protocol, name: String, agent: AgentId) {
        let id = self.next.alias;
        self.next.alias = id.next();
        self.aliases.push(Alias { id, protocol, name, agent });
    }

    pub fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub fn posting(&mut self, posting: Posting) {
        self.postings.push(Arc::new(posting));
    }

    /// The notices of this command.
    pub fn notices(&self) -> &[Arc<Notice>] {
        &self.notices
    }

    /// Jobs this command wrote.
    pub fn touched_jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    pub fn outcome(&mut self, outcome: Outcome) {
        self.next.outcome = outcome.id.next();
        self.outcomes.push(outcome);
    }

    pub fn transfer(&mut self, transfer: Transfer) -> Arc<Transfer> {
        self.next.transfer = transfer.id.next();
        let transfer = Arc::new(transfer);
        self.transfers.push(transfer.clone());
        transfer
    }

    /// Adds a notice for an agent, and a delivery to `url` if given.
    pub fn tell(&mut self, to: Option<AgentId>, news: News, url: Option<String>) -> NoticeId {
        self.tell_later(to, news, url, Millis(0))
    }

    /// Adds a notice and a delivery whose first attempt is delayed.
    pub fn tell_later(
        &mut self,
        to: Option<AgentId>,
        news: News,
        url: Option<String>,
        first_try: Millis,
    ) -> NoticeId {
        let id = self.next.notice;
        self.next.notice = id.next();
        let (mut position, mut before) = (0, None);
        if let Some(agent) = to {
            let mailbox = self.mailbox(agent);
            (position, before) = (mailbox.head + 1, mailbox.newest);
        }
        let at = self.now;
        if let Some(url) = url {
            let (news, next_try) = (news.without_text(), Some(at.plus(first_try)));
            let (attempts, trouble) = (0, None);
            let push =
                Push { notice: id, to, position, at, url, news, attempts, next_try, trouble };
            self.pushes.insert(id, Some(push));
        }
        let notice = Notice { id, to, position, before, at, news };
        if let Some(agent) = to {
            self.mailbox_mut(agent).receive(&notice);
        }
        self.notices.push(Arc::new(notice));
        id
    }

    /// Notifies one party of a job about an action of the other party: with the original text if
    /// both use the same protocol, otherwise with `kind`. The author of the text is not notified.
    pub fn tell_party(&mut self, to: AgentId, news: News, url: Option<String>) {
        if !self.tell_in_words(to) {
            self.tell(Some(to), news, url);
        }
    }

    /// Forwards the original text to an agent of the same protocol; `false` if protocols differ.
    pub fn tell_in_words(&mut self, to: AgentId) -> bool {
        let Some(said) = &self.said else { return false };
        let Some(agent) = self.agent(to).filter(|agent| agent.home == said.words) else {
            return false;
        };
        if said.by != to {
            let (from, words, body) = (said.by, said.words, said.body.clone());
            let url = agent.push_url();
            let follows = self.mailbox(from).sent;
            let news = News::Message { from: Some(from), words, body, follows };
            let notice = self.tell(Some(to), news, url);
            self.mailbox_mut(from).wrote(notice);
        }
        true
    }

    pub fn turn(&self, skill: &str) -> Option<Turn> {
        self.turns
            .get(skill)
            .cloned()
            .or_else(|| self.world.turn(skill).map(|turn| Turn::clone(turn)))
    }

    /// Records whose turn in the rotation it was.
    pub fn take_turn(&mut self, skill: &str, owner: OwnerId, agent: AgentId) {
        let fresh = || Turn { skill: skill.to_owned(), owner, agents: Vec::new() };
        let mut turn = self.turn(skill).unwrap_or_else(fresh);
        turn.owner = owner;
        turn.agents.retain(|(known, _)| *known != owner);
        // An owner with one agent has nothing to rotate, and the row stays small without it.
        if self.world.agents_of(owner).nth(1).is_some() {
            turn.agents.push((owner, agent));
        }
        self.turns.insert(skill.to_owned(), turn);
    }

    /// The finished changes.
    pub fn finish(mut self) -> Changes {
        self.note_work();
        let mut lines = Vec::new();
        if !self.events.is_empty() {
            let id = self.next.event;
            self.next.event = id.next();
            let (at, by_operator, events) = (self.now, self.by_operator, self.events);
            lines.push(Arc::new(Line { id, at, by_operator, events }));
        }
        let mut changes = Changes {
            agents: shared(self.agents),
            desks: shared(self.desks),
            mailboxes: self.mailboxes,
            settled: self.settled,
            owners: shared(self.owners),
            jobs: shared(self.jobs),
            keys: shared(self.keys),
            turns: shared(self.turns),
            pushes: self.pushes.into_iter().map(|(id, push)| (id, push.map(Arc::new))).collect(),
            remembered: self
                .memories
                .iter()
                .map(|one| (one.id, Arc::new(Remembered::from(one))))
                .collect(),
            memories: self.memories.into_iter().map(|one| (one.id, Arc::new(one))).collect(),
            aliases: self.aliases,
            claims: self.claims,
            entries: self.entries,
            transfers: self.transfers,
            notices: self.notices,
            arrivals: self.arrivals,
            outcomes: self.outcomes,
            lines,
            postings: self.postings,
            next: None,
        };
        let touched = self.next != self.world.next
            || !changes.agents.is_empty()
            || !changes.desks.is_empty()
            || !changes.settled.is_empty()
            || !changes.owners.is_empty()
            || !changes.jobs.is_empty()
            || !changes.keys.is_empty()
            || !changes.pushes.is_empty()
            || !changes.memories.is_empty();
        self.next.at = self.next.at.max(self.now);
        changes.next = touched.then_some(self.next);
        changes
    }
}

impl Draft<'_> {
    /// Records which agents started working or have no work left.
    fn note_work(&mut self) {
        let mut touched = BTreeSet::new();
        for job in self.jobs.values() {
            let before = self.world.job(job.id).filter(|job| job.is_worked_on());
            let before = before.and_then(|job| job.worker());
            let after = job.worker().filter(|_| job.is_worked_on());
            if before != after {
                touched.extend(before.into_iter().chain(after));
            }
        }
        for agent in touched {
            let worked = self.world.work_of(agent).any(|job| job.is_worked_on());
            let works = self.is_at_work(agent);
            if worked == works {
                continue;
            }
            let stance = self.desk(agent).map(|desk| desk.presence.stance);
            if stance.is_some_and(Stance::is_open) {
                self.event(match works {
                    true => Event::AgentAtWork { agent },
                    false => Event::AgentFree { agent },
                });
            }
            // An agent whose last job ended is free, even if it reported that it is busy.
            if !works && stance == Some(Stance::Busy) {
                self.desk_mut(agent).presence.stance = Stance::Idle;
            }
        }
    }

    /// Whether the agent has work in progress, including this command's changes.
    fn is_at_work(&self, agent: AgentId) -> bool {
        let holds = |job: &Job| job.is_worked_on() && job.worker() == Some(agent);
        let untouched = |job: &&Arc<Job>| !self.jobs.contains_key(&job.id);
        self.jobs.values().any(holds)
            || self.world.work_of(agent).filter(untouched).any(|job| holds(job))
    }
}

fn shared<K: Ord, V>(rows: BTreeMap<K, V>) -> BTreeMap<K, Arc<V>> {
    rows.into_iter().map(|(key, row)| (key, Arc::new(row))).collect()
}
