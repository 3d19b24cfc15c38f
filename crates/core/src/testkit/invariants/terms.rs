//! Invariants of agents' terms: how much work they get, approvals, and deferred jobs.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::Terms;
use crate::changes::Changes;
use crate::id::{AgentId, JobId};
use crate::job::{Job, Selection, State};
use crate::notice::NoticeKind;
use crate::time::{Millis, Timestamp};
use crate::world::World;

/// Start times of agents with a start limit, kept from changed rows alone.
#[derive(Clone, Default)]
pub struct TermsChecks {
    terms: BTreeMap<AgentId, Terms>,
    begun: BTreeMap<AgentId, Vec<Timestamp>>,
}

impl TermsChecks {
    /// After a restart, only the start times of jobs still assigned are known.
    pub fn restart(&mut self, jobs: &BTreeMap<JobId, Arc<Job>>) {
        self.begun.clear();
        for job in jobs.values().filter(|job| !job.state.is_final()) {
            if let Some(turn) = job.assignment
                && self.terms[&turn.worker].capacity.max_starts_per_minute.is_some()
            {
                self.begun.entry(turn.worker).or_default().push(turn.since);
            }
        }
    }

    pub fn check(
        &mut self,
        before: &BTreeMap<JobId, Arc<Job>>,
        changes: &Changes,
        world: &World,
        now: Timestamp,
    ) {
        for agent in changes.agents.values() {
            let old = self.terms.insert(agent.id, agent.terms);
            if old.is_some_and(|old| {
                old.capacity.max_starts_per_minute != agent.terms.capacity.max_starts_per_minute
            }) {
                // A new limit counts from now on.
                self.begun.remove(&agent.id);
            }
        }
        for job in changes.jobs.values() {
            let old = before.get(&job.id).map(|old| &**old);
            taken_on(old, job);
            put_off(old, job, changes);
            self.turn(old, job, world, now);
            if let Some(worker) = given(old, job) {
                let after = before.iter().filter(|(id, _)| !changes.jobs.contains_key(id));
                let after = after.map(|(_, job)| job).chain(changes.jobs.values());
                let in_hand = after.filter(|job| job.active_worker() == Some(worker)).count();
                let max =
                    self.terms.get(&worker).and_then(|terms| terms.capacity.max_concurrent_jobs);
                assert!(
                    max.is_none_or(|max| in_hand <= max as usize),
                    "{worker} has too many jobs"
                );
                let named = matches!(job.selection, Selection::Direct(_));
                let held = job.policy.named_worker.not_before.is_some_and(|moment| moment > now);
                assert!(!(named && held), "assigned before not_before: {job:?}");
            }
        }
        for job in world.live_jobs() {
            waits(job, world);
        }
    }

    /// No worker starts more jobs per minute than it allows, and none without a needed approval.
    fn turn(&mut self, old: Option<&Job>, job: &Job, world: &World, now: Timestamp) {
        let epoch = old.map_or(0, |old| old.epoch);
        let Some(turn) = job.assignment.filter(|_| job.epoch > epoch) else { return };
        let terms = self.terms[&turn.worker];
        let begun = self.begun.entry(turn.worker).or_default();
        if terms.capacity.max_starts_per_minute.is_some() {
            begun.push(turn.since);
        }
        if given(old, job).is_none() {
            return;
        }
        let lately = begun.iter().filter(|at| now < at.plus(Millis::seconds(60))).count();
        let max = terms.capacity.max_starts_per_minute;
        assert!(max.is_none_or(|max| lately <= max as usize), "{} started too many", turn.worker);
        let live = !job.state.is_final();
        assert_eq!(
            job.acceptance.accepted_at.is_none(),
            live && terms.intake.confirms_jobs,
            "asked to confirm, if it wants"
        );
        let skill = world.agent(turn.worker).and_then(|worker| worker.skill(&job.request.skill));
        let waited = old
            .and_then(|old| old.candidates.pending_assignment)
            .filter(|one| one.worker == turn.worker);
        let agreed = waited.is_some_and(|waits| waits.needs_approval || waits.approved);
        assert!(
            agreed || skill.is_none_or(|skill| !skill.needs_approval),
            "no approval for {job:?}"
        );
        let takes = skill.and_then(|skill| skill.expected_duration).unwrap_or_default();
        assert!(
            job.request.wanted_by.is_none_or(|wanted| now.plus(takes) <= wanted),
            "it cannot be in time"
        );
    }
}

/// The agent the hub has just assigned the job to, unless it started by itself or resumes after a
/// deferral.
fn given(old: Option<&Job>, job: &Job) -> Option<AgentId> {
    let turn = job.assignment.filter(|_| job.epoch > old.map_or(0, |old| old.epoch))?;
    let asked = matches!(job.selection, Selection::Invited { .. });
    let by_itself = asked && old.is_some_and(|old| old.state == State::Open);
    let resumed = old.is_some_and(|old| old.worker() == Some(turn.worker));
    (!by_itself && !resumed).then_some(turn.worker)
}

/// A job is accepted only while it has a worker.
fn taken_on(old: Option<&Job>, job: &Job) {
    if job.acceptance.accepted_at.is_some() {
        assert!(job.assignment.is_some(), "accepted without a worker: {job:?}");
    }
    if matches!(job.state, State::Running | State::InputRequired { .. } | State::Completed) {
        assert!(job.acceptance.accepted_at.is_some(), "worked on without acceptance: {job:?}");
    }
    let same = old.filter(|old| old.epoch == job.epoch && job.assignment.is_some());
    let took = same.and_then(|old| old.acceptance.accepted_at);
    assert!(took.is_none() || took == job.acceptance.accepted_at, "an acceptance stays");
    assert!(
        job.request.wanted_by.is_none() || job.acceptance.promised == job.request.wanted_by,
        "the wish is the promise"
    );
    assert!(old.is_none_or(|old| old.request.wanted_by == job.request.wanted_by));
}

/// A requester is notified when its job is deferred, and when it is assigned after that.
fn put_off(old: Option<&Job>, job: &Job, changes: &Changes) {
    assert!(
        job.candidates.pending_assignment.is_none() || job.pending,
        "the requester is notified: {job:?}"
    );
    let waited = old.is_some_and(|old| old.candidates.pending_assignment.is_some());
    if waited && job.acceptance.accepted_at.is_some() && !job.state.is_final() {
        let news = NoticeKind::Accepted { job: job.id };
        let told = changes.notices.iter().any(|notice| notice.news == news);
        let agent = matches!(job.request.requester, crate::job::Requester::Agent(_))
            && !job.policy.requester.follows_log;
        // Another agent may have it now.
        let same = old.and_then(|old| old.candidates.pending_assignment).map(|waits| waits.worker)
            == job.worker();
        assert!(told || !agent || !same, "no notice about {job:?}");
    }
}

/// A job deferred before assignment waits for an agent that can still come.
fn waits(job: &Job, world: &World) {
    let Some(waits) = job.candidates.pending_assignment else { return };
    assert!(matches!(job.state, State::Deferred { .. }), "{job:?}");
    assert_eq!(job.assignment, None, "deferred but assigned");
    assert!(world.agent(waits.worker).is_some_and(|agent| agent.active), "waits for no agent");
    assert!(!job.candidates.declined.contains(&waits.worker), "waits for an agent that declined");
    assert!(!job.is_requested_by(waits.worker), "waits for its own requester");
    assert!(!(waits.needs_approval && waits.approved), "waits for an approval it has");
}
