//! Backoff: after each failed assignment a job waits longer before the next one.
//!
//! Most jobs are reassigned a limited number of times and then end. Two kinds could loop forever,
//! as fast as their workers answer: jobs that are queued for new workers instead of ending
//! (`queue_after_failure`), and jobs that one worker defers again and again. Those back off. The
//! first assignments follow each other at once, whichever workers have them.
//!
//! Agents of the job's own protocol cause no backoff: a market may promise that the next worker
//! follows at once when one declines, and each of them has to make a request to decline. The others
//! are called by the hub itself.

use serde::{Deserialize, Serialize};

use super::readiness::Readiness;
use super::{Job, acceptance, select};
use crate::answer::Answer;
use crate::draft::Draft;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// The first delay; each is twice the one before it.
const FIRST_DELAY: Millis = Millis::seconds(1);
/// The longest delay.
const DELAY_MAX: Millis = Millis::hours(1);
/// Further doublings would exceed the longest delay anyway.
const DOUBLINGS_MAX: u32 = 12;

/// The backoff state of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// Failed assignments that could have been followed by another without limit.
    #[serde(rename = "vain")]
    pub failed_assignments: u32,
    /// Until when it waits in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Backoff {
    /// Whether there was no backoff so far.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts a failed assignment; returns whether the job backs off before the next.
pub fn start_after_failure(draft: &Draft<'_>, job: &mut Job) -> bool {
    let worker = job.worker().and_then(|worker| draft.agent(worker));
    let called = worker.is_some_and(|worker| worker.home != job.request.origin);
    if !called || !job.policy.queueing.after_failure {
        return false;
    }
    job.candidates.backoff.failed_assignments =
        job.candidates.backoff.failed_assignments.saturating_add(1);
    job.candidates.backoff.until = current_delay(draft, job).map(|pause| draft.now.plus(pause));
    job.candidates.backoff.until.is_some()
}

/// When to retry a job that its worker defers until the given time.
pub fn extend_deferral(draft: &Draft<'_>, job: &mut Job, until: Timestamp) -> Timestamp {
    job.candidates.backoff.failed_assignments =
        job.candidates.backoff.failed_assignments.saturating_add(1);
    current_delay(draft, job).map_or(until, |pause| until.max(draft.now.plus(pause)))
}

/// The backoff has elapsed: assigns the next worker, or leaves the job in the queue.
pub fn handle_elapsed(draft: &mut Draft<'_>, mut job: Job) -> Result<Answer, Refusal> {
    job.candidates.backoff.until = None;
    let mut given = job.clone();
    if let Ok(chosen) = select::next_worker(draft, &job, Readiness::AfterApproval)
        && acceptance::hold_and_assign(draft, &mut given, chosen).is_ok()
    {
        job = given;
    }
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}

fn current_delay(draft: &Draft<'_>, job: &Job) -> Option<Millis> {
    let beyond = job
        .candidates
        .backoff
        .failed_assignments
        .checked_sub(draft.world.rules.assignments_before_backoff)?;
    Some(Millis(FIRST_DELAY.0 << beyond.min(DOUBLINGS_MAX)).min(DELAY_MAX))
}
