//! Lease invariants: how long a worker may give no response before the job moves on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::changes::Changes;
use crate::event::Event;
use crate::id::JobId;
use crate::job::{Assignment, Job, Selection, State};
use crate::time::{Millis, Timestamp};
use crate::world::World;

/// How long after its own promised time a worker may still deliver, written a second time.
const TIME_LIMIT: Millis = Millis::minutes(10);

/// Every assignment ends at the right time. Acceptance sets that time; a report or an answer to the
/// worker's question moves it on.
pub fn check(before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World, now: Timestamp) {
    for job in changes.jobs.values().filter(|job| !job.state.is_final()) {
        let Some(turn) = job.assignment else { continue };
        let old = before.get(&job.id).map(|old| &**old);
        let until = match old.filter(|old| old.epoch == job.epoch) {
            None => given(old, job, turn, world, now),
            Some(old)
                if old.acceptance.accepted_at.is_none() && job.acceptance.accepted_at.is_some() =>
            {
                taken(job, now)
            }
            Some(old) => old.assignment.map_or(job.request.deadline, |turn| turn.until),
        };
        let renewed = until.max(now.plus(job.request.lease));
        let until = if is_renewed(old, job, changes) { renewed } else { until };
        if may_be_renewed(job) && turn.until == renewed.min(job.request.deadline) {
            continue;
        }
        assert_eq!(
            turn.until,
            until.min(job.request.deadline),
            "the lease has a wrong end: {job:?}"
        );
        if matches!(job.state, State::Assigned | State::Running) {
            assert!(
                job.due_at().is_some_and(|due| due <= turn.until),
                "no timer for the lease: {job:?}"
            );
        }
    }
}

/// Whether the worker gave a sign of life, or got the answer it waited for.
fn is_renewed(old: Option<&Job>, job: &Job, changes: &Changes) -> bool {
    let mut events = changes.history_lines.iter().flat_map(|line| &line.events);
    let reported = events.any(|event| *event == Event::JobProgressed { job: job.id });
    let waited = old.is_some_and(|old| matches!(old.state, State::InputRequired { .. }));
    reported || waited && job.state == State::Running
}

/// Whether the worker may have shown its protocol that it is there.
fn may_be_renewed(job: &Job) -> bool {
    job.handover.is_some() && job.assignment.is_some_and(|turn| turn.received_at.is_some())
}

/// An agent that confirms jobs itself has the acceptance timeout; any other has the job's lease.
fn given(
    old: Option<&Job>,
    job: &Job,
    turn: Assignment,
    world: &World,
    now: Timestamp,
) -> Timestamp {
    let asked = matches!(job.selection, Selection::Invited { .. });
    let waited = old.is_some_and(|old| old.state == State::Open);
    if asked && waited && turn.since == job.request.opened_at {
        // A sole invitee that started by itself: it had the whole time from the start.
        return job.request.deadline;
    }
    now.plus(if job.acceptance.accepted_at.is_some() {
        job.request.lease
    } else {
        world.rules.acceptance_timeout
    })
}

/// A worker that names its own time is overdue only well after that.
fn taken(job: &Job, now: Timestamp) -> Timestamp {
    match (job.request.wanted_by, job.acceptance.ready_at) {
        (None, Some(ready)) => ready.max(now).plus(TIME_LIMIT),
        _ => now.plus(job.request.lease),
    }
}
