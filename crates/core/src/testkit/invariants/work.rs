//! Invariants of assigned work: which agents are working, the events about it, the holds for it,
//! and its outcomes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::agent::presence::Availability;
use crate::changes::Changes;
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::job::{Job, Selection, State};
use crate::reputation::Outcome;
use crate::reputation::window::WindowOutcome;
use crate::world::World;

/// How many outcomes a window shows, written a second time.
const SHOWN: usize = 100;

/// Events and counted outcomes, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct WorkChecks {
    counted: BTreeMap<AgentId, Vec<WindowOutcome>>,
    /// Whether the last event showed the agent as working, since it last accepted work.
    said: BTreeMap<AgentId, bool>,
}

impl WorkChecks {
    pub fn check(&mut self, before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World) {
        for outcome in &changes.outcomes {
            self.outcome(outcome);
        }
        for job in changes.jobs.values() {
            let old = before.get(&job.id).map(|old| &**old);
            called(old, job);
            told_later(old, job, changes, world);
            paid_for(job);
            assert!(
                job.request.input_error.is_none() || job.assignment.is_none(),
                "invalid, but assigned: {job:?}"
            );
        }
        // Only jobs and availability affect the events.
        if !(changes.jobs.is_empty()
            && changes.agent_states.is_empty()
            && changes.history_lines.is_empty())
        {
            self.hands(before, changes, world);
        }
        self.windows(changes, world);
    }

    fn outcome(&mut self, outcome: &Outcome) {
        let Outcome { subject, ok, on_time, ended_at, assigned_at, .. } = *outcome;
        assert!(assigned_at <= ended_at, "it ended before acceptance");
        if outcome.counted {
            let took = ended_at.since(assigned_at);
            self.counted.entry(subject).or_default().push(WindowOutcome { ok, on_time, took });
        }
    }

    /// Each agent state shows exactly the newest counted outcomes; it changes only when it is
    /// written.
    fn windows(&self, changes: &Changes, world: &World) {
        let judged = changes.outcomes.iter().map(|outcome| outcome.subject);
        for agent in changes.agent_states.keys().copied().chain(judged) {
            let all = self.counted.get(&agent).map_or(&[][..], Vec::as_slice);
            let agent_state = world.agent_state(agent).expect("every agent has a state");
            let newest = all.iter().rev().take(SHOWN).copied();
            assert!(
                agent_state.window.newest().eq(newest),
                "the window of {agent} is not the fold"
            );
        }
    }

    /// The events name exactly the agents that started working or have no work left, alternately.
    fn hands(&mut self, before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World) {
        let untouched = before.iter().filter(|(id, _)| !changes.jobs.contains_key(id));
        let after: BTreeSet<AgentId> = untouched
            .map(|(_, job)| job)
            .chain(changes.jobs.values())
            .filter_map(|job| at_work(job))
            .collect();
        let before: BTreeSet<AgentId> = before.values().filter_map(|job| at_work(job)).collect();
        let availability =
            |agent| world.agent_state(agent).map(|agent_state| agent_state.presence.availability);
        let open = |agent: &AgentId| availability(*agent).is_some_and(Availability::accepts_work);
        let mut expected: Vec<(AgentId, bool)> = Vec::new();
        expected.extend(after.difference(&before).filter(|one| open(one)).map(|one| (*one, true)));
        expected.extend(before.difference(&after).filter(|one| open(one)).map(|one| (*one, false)));
        expected.sort();
        let mut said: Vec<(AgentId, bool)> = changes
            .history_lines
            .iter()
            .flat_map(|line| &line.events)
            .filter_map(|event| match event {
                Event::AgentAtWork { agent } => Some((*agent, true)),
                Event::AgentFree { agent } => Some((*agent, false)),
                _ => None,
            })
            .collect();
        said.sort();
        assert_eq!(said, expected, "agents that started, and agents without work");
        for (agent, works) in said {
            assert_ne!(self.said.insert(agent, works), Some(works), "{agent}: two equal events");
        }
        self.said.retain(|agent, _| open(agent));
        for free in before.difference(&after) {
            assert_ne!(
                availability(*free),
                Some(Availability::Busy),
                "{free} is busy without work"
            );
        }
    }
}

/// The agent that accepted the job and has not finished.
fn at_work(job: &Job) -> Option<AgentId> {
    let held = matches!(
        job.state,
        State::Assigned | State::Running | State::InputRequired { .. } | State::Deferred { .. }
    );
    job.assignment.filter(|_| held && job.acceptance.accepted_at.is_some()).map(|turn| turn.worker)
}

/// A worker's own job id goes with the worker and never changes.
fn called(old: Option<&Job>, job: &Job) {
    let Some(name) = job.acceptance.worker_job_id else { return };
    assert!(
        job.acceptance.accepted_at.is_some() && name != job.uuid,
        "an id without a worker: {job:?}"
    );
    let known = old.filter(|old| old.acceptance.worker_job_id.is_some());
    let same = known.is_none_or(|old| {
        old.acceptance.worker_job_id == job.acceptance.worker_job_id && old.worker() == job.worker()
    });
    assert!(same, "an id of another worker: {job:?}");
}

/// An agent that reads by urgency is notified when it reads. Each assignment has one notice.
fn told_later(old: Option<&Job>, job: &Job, changes: &Changes, world: &World) {
    let handed = |job: &Job| job.assignment.is_some_and(|turn| turn.handed_over);
    let same_turn = old.is_some_and(|old| old.epoch == job.epoch);
    let news = crate::notice::NoticeKind::Assigned { job: job.id, epoch: job.epoch };
    let told = changes.notices.iter().filter(|notice| notice.news == news).count();
    let reads = |worker| world.agent(worker).is_some_and(|agent| agent.terms.intake.urgent_first);
    if same_turn && told > 0 {
        assert_eq!(told, 1, "notified twice: {job:?}");
        assert!(job.worker().is_some_and(reads), "notified without need: {job:?}");
        assert!(!old.is_some_and(handed) && handed(job), "notified before, or not handed over");
    }
}

/// An assigned job is funded; only a job that waits for a worker that is away may have no hold.
fn paid_for(job: &Job) {
    if job.state.is_final() || matches!(job.selection, Selection::Invited { .. }) {
        return;
    }
    if job.policy.requester.unpaid {
        assert!(job.payment.held.is_zero(), "prices only affect the choice: {job:?}");
        return;
    }
    let unpaid = job.policy.requester.answered_at_once
        && job.assignment.is_none()
        && job.payment.held.is_zero();
    assert!(job.payment.held == job.max_payment() || unpaid, "assigned without a hold: {job:?}");
    let asks = job
        .candidates
        .pending_assignment
        .is_some_and(|waits| waits.needs_approval || waits.approved);
    assert!(job.payment.held == job.max_payment() || !asks, "approved without a hold: {job:?}");
}
