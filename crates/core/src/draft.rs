//! A draft: the changes of one command while it is being decided.
//!
//! Rules read through the draft and see the command's own earlier changes. The draft of a refused
//! command is dropped, so a refusal changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::agent::key::Key;
use crate::agent::key_limits::KeyUse;
use crate::agent::presence::{Availability, online_until};
use crate::agent::{Agent, AgentState};
use crate::alias::{Alias, Claim, ClaimTarget, Digest, Protocol};
use crate::changes::{Changes, Counters};
use crate::event::{Event, HistoryLine};
use crate::id::*;
use crate::idempotency::{IdempotencyEntry, IdempotencyRecord};
use crate::job::select::Rotation;
use crate::job::{Job, Original, Requester, log};
use crate::ledger::{Entry, Transfer};
use crate::market::MarketRecord;
use crate::message::inbox::Inbox;
use crate::notice::{CompletedDelivery, Delivery, Notice, NoticeKind};
use crate::owner::Owner;
use crate::reputation::Outcome;
use crate::time::{Millis, Timestamp};
use crate::world::World;
use crate::world::jobs::invitations_of;

/// The changes of one command in progress.
pub struct Draft<'w> {
    pub world: &'w World,
    pub now: Timestamp,
    pub by_operator: bool,
    /// The key that the command was sent with.
    pub key_use: Option<KeyUse>,
    pub next: Counters,
    agents: BTreeMap<AgentId, Arc<Agent>>,
    agent_states: BTreeMap<AgentId, Arc<AgentState>>,
    inboxes: BTreeMap<AgentId, Inbox>,
    inboxes_to_persist: BTreeSet<AgentId>,
    owners: BTreeMap<OwnerId, Arc<Owner>>,
    jobs: BTreeMap<JobId, Arc<Job>>,
    /// How many more jobs than before are assigned to agents; of agents where that differs.
    load_changes: BTreeMap<AgentId, i64>,
    keys: BTreeMap<KeyId, Arc<Key>>,
    rotations: BTreeMap<String, Arc<Rotation>>,
    deliveries: BTreeMap<NoticeId, Option<Arc<Delivery>>>,
    pub(crate) idempotency_records: Vec<IdempotencyRecord>,
    aliases: Vec<Alias>,
    claims: Vec<Claim>,
    pub(crate) entries: Vec<Entry>,
    transfers: Vec<Arc<Transfer>>,
    notices: Vec<Arc<Notice>>,
    completed_deliveries: BTreeMap<NoticeId, CompletedDelivery>,
    outcomes: Vec<Outcome>,
    events: Vec<Event>,
    market_records: Vec<Arc<MarketRecord>>,
    /// The command's original text, for receivers of the same protocol.
    pub(crate) original: Option<OriginalText>,
    /// The worker's report in its own words, until it is written.
    pub(crate) worker_original: Option<Original>,
    /// The agent that gets the answer of this command, so it needs no notice.
    pub(crate) answered_agent: Option<AgentId>,
}

/// A command's original text and its protocol.
pub struct OriginalText {
    pub by: AgentId,
    pub protocol: Protocol,
    pub body: String,
}

impl<'w> Draft<'w> {
    /// An empty draft over the given world.
    pub fn new(world: &'w World, now: Timestamp) -> Self {
        Self {
            world,
            now,
            by_operator: false,
            key_use: None,
            next: world.next,
            agents: BTreeMap::new(),
            agent_states: BTreeMap::new(),
            inboxes: BTreeMap::new(),
            inboxes_to_persist: BTreeSet::new(),
            owners: BTreeMap::new(),
            jobs: BTreeMap::new(),
            load_changes: BTreeMap::new(),
            keys: BTreeMap::new(),
            rotations: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            idempotency_records: Vec::new(),
            aliases: Vec::new(),
            claims: Vec::new(),
            entries: Vec::new(),
            transfers: Vec::new(),
            notices: Vec::new(),
            completed_deliveries: BTreeMap::new(),
            outcomes: Vec::new(),
            events: Vec::new(),
            market_records: Vec::new(),
            original: None,
            worker_original: None,
            answered_agent: None,
        }
    }

    pub fn agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(&id).or_else(|| self.world.agent(id)).map(|agent| &**agent)
    }

    /// The full row of an agent, including one that has left.
    pub fn full_agent(&self, id: AgentId) -> Option<&Agent> {
        self.agents.get(&id).or_else(|| self.world.full_agent(id)).map(|agent| &**agent)
    }

    pub fn agent_state(&self, id: AgentId) -> Option<&AgentState> {
        let agent_state = self.agent_states.get(&id).or_else(|| self.world.agent_state(id));
        agent_state.map(|agent_state| &**agent_state)
    }

    pub fn owner(&self, id: OwnerId) -> Option<&Owner> {
        self.owners.get(&id).or_else(|| self.world.owner(id)).map(|owner| &**owner)
    }

    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id).or_else(|| self.world.job(id)).map(|job| &**job)
    }

    /// How many more agents a requester may invite. One command can invite for several jobs, so
    /// what it has changed so far counts, too.
    pub fn invitations_left(&self, requester: &Requester) -> usize {
        let mut open = self.world.open_invitations(requester);
        for job in self.jobs.values() {
            let before =
                self.world.job(job.id).map_or(0, |before| invitations_of(before, requester));
            open = open + invitations_of(job, requester) - before;
        }
        self.world.rules.invitations_max.saturating_sub(open)
    }

    /// Agents the world's index does not list yet: those this command wrote, and those it may have
    /// brought back by recording activity or by resuming their owner.
    pub fn unindexed_agents(&self) -> impl Iterator<Item = &Agent> {
        let back = self
            .agent_states
            .keys()
            .filter(|id| !self.has_written(**id) && !self.world.is_listed(**id));
        let resumed = self.owners.values().filter(|owner| {
            let before = self.world.owner(owner.id);
            !owner.suspended && before.is_some_and(|before| before.suspended)
        });
        let resumed = resumed.flat_map(|owner| self.world.agents_of(owner.id));
        let resumed =
            resumed.filter(|id| !self.has_written(*id) && !self.agent_states.contains_key(id));
        let written = self.agents.values().map(|agent| &**agent);
        written.chain(back.copied().chain(resumed).filter_map(|id| self.agent(id)))
    }

    /// Whether this command wrote that agent, so that its index entry is outdated.
    pub fn has_written(&self, id: AgentId) -> bool {
        self.agents.contains_key(&id)
    }

    /// Whether the agent or its owner is suspended, including this command's changes.
    pub fn is_suspended(&self, id: AgentId) -> bool {
        let Some(agent) = self.agent(id) else { return false };
        match self.owners.get(&agent.owner) {
            Some(owner) => agent.suspended || owner.suspended,
            None => self.world.is_agent_suspended(agent),
        }
    }

    /// Whether the agent counts as online, including this command's changes.
    pub fn is_online(&self, id: AgentId) -> bool {
        let (Some(agent), Some(agent_state)) = (self.agent(id), self.agent_state(id)) else {
            return false;
        };
        if self.is_suspended(id) {
            return false;
        }
        let until = online_until(agent, agent_state, self.world.rules.presence_ttl);
        until.is_some_and(|until| self.now <= until)
    }

    /// How many jobs are assigned to the agent, including those of this command.
    pub fn assigned_job_count(&self, id: AgentId) -> usize {
        let before = self.world.assigned_job_count(id);
        let change = self.load_changes.get(&id).copied().unwrap_or(0);
        usize::try_from(before as i64 + change).unwrap_or(0)
    }

    /// Agents with more or fewer assigned jobs than the world's index knows, by how many.
    pub fn load_changes(&self) -> &BTreeMap<AgentId, i64> {
        &self.load_changes
    }

    /// How many jobs the agent started in the last minute, including those of this command.
    pub fn recent_start_count(&self, id: AgentId) -> usize {
        let now = self.now;
        let new = self.jobs.values().filter(|job| {
            let before = self.world.job(job.id).map_or(0, |before| before.epoch);
            job.epoch > before && job.worker() == Some(id)
        });
        self.world.recent_start_count(id, now) + new.count()
    }

    /// The owner with this ledger name, including one created by this command.
    pub fn owner_by_name(&self, name: &str) -> Option<OwnerId> {
        let made = self.owners.values().find(|owner| owner.name == name).map(|owner| owner.id);
        made.or_else(|| self.world.owner_by_name(name))
    }

    /// What a foreign id was used for, if it was used.
    pub fn claim_target(&self, digest: Digest) -> Option<ClaimTarget> {
        let own = self.claims.iter().rev().find(|claim| claim.digest == digest);
        let claim = own.copied().or_else(|| self.world.claim(digest));
        claim.map(|claim| claim.target).filter(|target| *target != ClaimTarget::Released)
    }

    pub fn put_agent(&mut self, agent: Agent) {
        self.agents.insert(agent.id, Arc::new(agent));
    }

    pub fn put_owner(&mut self, owner: Owner) {
        self.owners.insert(owner.id, Arc::new(owner));
    }

    /// Writes a job and returns it as written.
    pub fn put_job(&mut self, mut job: Job) -> Arc<Job> {
        log::add_phase(self, &mut job);
        let before = self.job(job.id).and_then(Job::active_worker);
        let after = job.active_worker();
        if before != after {
            before.into_iter().for_each(|worker| self.change_load(worker, -1));
            after.into_iter().for_each(|worker| self.change_load(worker, 1));
        }
        let job = Arc::new(job);
        self.jobs.insert(job.id, job.clone());
        job
    }

    fn change_load(&mut self, worker: AgentId, by: i64) {
        let change = self.load_changes.entry(worker).or_default();
        *change += by;
        if *change == 0 {
            self.load_changes.remove(&worker);
        }
    }

    pub fn put_key(&mut self, key: Key) {
        self.keys.insert(key.id, Arc::new(key));
    }

    pub fn put_delivery(&mut self, notice: NoticeId, push: Option<Delivery>) {
        self.deliveries.insert(notice, push.map(Arc::new));
    }

    /// The agent state, for changing. An agent without one gets a new one.
    pub fn agent_state_mut(&mut self, id: AgentId) -> &mut AgentState {
        let (world, now) = (self.world, self.now);
        let agent_state = self.agent_states.entry(id).or_insert_with(|| {
            world.agent_state(id).cloned().unwrap_or_else(|| Arc::new(AgentState::new(id, now)))
        });
        Arc::make_mut(agent_state)
    }

    /// The agent's inbox positions.
    pub fn inbox(&self, id: AgentId) -> Inbox {
        self.inboxes.get(&id).copied().unwrap_or_else(|| self.world.inbox(id))
    }

    /// The inbox, for changes that follow from this command's notices. Any other change needs
    /// `persist_inbox` as well.
    pub fn inbox_mut(&mut self, id: AgentId) -> &mut Inbox {
        let world = self.world;
        self.inboxes.entry(id).or_insert_with(|| world.inbox(id))
    }

    /// Writes the inbox row with this command.
    pub fn persist_inbox(&mut self, id: AgentId) {
        self.inboxes_to_persist.insert(id);
    }

    pub fn add_completed_delivery(&mut self, arrival: CompletedDelivery) {
        self.completed_deliveries.insert(arrival.notice, arrival);
    }

    /// The owner, for changing.
    pub fn owner_mut(&mut self, id: OwnerId) -> &mut Owner {
        let world = self.world;
        let owner = self.owners.entry(id).or_insert_with(|| {
            world.owner(id).expect("owners are looked up before they are changed").clone()
        });
        Arc::make_mut(owner)
    }

    /// Marks a foreign id as used.
    pub fn add_claim(&mut self, digest: Digest, target: ClaimTarget) {
        let id = self.next.claim;
        self.next.claim = id.next();
        self.claims.push(Claim { id, digest, target });
    }

    pub fn add_alias(&mut self, protocol: Protocol, name: String, agent: AgentId) {
        let id = self.next.alias;
        self.next.alias = id.next();
        self.aliases.push(Alias { id, protocol, name: name.into(), agent });
    }

    pub fn add_event(&mut self, event: Event) {
        self.events.push(event);
    }

    pub fn add_market_record(&mut self, posting: MarketRecord) {
        self.market_records.push(Arc::new(posting));
    }

    /// The notices of this command.
    pub fn notices(&self) -> &[Arc<Notice>] {
        &self.notices
    }

    /// Jobs this command wrote.
    pub fn changed_jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(|job| &**job)
    }

    pub fn add_outcome(&mut self, outcome: Outcome) {
        self.next.outcome = outcome.id.next();
        self.outcomes.push(outcome);
    }

    pub fn add_transfer(&mut self, transfer: Transfer) -> Arc<Transfer> {
        self.next.transfer = transfer.id.next();
        let transfer = Arc::new(transfer);
        self.transfers.push(transfer.clone());
        transfer
    }

    /// Adds a notice for an agent, and a delivery to `url` if given.
    pub fn notify(
        &mut self,
        to: Option<AgentId>,
        news: NoticeKind,
        url: Option<String>,
    ) -> NoticeId {
        self.notify_after(to, news, url, Millis(0))
    }

    /// Adds a notice and a delivery whose first attempt is delayed.
    pub fn notify_after(
        &mut self,
        to: Option<AgentId>,
        news: NoticeKind,
        url: Option<String>,
        first_try: Millis,
    ) -> NoticeId {
        let id = self.next.notice;
        self.next.notice = id.next();
        let (mut position, mut before) = (0, None);
        if let Some(agent) = to {
            let mailbox = self.inbox(agent);
            (position, before) = (mailbox.head + 1, mailbox.newest);
        }
        let at = self.now;
        if let Some(url) = url {
            let (news, next_try) = (news.without_text(), Some(at.plus(first_try)));
            let (attempts, error) = (0, None);
            let push = Delivery {
                notice: id,
                to,
                position,
                at,
                url,
                kind: news,
                attempts,
                next_try,
                last_error: error,
            };
            self.deliveries.insert(id, Some(Arc::new(push)));
        }
        let notice = Notice { id, to, position, before, at, news };
        if let Some(agent) = to {
            self.inbox_mut(agent).receive(&notice);
        }
        self.notices.push(Arc::new(notice));
        id
    }

    /// Notifies one party of a job about an action of the other party: with the original text if
    /// both use the same protocol, otherwise with `kind`. The author of the text is not notified.
    pub fn notify_party(&mut self, to: AgentId, news: NoticeKind, url: Option<String>) {
        if !self.forward_original(to) {
            self.notify(Some(to), news, url);
        }
    }

    /// Forwards the original text to an agent of the same protocol; `false` if protocols differ.
    pub fn forward_original(&mut self, to: AgentId) -> bool {
        let Some(said) = &self.original else { return false };
        let Some(agent) = self.agent(to).filter(|agent| agent.home == said.protocol) else {
            return false;
        };
        if said.by != to {
            let (from, words, body) = (said.by, said.protocol, said.body.clone());
            let url = agent.delivery_url();
            let follows = self.inbox(from).last_sent;
            let news =
                NoticeKind::Message { from: Some(from), protocol: words, body, previous: follows };
            let notice = self.notify(Some(to), news, url);
            self.inbox_mut(from).record_sent(notice);
        }
        true
    }

    pub fn rotation(&self, skill: &str) -> Option<Rotation> {
        let turn = self.rotations.get(skill).or_else(|| self.world.rotation(skill));
        turn.map(|turn| Rotation::clone(turn))
    }

    /// Records whose turn in the rotation it was.
    pub fn advance_rotation(&mut self, skill: &str, owner: OwnerId, agent: AgentId) {
        let fresh = || Rotation { skill: skill.to_owned(), owner, agents: Vec::new() };
        let mut turn = self.rotation(skill).unwrap_or_else(fresh);
        turn.owner = owner;
        turn.agents.retain(|(known, _)| *known != owner);
        // An owner with one agent has nothing to rotate, and the row stays small without it.
        if self.world.agents_of(owner).nth(1).is_some() {
            turn.agents.push((owner, agent));
        }
        self.rotations.insert(skill.to_owned(), Arc::new(turn));
    }

    /// The finished changes.
    pub fn into_changes(mut self) -> Changes {
        self.record_work_changes();
        let mut lines = Vec::new();
        if !self.events.is_empty() {
            let id = self.next.event;
            self.next.event = id.next();
            let (at, by_operator, events) = (self.now, self.by_operator, self.events);
            lines.push(Arc::new(HistoryLine { id, at, by_operator, events }));
        }
        let mut changes = Changes {
            agents: self.agents,
            agent_states: self.agent_states,
            inboxes: self.inboxes,
            inboxes_to_persist: self.inboxes_to_persist,
            owners: self.owners,
            jobs: self.jobs,
            keys: self.keys,
            rotations: self.rotations,
            deliveries: self.deliveries,
            idempotency_entries: self
                .idempotency_records
                .iter()
                .map(|one| (one.id, Arc::new(IdempotencyEntry::from(one))))
                .collect(),
            idempotency_records: self
                .idempotency_records
                .into_iter()
                .map(|one| (one.id, Arc::new(one)))
                .collect(),
            aliases: self.aliases,
            claims: self.claims,
            entries: self.entries,
            transfers: self.transfers,
            notices: self.notices,
            completed_deliveries: self.completed_deliveries,
            outcomes: self.outcomes,
            history_lines: lines,
            market_records: self.market_records,
            next: None,
        };
        let touched = self.next != self.world.next
            || !changes.agents.is_empty()
            || !changes.agent_states.is_empty()
            || !changes.inboxes_to_persist.is_empty()
            || !changes.owners.is_empty()
            || !changes.jobs.is_empty()
            || !changes.keys.is_empty()
            || !changes.deliveries.is_empty()
            || !changes.idempotency_records.is_empty();
        self.next.at = self.next.at.max(self.now);
        changes.next = touched.then_some(self.next);
        changes
    }
}

impl Draft<'_> {
    /// Records which agents started working or have no work left.
    fn record_work_changes(&mut self) {
        let mut touched = BTreeSet::new();
        for job in self.jobs.values() {
            let before = self.world.job(job.id).filter(|job| job.is_in_progress());
            let before = before.and_then(|job| job.worker());
            let after = job.worker().filter(|_| job.is_in_progress());
            if before != after {
                touched.extend(before.into_iter().chain(after));
            }
        }
        for agent in touched {
            let worked = self.world.assigned_jobs(agent).any(|job| job.is_in_progress());
            let works = self.is_at_work(agent);
            if worked == works {
                continue;
            }
            let availability =
                self.agent_state(agent).map(|agent_state| agent_state.presence.availability);
            if availability.is_some_and(Availability::accepts_work) {
                self.add_event(match works {
                    true => Event::AgentAtWork { agent },
                    false => Event::AgentFree { agent },
                });
            }
            // An agent whose last job ended is free, even if it reported that it is busy.
            if !works && availability == Some(Availability::Busy) {
                self.agent_state_mut(agent).presence.availability = Availability::Idle;
            }
        }
    }

    /// Whether the agent has work in progress, including this command's changes.
    fn is_at_work(&self, agent: AgentId) -> bool {
        let holds = |job: &Job| job.is_in_progress() && job.worker() == Some(agent);
        let untouched = |job: &&Arc<Job>| !self.jobs.contains_key(&job.id);
        self.jobs.values().any(|job| holds(job))
            || self.world.assigned_jobs(agent).filter(untouched).any(|job| holds(job))
    }
}
