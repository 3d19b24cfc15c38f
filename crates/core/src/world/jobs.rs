//! Live jobs and their indexes, kept in step with their states.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::World;
use super::id_map::IdMap;
use crate::alias::Protocol;
use crate::changes::Changes;
use crate::command::Timer;
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::job::readiness::START_RATE_WINDOW;
use crate::job::{Job, Requester, Selection, State};
use crate::time::Timestamp;

/// Agents whose start times are kept before those of idle ones are dropped.
pub(super) const START_TIMES_MIN: usize = 1_024;

impl World {
    /// A live job, or a finished one that was loaded.
    pub fn job(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(&id).or_else(|| self.cold_row(|rows| rows.jobs.get(&id)))
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
    pub fn assigned_job_count(&self, agent: AgentId) -> usize {
        self.assigned_jobs.get(&agent).map_or(0, BTreeSet::len)
    }

    /// Those jobs, oldest first.
    pub fn assigned_jobs(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.assigned_jobs.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// Jobs deferred for the agent, oldest first.
    pub fn deferred_jobs_for(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.deferred_jobs.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// How many jobs the agent started in the last minute.
    pub fn recent_start_count(&self, agent: AgentId, now: Timestamp) -> usize {
        let lately = |at: &&Timestamp| now < at.plus(START_RATE_WINDOW);
        self.start_times
            .get(&agent)
            .map_or(0, |begun| begun.iter().rev().take_while(lately).count())
    }

    /// When an agent with a start limit may start another job; `None` if it may now.
    pub fn next_start_at(&self, agent: AgentId, now: Timestamp) -> Option<Timestamp> {
        let limit = self.agents.row(agent)?.terms.capacity.max_starts_per_minute? as usize;
        let begun = self.start_times.get(&agent)?;
        let first = begun.len().checked_sub(limit)?;
        begun.get(first).map(|at| at.plus(START_RATE_WINDOW)).filter(|at| *at > now)
    }

    /// Live jobs the agent requested, oldest first.
    pub fn jobs_requested_by(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.requested_jobs.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// Live jobs the agent was invited to do and has not declined, oldest first.
    pub fn jobs_inviting(&self, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
        self.inviting_jobs.get(&agent).into_iter().flatten().filter_map(|id| self.jobs.get(id))
    }

    /// Jobs the agent receives by reading its inbox up to a position.
    pub fn unread_jobs_up_to(&self, agent: AgentId, up_to: u64) -> impl Iterator<Item = JobId> {
        self.unread
            .get(&agent)
            .into_iter()
            .flat_map(move |jobs| jobs.range(..=up_to))
            .map(|(_, id)| *id)
    }

    /// The job whose unread notice is at a position.
    pub fn unread_job_at(&self, agent: AgentId, position: u64) -> Option<JobId> {
        self.unread.get(&agent)?.get(&position).copied()
    }

    /// The open invitations of a requester.
    pub fn open_invitations(&self, requester: &Requester) -> usize {
        self.invitations.get(&requester_key(requester)).copied().unwrap_or(0)
    }

    /// Whether an agent may request one more job with that many bytes of input.
    pub fn may_open_job(&self, agent: AgentId, bytes: usize) -> bool {
        let open = self.requested_jobs.get(&agent).map_or(0, BTreeSet::len);
        let held = self.requested_bytes.get(&agent).copied().unwrap_or(0);
        open < self.rules.open_jobs_max && held + bytes <= self.rules.open_bytes_max
    }

    /// Live jobs, in no order.
    pub fn live_jobs(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.jobs.values()
    }

    /// When the next timer is due.
    pub fn next_timer_at(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// When a timer is due.
    pub fn timer_due_at(&self, timer: Timer) -> Option<Timestamp> {
        match timer {
            Timer::Job(id) => self.job(id)?.due_at(),
            Timer::Probation(id) => self.agent(id)?.probation,
        }
    }

    /// The timers that are due now, the longest overdue first.
    pub fn due_timers(&self, now: Timestamp) -> impl Iterator<Item = Timer> {
        self.timers.iter().take_while(move |(at, _)| *at <= now).map(|(_, timer)| *timer)
    }

    pub(super) fn set_job(&mut self, job: Arc<Job>) {
        let old = self.jobs.get(&job.id).cloned();
        if let Some(old) = &old {
            self.unindex_state(old);
        }
        self.move_assigned_job(old.as_deref(), &job);
        match (old.is_some(), job.state.is_final()) {
            (false, false) => self.index_identity(&job),
            (true, true) => self.unindex_identity(&job),
            _ => {}
        }
        if job.state.is_final() {
            self.jobs.remove(&job.id);
            self.cold_rows.jobs.insert(job.id, job);
            return;
        }
        self.index_state(&job);
        self.jobs.insert(job.id, job);
    }

    /// Moves a job from one worker's assigned jobs to another's.
    fn move_assigned_job(&mut self, old: Option<&Job>, job: &Job) {
        let before = old.and_then(Job::active_worker);
        let after = job.active_worker();
        if before == after {
            return;
        }
        if let Some(worker) = before {
            let load = self.assigned_job_count(worker);
            remove_from_set(&mut self.assigned_jobs, worker, job.id);
            self.update_load(worker, load);
        }
        if let Some(worker) = after {
            let load = self.assigned_job_count(worker);
            self.assigned_jobs.entry(worker).or_default().insert(job.id);
            self.update_load(worker, load);
        }
    }

    /// Records the assignments of a batch. If a job had two of them in the batch, its row only shows
    /// the later one, so they are taken from the history.
    pub(super) fn record_starts(&mut self, changes: &Changes) {
        for line in &changes.history_lines {
            for event in &line.events {
                if let Event::JobAssigned { worker, .. } = event {
                    self.record_start(*worker, line.at);
                }
            }
        }
    }

    /// Records an assignment, also of an agent without a start limit: within one batch the limit may
    /// be set after the assignment, and every copy of the world must come to the same.
    pub(super) fn record_start(&mut self, worker: AgentId, since: Timestamp) {
        let is_over = |at: Timestamp| at.plus(START_RATE_WINDOW) <= since;
        let starts = self.start_times.entry(worker).or_default();
        // Rows come in order of their jobs, not of their start times.
        starts.insert(starts.partition_point(|at| *at <= since), since);
        while starts.front().is_some_and(|at| is_over(*at)) {
            starts.pop_front();
        }
        if self.start_times.len() >= self.start_times_max {
            self.start_times.retain(|_, starts| starts.back().is_some_and(|at| !is_over(*at)));
            self.start_times_max = START_TIMES_MIN.max(2 * self.start_times.len());
        }
    }

    /// Indexes what stays the same while a job lives.
    fn index_identity(&mut self, job: &Job) {
        if let Requester::Agent(agent) = job.request.requester {
            self.requested_jobs.entry(agent).or_default().insert(job.id);
            *self.requested_bytes.entry(agent).or_default() += request_bytes(job);
        }
        self.job_uuids.insert(job.uuid, job.id);
        self.job_names
            .entry(job.request.origin)
            .or_default()
            .insert(job.request.foreign_id.clone(), job.id);
    }

    fn unindex_identity(&mut self, job: &Job) {
        if let Requester::Agent(agent) = job.request.requester {
            remove_from_set(&mut self.requested_jobs, agent, job.id);
            match self.requested_jobs.contains_key(&agent) {
                true => *self.requested_bytes.entry(agent).or_default() -= request_bytes(job),
                false => drop(self.requested_bytes.remove(&agent)),
            }
        }
        self.job_uuids.remove(&job.uuid);
        if let Some(names) = self.job_names.get_mut(&job.request.origin) {
            names.remove(&job.request.foreign_id);
        }
    }

    /// Indexes what changes with its state.
    fn index_state(&mut self, job: &Job) {
        if let Some(at) = job.due_at() {
            self.timers.insert((at, Timer::Job(job.id)));
        }
        if let Some(waits) = job.candidates.pending_assignment {
            self.deferred_jobs.entry(waits.worker).or_default().insert(job.id);
        }
        self.index_waiting(job);
        for agent in invited_agents(job) {
            self.inviting_jobs.entry(*agent).or_default().insert(job.id);
        }
        if awaits_invitees(job) {
            *self.invitations.entry(requester_key(&job.request.requester)).or_default() +=
                job.candidates.invited.len();
        }
        if let Some((agent, position)) = job.unread_notice() {
            self.unread.entry(agent).or_default().insert(position, job.id);
        }
    }

    fn unindex_state(&mut self, job: &Job) {
        if let Some(at) = job.due_at() {
            self.timers.remove(&(at, Timer::Job(job.id)));
        }
        if let Some(waits) = job.candidates.pending_assignment {
            remove_from_set(&mut self.deferred_jobs, waits.worker, job.id);
        }
        self.unindex_waiting(job);
        for agent in invited_agents(job) {
            remove_from_set(&mut self.inviting_jobs, *agent, job.id);
        }
        if awaits_invitees(job) {
            let requester = requester_key(&job.request.requester);
            let open = self.invitations.get(&requester).copied().unwrap_or(0);
            match open - job.candidates.invited.len() {
                0 => drop(self.invitations.remove(&requester)),
                left => drop(self.invitations.insert(requester, left)),
            }
        }
        if let Some((agent, position)) = job.unread_notice()
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
fn invited_agents(job: &Job) -> &[AgentId] {
    match job.selection {
        Selection::Invited { .. } => &job.candidates.invited,
        _ => &[],
    }
}

/// Whether invited agents have yet to answer.
fn awaits_invitees(job: &Job) -> bool {
    matches!(job.state, State::Open | State::Negotiating) && !job.candidates.invited.is_empty()
}

/// The open invitations of a job, if it is of this requester.
pub(crate) fn invitations_of(job: &Job, requester: &Requester) -> usize {
    let is_theirs = requester_key(&job.request.requester) == requester_key(requester);
    if is_theirs && awaits_invitees(job) { job.candidates.invited.len() } else { 0 }
}

/// Guests may use any name, so they count as one.
fn requester_key(requester: &Requester) -> Option<AgentId> {
    match requester {
        Requester::Agent(agent) => Some(*agent),
        Requester::Guest(_) => None,
    }
}

/// The bytes of a request that the hub keeps.
fn request_bytes(job: &Job) -> usize {
    job.request.input.len() + job.request.meta.len()
}

/// Removes a job from a set, and the set when it becomes empty.
fn remove_from_set(sets: &mut IdMap<AgentId, BTreeSet<JobId>>, agent: AgentId, job: JobId) {
    if let Some(set) = sets.get_mut(&agent) {
        set.remove(&job);
        if set.is_empty() {
            sets.remove(&agent);
        }
    }
}
