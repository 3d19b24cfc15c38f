//! The laws of rest: what goes from hand to hand in vain does so ever more slowly.

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
            assert!(job.rest.until.is_none(), "it rests before it was given to anybody: {job:?}");
            continue;
        };
        assert!(job.rest.vain >= old.rest.vain, "a turn in vain is never forgotten");
        let counted = job.rest.vain > old.rest.vain;
        if let Some(until) = job.rest.until.filter(|_| !job.state.is_final()) {
            assert_eq!(job.state, State::Queued, "it rests in the queue: {job:?}");
            assert_eq!(job.due(), Some(until.min(job.deadline)), "it would never wake up");
            let same = old.rest.until == Some(until);
            assert!(same || until == now.plus(pause(job, world)), "not its pause: {job:?}");
        }
        if job.epoch > old.epoch && !called_for {
            let rested = old.rest.until.is_none_or(|until| until <= now);
            assert!(rested, "given out before it had rested: {job:?}");
            let at_once = counted && job.rest.vain >= world.rules.turns_at_once;
            assert!(!at_once || !passed_on(old, job, world), "passed on at once: {job:?}");
        }
        if let (true, State::Deferred { until }) = (counted, job.state) {
            let tired = job.rest.vain >= world.rules.turns_at_once;
            assert!(!tired || until >= now.plus(pause(job, world)), "put off too shortly: {job:?}");
        }
        if passed_on(old, job, world) && !job.state.is_final() && !is_requeued(job, changes) {
            assert!(counted, "a turn in vain was not counted: {job:?}");
        }
    }
}

/// Whether somebody new came, or the market was told to try what waits: then nothing rests.
fn was_called_for(changes: &Changes) -> bool {
    let mut events = changes.lines.iter().flat_map(|line| &line.events);
    let came =
        |event: &Event| matches!(event, Event::AgentEnrolled { .. } | Event::AgentUpdated { .. });
    changes.postings.iter().any(|posting| posting.of.is_some()) || events.any(came)
}

fn is_requeued(job: &Job, changes: &Changes) -> bool {
    let mut events = changes.lines.iter().flat_map(|line| &line.events);
    events.any(|event| *event == Event::JobRequeued { job: job.id })
}

/// Whether it was taken from somebody of another protocol, and waits for anybody else.
fn passed_on(old: &Job, job: &Job, world: &World) -> bool {
    let Some(worker) = old.worker().and_then(|worker| world.agent(worker)) else { return false };
    let refused = job.declined.contains(&worker.id) && !old.declined.contains(&worker.id);
    refused && worker.home != job.origin && job.policy.queue_later
}

/// One second, and twice as long each time, written a second time.
fn pause(job: &Job, world: &World) -> Millis {
    let mut pause = 1_000_i64;
    for _ in world.rules.turns_at_once..job.rest.vain {
        pause = (pause * 2).min(3_600_000);
    }
    Millis(pause)
}
