//! History invariants: every change of jobs, credits and accounts has an event, and every event has
//! a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::agent::Agent;
use crate::agent::key::Holder;
use crate::changes::Changes;
use crate::event::Event;
use crate::id::{AgentId, JobId, KeyId, OwnerId};
use crate::job::{Job, State};
use crate::ledger::EntryKind;
use crate::owner::Owner;
use crate::world::World;

/// What had events so far, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct HistoryChecks {
    accounts: BTreeSet<OwnerId>,
    agents: BTreeMap<AgentId, Arc<Agent>>,
    keys: BTreeSet<KeyId>,
    /// The newest ended job of each worker.
    worked: BTreeMap<AgentId, JobId>,
    suspended_agents: BTreeSet<AgentId>,
    suspended_owners: BTreeSet<OwnerId>,
    restores: u64,
}

impl HistoryChecks {
    pub fn check(&mut self, before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World) {
        jobs(before, changes);
        self.epoch(changes, world);
        self.suspensions(changes);
        money(changes);
        self.accounts(changes);
        self.agents(changes);
        self.keys(changes);
        self.worked(changes);
    }

    /// Every registration, departure and profile change has an event.
    fn agents(&mut self, changes: &Changes) {
        for agent in changes.agents.values() {
            let (id, owner) = (agent.id, agent.owner);
            let told = |wanted: Event| events(changes).any(|event| *event == wanted);
            let old = self.agents.insert(id, agent.clone());
            assert_eq!(
                told(Event::AgentRegistered { agent: id, owner }),
                old.is_none(),
                "{agent:?}"
            );
            let Some(old) = old else { continue };
            let removed = [true, false]
                .map(|by_operator| told(Event::AgentRemoved { agent: id, by_operator }));
            let left = old.active && !agent.active;
            assert_eq!(removed.contains(&true), left, "{agent:?}");
            let says = |agent: &Agent| (agent.name.clone(), agent.skills.clone(), agent.active);
            let updated = told(Event::AgentUpdated { agent: id });
            assert!(
                updated || left || says(&old) == says(agent),
                "changed without an event: {agent:?}"
            );
        }
    }

    /// An epoch starts with a restore event, and each is one above the one before.
    fn epoch(&mut self, changes: &Changes, world: &World) {
        let begun = events(changes).filter_map(|event| match event {
            Event::HubRestored { epoch } => Some(*epoch),
            _ => None,
        });
        for epoch in begun {
            self.restores += 1;
            assert_eq!(epoch, 1 + self.restores, "epochs have no gaps");
        }
        assert_eq!(world.next.epoch, 1 + self.restores, "an epoch began without an event");
    }

    /// Every suspension and resumption has one event.
    fn suspensions(&mut self, changes: &Changes) {
        let told = |wanted: Event| events(changes).filter(|event| **event == wanted).count();
        for agent in changes.agents.values() {
            let id = agent.id;
            let before = self.suspended_agents.contains(&id);
            let (begins, ends) = (
                told(Event::AgentSuspended { agent: id }),
                told(Event::AgentResumed { agent: id }),
            );
            let wanted = [agent.suspended && !before, before && !agent.suspended];
            assert_eq!([begins, ends], wanted.map(usize::from), "{agent:?}");
            match agent.suspended {
                true => self.suspended_agents.insert(id),
                false => self.suspended_agents.remove(&id),
            };
        }
        for owner in changes.owners.values() {
            let id = owner.id;
            let before = self.suspended_owners.contains(&id);
            let (begins, ends) = (
                told(Event::OwnerSuspended { owner: id }),
                told(Event::OwnerResumed { owner: id }),
            );
            let wanted = [owner.suspended && !before, before && !owner.suspended];
            assert_eq!([begins, ends], wanted.map(usize::from), "{owner:?}");
            match owner.suspended {
                true => self.suspended_owners.insert(id),
                false => self.suspended_owners.remove(&id),
            };
        }
    }

    /// Every new key has an event.
    fn keys(&mut self, changes: &Changes) {
        let known = &mut self.keys;
        let new = changes.keys.values().filter(|key| known.insert(key.id)).map(|key| key.holder);
        let told = events(changes).filter_map(|event| match event {
            Event::KeyIssued { agent } => Some(Holder::Agent(*agent)),
            Event::OperatorKeyIssued => Some(Holder::Operator),
            _ => None,
        });
        assert!(told.eq(new), "a new key has an event: {changes:?}");
    }

    /// A worker's jobs can be followed backwards from its newest one.
    fn worked(&mut self, changes: &Changes) {
        for event in events(changes) {
            let Event::JobEnded { job, state, .. } = event else { continue };
            let ended = &changes.jobs[job];
            let Some(worker) = ended.worker().filter(|_| *state != State::Withdrawn) else {
                continue;
            };
            assert_eq!(ended.links.previous_worked, self.worked.insert(worker, *job), "{ended:?}");
        }
    }

    /// Every new account has one event.
    fn accounts(&mut self, changes: &Changes) {
        let known = &mut self.accounts;
        let new = changes.owners.keys().filter(|id| **id != Owner::ISSUANCE && known.insert(**id));
        let told = events(changes).filter_map(|event| match event {
            Event::AccountOpened { owner } => Some(owner),
            _ => None,
        });
        assert!(told.eq(new), "a new account has an event: {changes:?}");
    }
}

fn events(changes: &Changes) -> impl Iterator<Item = &Event> {
    changes.history_lines.iter().flat_map(|line| &line.events)
}

/// Grants, burns and payments have events with their amounts.
fn money(changes: &Changes) {
    let told = events(changes).filter_map(|event| match event {
        Event::Granted { owner, amount, .. } => Some((EntryKind::Grant, *owner, *amount)),
        Event::Burned { owner, amount } => Some((EntryKind::Burn, *owner, *amount)),
        _ => None,
    });
    let moved = changes.entries.iter().filter_map(|entry| match entry.kind {
        EntryKind::Grant => Some((EntryKind::Grant, entry.to.owner, entry.amount)),
        EntryKind::Burn => Some((EntryKind::Burn, entry.from.owner, entry.amount)),
        _ => None,
    });
    assert!(told.eq(moved), "issued and burned credits have events: {changes:?}");
    let told = events(changes).filter_map(|event| match event {
        Event::Transferred { from, to, amount } => Some(Some((*from, *to, *amount))),
        Event::SettlementConfirmed { .. } => Some(None),
        _ => None,
    });
    let paid = changes.transfers.iter().map(|transfer| {
        let by_itself = !transfer.settled_by_hold;
        by_itself.then_some((transfer.from, transfer.to, transfer.amount))
    });
    assert!(told.eq(paid), "payments have events: {changes:?}");
}

fn jobs(before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes) {
    for job in changes.jobs.values() {
        let told: Vec<&Event> =
            events(changes).filter(|event| about(event) == Some(job.id)).collect();
        let old = before.get(&job.id).map(|old| &**old);
        beginnings(old, job, &told);
        states(old, job, &told);
        offers(old, job, &told);
        endings(job, &told);
    }
}

/// A job is opened once, and every assignment has an event with its number.
fn beginnings(old: Option<&Job>, job: &Job, told: &[&Event]) {
    let opened = told.iter().filter(|event| matches!(event, Event::JobOpened { .. })).count();
    assert_eq!(opened, usize::from(old.is_none()), "opened once: {job:?}");
    let turns = told.iter().filter_map(|event| match event {
        Event::JobAssigned { epoch, .. } => Some(*epoch),
        _ => None,
    });
    let expected = old.map_or(0, |old| old.epoch) + 1..=job.epoch;
    assert!(turns.eq(expected), "each assignment has an event: {told:?}, {job:?}");
    let last = told.iter().rev().find_map(|event| match event {
        Event::JobAssigned { worker, .. } => Some(*worker),
        _ => None,
    });
    if let (Some(told), Some(worker)) = (last, job.worker()) {
        assert_eq!(told, worker, "assigned to another than in the event: {job:?}");
    }
}

/// Every state that was entered has an event.
fn states(old: Option<&Job>, job: &Job, told: &[&Event]) {
    let same_turn = old.filter(|old| old.epoch == job.epoch);
    if same_turn.is_some_and(|old| old.state == job.state) {
        return;
    }
    let is_told = match job.state {
        State::Queued => told.contains(&&Event::JobQueued { job: job.id }),
        State::Running => told.contains(&&Event::JobStarted { job: job.id }),
        State::Deferred { until } => told.contains(&&Event::JobDeferred { job: job.id, until }),
        _ => true,
    };
    assert!(is_told, "{:?} without an event: {told:?}", job.state);
}

/// Every offer has an event with its maker.
fn offers(old: Option<&Job>, job: &Job, told: &[&Event]) {
    let made = job
        .candidates
        .offers
        .iter()
        .skip(old.map_or(0, |old| old.candidates.offers.len()))
        .map(|offer| offer.by);
    let told = told.iter().filter_map(|event| match event {
        Event::JobOffered { by, .. } => Some(*by),
        _ => None,
    });
    assert!(told.eq(made), "each offer has an event: {job:?}");
}

/// The end event matches the job.
fn endings(job: &Job, told: &[&Event]) {
    let ends = told.iter().filter_map(|event| match event {
        Event::JobEnded { state, cause, paid, .. } => Some((*state, *cause, *paid)),
        _ => None,
    });
    let report = job.result.as_ref();
    let (cause, paid) = (report.and_then(|report| report.cause), report.map(|report| report.paid));
    let end = (job.state, cause, paid.unwrap_or_default());
    assert!(ends.eq(job.state.is_final().then_some(end)), "the end event matches: {job:?}");
}

fn about(event: &Event) -> Option<JobId> {
    match event {
        Event::JobOpened { job }
        | Event::JobAssigned { job, .. }
        | Event::JobQueued { job }
        | Event::JobDeferred { job, .. }
        | Event::JobStarted { job }
        | Event::JobOffered { job, .. }
        | Event::JobEnded { job, .. } => Some(*job),
        _ => None,
    }
}
