//! Working on a job: what only its worker may do.

use std::sync::Arc;

use super::readiness::Ready;
use super::{Cause, Job, Report, Selection, State, end, grace_period, open, acceptance, backoff, select};
use crate::agent::{presence, market_totals};
use crate::alias::{Target, claim};
use crate::answer::Answer;
use crate::command::{JobRef, ReportWork};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::message;
use crate::money::Credits;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// The text of the result when there is no next worker.
const NOBODY_LEFT: &str = "no other worker is available";

/// The job a caller refers to.
pub fn find(draft: &Draft<'_>, wanted: &JobRef) -> Option<Job> {
    let target = |digest| match draft.claimed(digest)? {
        Target::Job(id) => Some(id),
        _ => None,
    };
    let id = match wanted {
        JobRef::Id(id) => *id,
        JobRef::Uuid(uuid) => match draft.world.job_by_uuid(*uuid) {
            Some(job) => job.id,
            None => target(claim::job_uuid(*uuid))?,
        },
        JobRef::Foreign { origin, id } => match draft.world.job_by_name(*origin, id) {
            Some(job) => job.id,
            None => target(claim::job(*origin, id))?,
        },
    };
    draft.job(id).filter(|job| job.state != State::Withdrawn).cloned()
}

/// The job, if `by` is its worker. Another caller learns nothing.
pub fn held_by(draft: &Draft<'_>, wanted: &JobRef, by: AgentId) -> Result<Job, Refusal> {
    find(draft, wanted).filter(|job| job.worker() == Some(by)).ok_or(Refusal::NotYours)
}

fn in_hand(job: &Job) -> Result<(), Refusal> {
    match job.state {
        State::Assigned | State::Running => Ok(()),
        is => Err(Refusal::WrongState { is }),
    }
}

/// A report about an earlier assignment never applies to this one, even if the job returned to the
/// same worker in between.
fn in_turn(job: &Job, epoch: Option<u32>) -> Result<(), Refusal> {
    match epoch.is_none_or(|epoch| epoch == job.epoch) {
        true => Ok(()),
        false => Err(Refusal::OtherTurn { is: job.epoch }),
    }
}

/// The worker has the job and will report later; the requester is answered that it has to wait.
pub fn start(draft: &mut Draft<'_>, wanted: &JobRef, by: AgentId) -> Result<Answer, Refusal> {
    let mut job = held_by(draft, wanted, by)?;
    in_hand(&job)?;
    message::knows_work(draft, by);
    if job.accepted_at.is_none() {
        acceptance::take_on(draft, &mut job, None);
        acceptance::tell_accepted(draft, &job);
    }
    job.state = State::Running;
    job.pending |= !job.policy.requester_waits;
    hand_over_one(&mut job, draft.now);
    draft.event(Event::JobStarted { job: job.id });
    Ok(put(draft, job))
}

/// The worker reports the result.
pub fn report(draft: &mut Draft<'_>, said: ReportWork) -> Result<Answer, Refusal> {
    let mut job = held_by(draft, &said.job, said.by)?;
    in_turn(&job, said.epoch)?;
    if job.state.is_final() {
        let same = job.report.as_ref().and_then(|report| report.content) == Some(said.content);
        return match same {
            true => Ok(Answer::Job { job: Arc::new(job), repeated: true }),
            false => Err(Refusal::WrongState { is: job.state }),
        };
    }
    in_hand(&job)?;
    message::knows_work(draft, said.by);
    if said.silent {
        grace_period::excuse_silence(draft, &mut job);
    } else {
        // A worker that reports a result has accepted the job, even if it never confirmed.
        job.accepted_at = job.accepted_at.or(Some(draft.now));
        grace_period::in_hand(&mut job, draft.now);
    }
    let price = job.assignment.map_or(Credits::ZERO, |turn| turn.price);
    let earned = earned(&job, said.cost).min(job.held);
    let paid = if said.ok { earned } else { Credits::ZERO };
    if said.ok && said.cost > price && said.cost != Credits::MAX {
        draft.event(Event::ReportedAbovePrice { job: job.id, reported: said.cost, paid });
    }
    let cause = (!said.ok).then(|| said.cause.unwrap_or(Cause::Execution));
    let report = Report {
        ok: said.ok,
        // Output that violates the worker's own schema is shown nevertheless.
        output: said.output.filter(|_| said.ok || cause == Some(Cause::Unusable)),
        paid,
        took: said.took,
        cause,
        text: said.text,
        words: said.words,
        content: Some(said.content),
    };
    if !said.ok && job.policy.next_when_failed {
        return failed_turn(draft, job, cause.unwrap_or(Cause::Execution));
    }
    let state = if said.ok { State::Completed } else { State::Failed };
    end::finish(draft, job, state, report)
}

/// The amount for a worker that names its cost: at most the agreed price. A lower cost counts only
/// below the worker's own price, because the requester saw that price rounded up.
fn earned(job: &Job, cost: Credits) -> Credits {
    let Some(turn) = job.assignment else { return Credits::ZERO };
    match turn.own {
        Some(own) if cost >= own => turn.price,
        _ => job.grain.up(cost.max(Credits::ZERO)).min(turn.price),
    }
}

/// The worker declines. The requester gets the reason if this ends the job.
pub fn decline(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    epoch: Option<u32>,
    reason: Option<String>,
) -> Result<Answer, Refusal> {
    let mut job = held_by(draft, wanted, by)?;
    in_turn(&job, epoch)?;
    in_hand(&job)?;
    message::knows_work(draft, by);
    draft.event(Event::JobDeclined { job: job.id, worker: by });
    job.declined.push(by);
    market_totals::declined(draft, by, &job);
    if job.policy.next_when_declined {
        let text =
            reason.map(|reason| format!("{NO_WORKER_LEFT}; the last worker declined: {reason}"));
        return pass_on_or(draft, job, text.as_deref().unwrap_or(NOBODY_LEFT));
    }
    let text = reason.unwrap_or_else(|| "the agent declined the job".to_owned());
    end::fail(draft, job, State::Failed, Cause::Policy, Some(text))
}

/// The worker defers the job.
pub fn defer(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    until: Timestamp,
) -> Result<Answer, Refusal> {
    let mut job = held_by(draft, wanted, by)?;
    in_hand(&job)?;
    message::knows_work(draft, by);
    let until = backoff::put_off(draft, &mut job, until);
    grace_period::in_hand(&mut job, draft.now);
    job.state = State::Deferred { until };
    job.pending = true;
    draft.event(Event::JobDeferred { job: job.id, until });
    Ok(put(draft, job))
}

/// The worker has read these jobs; they can no longer be withdrawn.
pub fn hand_over(draft: &mut Draft<'_>, agent: AgentId, jobs: &[JobId]) -> Answer {
    let mut given = Vec::new();
    let told_now = draft.agent(agent).is_some_and(|agent| agent.terms.urgent_first);
    for id in jobs {
        let Some(mut job) = draft.job(*id).cloned() else { continue };
        if job.worker() != Some(agent) || in_hand(&job).is_err() {
            continue;
        }
        if job.assignment.is_some_and(|turn| !turn.handed_over) {
            hand_over_one(&mut job, draft.now);
            draft.put_job(job.clone());
            if told_now {
                let news = News::Assigned { job: job.id, epoch: job.epoch };
                draft.tell(Some(agent), news, None);
            }
        } else if job.assignment.is_some_and(|turn| turn.handed_at.is_none()) {
            hand_over_one(&mut job, draft.now);
            draft.put_job(job.clone());
        }
        given.push(Arc::new(job));
    }
    message::knows_work(draft, agent);
    presence::seen(draft, agent);
    Answer::Jobs(given)
}

fn hand_over_one(job: &mut Job, now: Timestamp) {
    grace_period::in_hand(job, now);
    if let Some(turn) = &mut job.assignment {
        turn.handed_over = true;
    }
}

/// The requester is about to be answered that it has to wait, so it is notified of the end.
pub fn mark_pending(draft: &mut Draft<'_>, id: JobId) -> Result<Answer, Refusal> {
    let mut job = draft.job(id).cloned().ok_or(Refusal::NotYours)?;
    if job.state.is_final() || job.pending {
        return Ok(Answer::Job { job: Arc::new(job), repeated: true });
    }
    job.pending = true;
    Ok(put(draft, job))
}

/// The worker could not be reached: assigns the next one, or withdraws the job as if never
/// requested.
pub fn unreachable(draft: &mut Draft<'_>, id: JobId, epoch: u32) -> Result<Answer, Refusal> {
    let mut job = draft.job(id).cloned().ok_or(Refusal::NotYours)?;
    if job.epoch != epoch || in_hand(&job).is_err() {
        return Ok(Answer::Done);
    }
    if let Some(worker) = job.worker() {
        presence::lost(draft, worker);
        // A named worker is not replaced: the job may still wait for it.
        if job.selection != Selection::Direct(worker) {
            job.declined.push(worker);
        }
    }
    if may_go_on(draft, &job) {
        let rests = backoff::after_turn(draft, &mut job);
        if job.policy.next_when_unreachable
            && !rests
            && let Ok(chosen) = select::next(draft, &job, Ready::AtOnce)
        {
            open::assign(draft, &mut job, chosen);
            return Ok(put(draft, job));
        }
        if job.policy.queue_unmatched || rests && job.policy.next_when_unreachable {
            open::queue(draft, &mut job);
            return Ok(put(draft, job));
        }
    }
    if job.pending || job.state == State::Running {
        // The requester was answered that it has to wait, so the job cannot vanish. It is not a
        // worker's failure.
        let text = Some("no agent could be reached".to_owned());
        return end::fail(draft, job, State::Failed, Cause::NobodyLeft, text);
    }
    end::withdraw(draft, job)
}

/// A worker failed or did not respond, and the job goes on without it.
pub fn failed_turn(draft: &mut Draft<'_>, mut job: Job, cause: Cause) -> Result<Answer, Refusal> {
    end::record_outcome(draft, &job, false, Some(cause), Credits::ZERO);
    if let Some(worker) = job.worker() {
        job.declined.push(worker);
        if cause == Cause::TimedOut {
            draft.tell(Some(worker), News::TakenBack { job: job.id, epoch: job.epoch }, None);
        }
    }
    pass_on(draft, job)
}

/// Assigns the next worker, or queues the job, or fails it.
pub fn pass_on(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    pass_on_or(draft, job, NOBODY_LEFT)
}

/// The same, with the text of the result if the job fails.
fn pass_on_or(draft: &mut Draft<'_>, mut job: Job, text: &str) -> Result<Answer, Refusal> {
    if may_go_on(draft, &job) && backoff::after_turn(draft, &mut job) {
        open::queue(draft, &mut job);
        return Ok(put(draft, job));
    }
    to_the_next(draft, job, text)
}

/// Assigns the next worker at once, for the operator: no limit on earlier assignments applies.
pub fn pass_on_now(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    to_the_next(draft, job, NOBODY_LEFT)
}

fn to_the_next(draft: &mut Draft<'_>, mut job: Job, text: &str) -> Result<Answer, Refusal> {
    job.waits_for = None;
    if may_go_on(draft, &job) {
        if let Ok(chosen) = select::next(draft, &job, Ready::Soon)
            && acceptance::begin(draft, &mut job, chosen).is_ok()
        {
            return Ok(put(draft, job));
        }
        let for_all = matches!(job.selection, Selection::Broadcast | Selection::Everybody);
        if job.policy.queue_unmatched || job.policy.queue_later && !for_all {
            open::queue(draft, &mut job);
            return Ok(put(draft, job));
        }
    }
    job.unassign();
    end::fail(draft, job, State::Failed, Cause::NobodyLeft, Some(text.to_owned()))
}

/// Whether the deadline and the attempt limit allow another assignment.
fn may_go_on(draft: &Draft<'_>, job: &Job) -> bool {
    // A job that may be queued for new workers never fails for having been declined.
    let patient = job.policy.queue_later || job.epoch < draft.world.rules.attempts_max;
    draft.now < job.deadline && patient
}

fn put(draft: &mut Draft<'_>, job: Job) -> Answer {
    draft.put_job(job.clone());
    Answer::Job { job: Arc::new(job), repeated: false }
}

/// How long the worker had it, by the hub's clock.
pub fn worked_for(job: &Job, now: Timestamp) -> Millis {
    job.assignment.map_or(Millis(0), |turn| now.since(turn.since))
}
