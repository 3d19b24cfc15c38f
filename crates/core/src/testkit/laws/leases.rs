//! The laws of silence: how long a worker may say nothing before a job moves on by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::changes::Changes;
use crate::id::JobId;
use crate::job::{Assignment, Job, Selection, State};
use crate::time::{Millis, Timestamp};
use crate::world::World;

/// How long after the time it promised itself a worker may still deliver, written a second time.
const PATIENCE: Millis = Millis::minutes(10);

/// Every turn ends when it should, and only by being taken on does that change.
pub fn check(before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes, world: &World, now: Timestamp) {
    for job in changes.jobs.values().filter(|job| !job.state.is_final()) {
        let Some(turn) = job.assignment else { continue };
        let old = before.get(&job.id).map(|old| &**old);
        let until = match old.filter(|old| old.epoch == job.epoch) {
            None => given(old, job, turn, world, now),
            Some(old) if old.accepted_at.is_none() && job.accepted_at.is_some() => taken(job, now),
            Some(old) => old.assignment.map_or(job.deadline, |turn| turn.until),
        };
        assert_eq!(
            turn.until,
            until.min(job.deadline),
            "silent for longer, or not so long: {job:?}"
        );
        if matches!(job.state, State::Assigned | State::Running) {
            assert!(
                job.due().is_some_and(|due| due <= turn.until),
                "silence is not noticed: {job:?}"
            );
        }
    }
}

/// Whoever answers for itself has a moment to do so, and everybody else the job's own lease.
fn given(
    old: Option<&Job>,
    job: &Job,
    turn: Assignment,
    world: &World,
    now: Timestamp,
) -> Timestamp {
    let asked = matches!(job.selection, Selection::Asked { .. });
    let waited = old.is_some_and(|old| old.state == State::Open);
    if asked && waited && turn.since == job.opened_at {
        // It was asked alone and began by itself: it had the whole time all along.
        return job.deadline;
    }
    now.plus(if job.accepted_at.is_some() { job.lease } else { world.rules.answer_window })
}

/// Whoever says itself when it is ready is late only well after that.
fn taken(job: &Job, now: Timestamp) -> Timestamp {
    match (job.wanted, job.ready_at) {
        (None, Some(ready)) => ready.max(now).plus(PATIENCE),
        _ => now.plus(job.lease),
    }
}
