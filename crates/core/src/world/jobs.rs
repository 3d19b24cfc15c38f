//! Live jobs and their indexes, kept in step with their states.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::World;
use super::id_map::QuickMap;
use crate::alias::Protocol;
use crate::changes::Changes;
use crate::command::Timer;
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::job::readiness::MINUTE;
use crate::job::{Job, Requester, Selection, State};
use crate::time::Timestamp;

impl World {
    /// A live job, or a finished one that was loaded.
    pub fn job(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(&id).or_else(|| self.visitors.jobs.get(&id))
    }

    /// A live job by its public id.
    pub fn job_by_uuid(&self, uuid: uuid::Uuid) -> Option<&Arc<Job>> {
        self.job_uuids.get(&uuid).and_then(|id| self.jobs.get(id))
    }

    /// A live job by its requester's own id for it.
    pub fn job_by_name(&self, origin: Protocol, name: &str) -> Option<&Arc<Job>> {
        self.job_names.get(&origin)?.get(name).and_then(|id| self.jobs.get(id))
    }

    /// How many jobs are assigned to the agent and not finished.
    pub fn jobs_in_hand(&self, agent: AgentId) -> usize {
        self.in_hand.get(&agent).map_or(0, BTreeSet::len)
    }

    /// Those jobs, oldest first.
    pub fn work_of(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.in_hand.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// Jobs deferred for the agent, oldest first.
    pub fn waiting_for(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.put_off.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// How many jobs an agent with a start limit started in the last minute.
    pub fn begun_lately(&self, agent: AgentId, now: Timestamp) -> usize {
        let lately = |at: &&Timestamp| now < at.plus(MINUTE);
        self.begun.get(&agent).map_or(0, |begun| begun.iter().rev().take_while(lately).count())
    }

    /// When an agent with a start limit may start another job; `None` if it may now.
    pub fn may_begin_at(&self, agent: AgentId, now: Timestamp) -> Option<Timestamp> {
        let limit = self.agents.get(&agent)?.terms.per_minute? as usize;
        let begun = self.begun.get(&agent)?;
        let first = begun.len().checked_sub(limit)?;
        begun.get(first).map(|at| at.plus(MINUTE)).filter(|at| *at > now)
    }

    /// Live jobs the agent requested, oldest first.
    pub fn asked_by(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.asked.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// Live jobs the agent was invited to do and has not declined, oldest first.
    pub fn asked_to(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.asked_to.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// Jobs the agent receives by reading its inbox up to a position.
    pub fn unread_by(&self, agent: AgentId, up_to: u64) -> impl Iterator<Item = JobId> {
        self.unread
            .get(&agent)
            .into_iter()
            .flat_map(move |jobs| jobs.range(..=up_to))
            .map(|(_, id)| *id)
    }

    /// The job whose unread notice is at a position.
    pub fn unread_at(&self, agent: AgentId, position: u64) -> Option<JobId> {
        self.unread.get(&agent)?.get(&position).copied()
    }

    /// How many more agents a requester may invite now.
    pub fn invitations_left(&self, requester: &Requester) -> usize {
        let open = self.invitations.get(&asker(requester)).copied().unwrap_or(0);
        self.rules.invitations_max.saturating_sub(open)
    }

    /// Whether an agent may request one more job with that many bytes of input.
    pub fn may_ask(&self, agent: AgentId, bytes: usize) -> bool {
        let open = self.asked.get(&agent).map_or(0, BTreeSet::len);
        let held = self.asked_bytes.get(&agent).copied().unwrap_or(0);
        open < self.rules.open_jobs_max && held + bytes <= self.rules.open_bytes_max
    }

    /// Jobs waiting for a worker, oldest first.
    pub fn queue(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.waiting.iter().filter_map(|id| self.jobs.get(id))
    }

    /// Live jobs, in no order.
    pub fn live_jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    /// When the next timer is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// When a timer is due.
    pub fn moment(&self, timer: Timer) -> Option<Timestamp> {
        match timer {
            Timer::Job(id) => self.job(id)?.due(),
            Timer::Agent(id) => self.agent(id)?.probation,
        }
    }

    /// The timers that are due now, the longest overdue first.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = Timer> {
        self.timers.iter().take_while(move |(at, _)| *at <= now).map(|(_, timer)| *timer)
    }

    pub(super) fn set_job(&mut self, job: Arc<Job>) {
        let old = self.jobs.get(&job.id).cloned();
        if let Some(old) = &old {
            self.unplace(old);
        }
        self.note_begun(old.as_deref(), &job);
        match (old.is_some(), job.state.is_final()) {
            (false, false) => self.name(&job),
            (true, true) => self.unname(&job),
            _ => {}
        }
        if job.state.is_final() {
            self.jobs.remove(&job.id);
            self.visitors.jobs.insert(job.id, job);
            return;
        }
        self.place(&job);
        self.jobs.insert(job.id, job);
    }

    /// Records a new assignment of an agent with a start limit.
    fn note_begun(&mut self, old: Option<&Job>, job: &Job) {
        let Some(turn) = job.assignment.filter(|_| old.is_none_or(|old| old.epoch < job.epoch))
        else {
            return;
        };
        let limit = self.agents.get(&turn.worker).and_then(|agent| agent.terms.per_minute);
        let Some(limit) = limit else { return };
        let begun = self.begun.entry(turn.worker).or_default();
        // A batch comes in order of its jobs, not of their start times.
        begun.insert(begun.partition_point(|at| *at <= turn.since), turn.since);
        // Entries beyond the limit never matter.
        while begun.len() > limit as usize {
            begun.pop_front();
        }
    }

    /// Copies start times from a world that saw these changes one by one: if a job had two
    /// assignments in a batch, its row only shows the later one.
    pub fn begun_as_in(&mut self, other: &Self, changes: &Changes) {
        for event in changes.lines.iter().flat_map(|line| &line.events) {
            let Event::JobAssigned { worker, .. } = event else { continue };
            match other.begun.get(worker) {
                Some(begun) => drop(self.begun.insert(*worker, begun.clone())),
                None => drop(self.begun.remove(worker)),
            }
        }
    }

    /// Indexes what stays the same while a job lives.
    fn name(&mut self, job: &Job) {
        if let Requester::Agent(agent) = job.requester {
            self.asked.entry(agent).or_default().insert(job.id);
            *self.asked_bytes.entry(agent).or_default() += bytes(job);
        }
        self.job_uuids.insert(job.uuid, job.id);
        self.job_names.entry(job.origin).or_default().insert(job.foreign.clone(), job.id);
    }

    fn unname(&mut self, job: &Job) {
        if let Requester::Agent(agent) = job.requester {
            leave(&mut self.asked, agent, job.id);
            match self.asked.contains_key(&agent) {
                true => *self.asked_bytes.entry(agent).or_default() -= bytes(job),
                false => drop(self.asked_bytes.remove(&agent)),
            }
        }
        self.job_uuids.remove(&job.uuid);
        if let Some(names) = self.job_names.get_mut(&job.origin) {
            names.remove(&job.foreign);
        }
    }

    /// Indexes what changes with its state.
    fn place(&mut self, job: &Job) {
        if let Some(at) = job.due() {
            self.timers.insert((at, Timer::Job(job.id)));
        }
        if let Some(worker) = job.in_hand_of() {
            self.in_hand.entry(worker).or_default().insert(job.id);
        }
        if let Some(waits) = job.waits_for {
            self.put_off.entry(waits.worker).or_default().insert(job.id);
        }
        if job.state == State::Queued {
            self.waiting.insert(job.id);
        }
        for agent in asked_of(job) {
            self.asked_to.entry(*agent).or_default().insert(job.id);
        }
        if is_asking(job) {
            *self.invitations.entry(asker(&job.requester)).or_default() += job.asked.len();
        }
        if let Some((agent, position)) = job.unread() {
            self.unread.entry(agent).or_default().insert(position, job.id);
        }
    }

    fn unplace(&mut self, job: &Job) {
        if let Some(at) = job.due() {
            self.timers.remove(&(at, Timer::Job(job.id)));
        }
        if let Some(worker) = job.worker() {
            leave(&mut self.in_hand, worker, job.id);
        }
        if let Some(waits) = job.waits_for {
            leave(&mut self.put_off, waits.worker, job.id);
        }
        self.waiting.remove(&job.id);
        for agent in asked_of(job) {
            leave(&mut self.asked_to, *agent, job.id);
        }
        if is_asking(job) {
            let who = asker(&job.requester);
            let left = self.invitations.get(&who).map_or(0, |open| open - job.asked.len());
            match left {
                0 => drop(self.invitations.remove(&who)),
                left => drop(self.invitations.insert(who, left)),
            }
        }
        if let Some((agent, position)) = job.unread()
            && let Some(jobs) = self.unread.get_mut(&agent)
        {
            jobs.remove(&position);
            if jobs.is_empty() {
                self.unread.remove(&agent);
            }
        }
    }
}

/// The agents the requester invited itself.
fn asked_of(job: &Job) -> &[AgentId] {
    match job.selection {
        Selection::Asked { .. } => &job.asked,
        _ => &[],
    }
}

/// Whether invited agents have yet to answer.
fn is_asking(job: &Job) -> bool {
    matches!(job.state, State::Open | State::Negotiating) && !job.asked.is_empty()
}

/// Guests may use any name, so they count as one.
fn asker(requester: &Requester) -> Option<AgentId> {
    match requester {
        Requester::Agent(agent) => Some(*agent),
        Requester::Guest(_) => None,
    }
}

/// The bytes of a request that the hub keeps.
fn bytes(job: &Job) -> usize {
    job.input.len() + job.meta.len()
}

/// Removes a job from a set, and the set when it becomes empty.
fn leave(sets: &mut QuickMap<AgentId, BTreeSet<JobId>>, agent: AgentId, job: JobId) {
    if let Some(set) = sets.get_mut(&agent) {
        set.remove(&job);
        if set.is_empty() {
            sets.remove(&agent);
        }
    }
}
