//! Grace period: how long a worker may give no response before it counts as a failure.
//!
//! A requester chooses the deadline of its job, so it could make any worker time out. A missing
//! response counts only once the worker has had the job for its expected duration, and never for
//! less than [`Rules::fair_time`](crate::world::Rules). The time starts when the worker fetches the
//! job, reads its notice, gets it at its endpoint, or reports anything about it.

use super::Job;
use crate::draft::Draft;
use crate::id::{AgentId, JobId};
use crate::time::{Millis, Timestamp};

/// How long this worker must have had the job before a missing response counts.
pub fn period_for(draft: &Draft<'_>, job: &Job, worker: AgentId) -> Millis {
    let skill = draft.agent(worker).and_then(|agent| agent.skill_for(job));
    let takes = skill.and_then(|skill| skill.expected_duration).unwrap_or_default();
    takes.max(draft.world.rules.grace_period)
}

/// Marks that the worker has received the job, now if not earlier.
pub fn mark_received(job: &mut Job, now: Timestamp) {
    if let Some(turn) = &mut job.assignment {
        turn.received_at = turn.received_at.or(Some(now));
    }
}

/// The agent was shown these jobs.
pub fn mark_shown(draft: &mut Draft<'_>, agent: AgentId, jobs: &[JobId]) {
    for id in jobs {
        let holds = |job: &&Job| job.active_worker() == Some(agent);
        let new = |job: &&Job| job.assignment.is_some_and(|turn| turn.received_at.is_none());
        let Some(mut job) = draft.job(*id).filter(holds).filter(new).cloned() else { continue };
        mark_received(&mut job, draft.now);
        draft.put_job(job);
    }
}

/// The agent has read its inbox up to a position.
pub fn mark_read(draft: &mut Draft<'_>, agent: AgentId, up_to: u64) {
    let read: Vec<JobId> = draft.world.unread_jobs_up_to(agent, up_to).collect();
    for id in read {
        mark_notice_read(draft, id, agent, |position| position <= up_to);
    }
}

/// The notice at a position was delivered to the agent's endpoint.
pub fn mark_delivered(draft: &mut Draft<'_>, agent: AgentId, position: u64) {
    if let Some(id) = draft.world.unread_job_at(agent, position) {
        mark_notice_read(draft, id, agent, |told_at| told_at == position);
    }
}

fn mark_notice_read(
    draft: &mut Draft<'_>,
    id: JobId,
    agent: AgentId,
    is_read: impl Fn(u64) -> bool,
) {
    let waits =
        |job: &&Job| job.unread_notice().is_some_and(|(who, at)| who == agent && is_read(at));
    let Some(mut job) = draft.job(id).filter(waits).cloned() else { return };
    match job.assignment {
        Some(_) => mark_received(&mut job, draft.now),
        None => job.candidates.read_at = Some(draft.now),
    }
    draft.put_job(job);
}

/// The worker did not respond. It is excused unless its grace period has passed.
pub fn excuse_silence(draft: &Draft<'_>, job: &mut Job) {
    let now = draft.now;
    if let Some(turn) = &mut job.assignment {
        turn.excused = turn.received_at.is_none_or(|at| now.since(at) < turn.grace_period);
    }
}

/// The worker unregistered. It is excused from jobs it never received.
pub fn excuse_departure(job: &mut Job) {
    if let Some(turn) = &mut job.assignment {
        turn.excused = turn.received_at.is_none();
    }
}
