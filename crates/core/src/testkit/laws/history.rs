//! The laws of the history: whatever became of a job is told, and nothing is told that did not happen.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::changes::Changes;
use crate::event::Event;
use crate::id::JobId;
use crate::job::{Job, State};

pub fn check(before: &BTreeMap<JobId, Arc<Job>>, changes: &Changes) {
    for job in changes.jobs.values() {
        let told: Vec<&Event> = changes
            .lines
            .iter()
            .flat_map(|line| &line.events)
            .filter(|event| about(event) == Some(job.id))
            .collect();
        let old = before.get(&job.id).map(|old| &**old);
        beginnings(old, job, &told);
        states(old, job, &told);
        offers(old, job, &told);
        endings(job, &told);
    }
}

/// A job is opened once, and every turn at it is told with its number.
fn beginnings(old: Option<&Job>, job: &Job, told: &[&Event]) {
    let opened = told.iter().filter(|event| matches!(event, Event::JobOpened { .. })).count();
    assert_eq!(opened, usize::from(old.is_none()), "opened once: {job:?}");
    let turns = told.iter().filter_map(|event| match event {
        Event::JobAssigned { epoch, .. } => Some(*epoch),
        _ => None,
    });
    let expected = old.map_or(0, |old| old.epoch) + 1..=job.epoch;
    assert!(turns.eq(expected), "each turn is told: {told:?}, {job:?}");
    let last = told.iter().rev().find_map(|event| match event {
        Event::JobAssigned { worker, .. } => Some(*worker),
        _ => None,
    });
    if let (Some(told), Some(worker)) = (last, job.worker()) {
        assert_eq!(told, worker, "given to another than is told: {job:?}");
    }
}

/// A state that was entered was told.
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
    assert!(is_told, "{:?} and nobody was told: {told:?}", job.state);
}

/// Every price that was named is told with who named it.
fn offers(old: Option<&Job>, job: &Job, told: &[&Event]) {
    let made = job.offers.iter().skip(old.map_or(0, |old| old.offers.len())).map(|offer| offer.by);
    let told = told.iter().filter_map(|event| match event {
        Event::JobOffered { by, .. } => Some(*by),
        _ => None,
    });
    assert!(told.eq(made), "prices are told as they are named: {job:?}");
}

/// The end is told as it was.
fn endings(job: &Job, told: &[&Event]) {
    let ends = told.iter().filter_map(|event| match event {
        Event::JobEnded { state, cause, paid, .. } => Some((*state, *cause, *paid)),
        _ => None,
    });
    let report = job.report.as_ref();
    let (cause, paid) = (report.and_then(|report| report.cause), report.map(|report| report.paid));
    let end = (job.state, cause, paid.unwrap_or_default());
    assert!(ends.eq(job.state.is_final().then_some(end)), "the end is told as it was: {job:?}");
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
