//! Backoff invariants: a job whose assignments keep failing is reassigned more and more slowly.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::changes::Changes;
use crate::event::Event;
use crate::id::JobId;
use crate::job::{Job, State};
use crate::time::{Millis, Timestamp};
use crate::world::World;

pub fn check(before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World, now: Timestamp) {
    let called_for = was_called_for(changes);
    for job in changes.jobs.values() {
        let Some(old) = before.get(&job.id) else {
            assert!(
                job.candidates.backoff.until.is_none(),
                "it backs off before any assignment: {job:?}"
            );
            continue;
        };
        assert!(
            job.candidates.backoff.failed_assignments >= old.candidates.backoff.failed_assignments,
            "the count of failed assignments never falls"
        );
        let counted =
            job.candidates.backoff.failed_assignments > old.candidates.backoff.failed_assignments;
        if let Some(until) = job.candidates.backoff.until.filter(|_| !job.state.is_final()) {
            assert_eq!(job.state, State::Queued, "it backs off in the queue: {job:?}");
            assert_eq!(job.due_at(), Some(until.min(job.request.deadline)), "it has no timer");
            let same = old.candidates.backoff.until == Some(until);
            assert!(same || until == now.plus(pause(job, world)), "a wrong delay: {job:?}");
        }
        if job.epoch > old.epoch && !called_for {
            let rested = old.candidates.backoff.until.is_none_or(|until| until <= now);
            assert!(rested, "assigned during its backoff: {job:?}");
            let at_once = counted
                && job.candidates.backoff.failed_assignments
                    >= world.rules.assignments_before_backoff;
            assert!(!at_once || !passed_on(old, job, world), "reassigned without backoff: {job:?}");
        }
        if let (true, State::Deferred { until }) = (counted, job.state) {
            let tired =
                job.candidates.backoff.failed_assignments >= world.rules.assignments_before_backoff;
            assert!(
                !tired || until >= now.plus(pause(job, world)),
                "deferred too briefly: {job:?}"
            );
        }
        if passed_on(old, job, world) && !job.state.is_final() && !is_requeued(job, changes) {
            assert!(counted, "a failure was not counted: {job:?}");
        }
    }
}

/// Whether an agent registered or changed, or a market order tried the queue: then backoffs do not
/// apply.
fn was_called_for(changes: &Changes) -> bool {
    let mut events = changes.history_lines.iter().flat_map(|line| &line.events);
    let came =
        |event: &Event| matches!(event, Event::AgentRegistered { .. } | Event::AgentUpdated { .. });
    changes.market_records.iter().any(|posting| posting.order_id.is_some()) || events.any(came)
}

fn is_requeued(job: &Job, changes: &Changes) -> bool {
    let mut events = changes.history_lines.iter().flat_map(|line| &line.events);
    events.any(|event| *event == Event::JobRequeued { job: job.id })
}

/// Whether an agent of another protocol lost the job, which now waits for any other worker.
fn passed_on(old: &Job, job: &Job, world: &World) -> bool {
    let Some(worker) = old.worker().and_then(|worker| world.agent(worker)) else { return false };
    let refused = job.candidates.declined.contains(&worker.id)
        && !old.candidates.declined.contains(&worker.id);
    refused && worker.home != job.request.origin && job.policy.queueing.after_failure
}

/// One second, doubled each time, written a second time.
fn pause(job: &Job, world: &World) -> Millis {
    let mut pause = 1_000_i64;
    for _ in world.rules.assignments_before_backoff..job.candidates.backoff.failed_assignments {
        pause = (pause * 2).min(3_600_000);
    }
    Millis(pause)
}
