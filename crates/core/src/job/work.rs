//! Working on a job: what only its worker may do.

use std::sync::Arc;

use super::progress::{ProgressUpdate, ResultPart};
use super::readiness::Readiness;
use super::{
    Cause, Job, JobResult, Selection, State, abandon, acceptance, backoff, end, grace_period, open,
    progress, request, select,
};
use crate::agent::{Agent, market_totals, presence};
use crate::alias::{ClaimTarget, claim};
use crate::answer::Answer;
use crate::command::{JobRef, ReportResult};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::message;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// The text of the result when there is no next worker.
const NO_WORKER_LEFT: &str = "no other worker is available";

/// The job a caller refers to.
pub fn find_job(draft: &Draft<'_>, wanted: &JobRef) -> Option<Job> {
    let target = |digest| match draft.claim_target(digest)? {
        ClaimTarget::Job(id) => Some(id),
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
        JobRef::Named(_) => return None,
    };
    draft.job(id).filter(|job| job.state != State::Withdrawn).cloned()
}

/// The job, if `by` is its worker. Another caller learns nothing.
pub fn find_assigned_job(draft: &Draft<'_>, wanted: &JobRef, by: AgentId) -> Result<Job, Refusal> {
    find_job(draft, wanted).filter(|job| job.worker() == Some(by)).ok_or(Refusal::NotFound)
}

/// The worker has the job, even if it waits for an answer.
fn ensure_assigned(job: &Job) -> Result<(), Refusal> {
    if job.state.is_assigned() { Ok(()) } else { Err(Refusal::WrongState { state: job.state }) }
}

/// The worker has the job and waits for nothing.
pub fn ensure_at_work(job: &Job) -> Result<(), Refusal> {
    match job.state {
        State::Assigned | State::Running => Ok(()),
        state => Err(Refusal::WrongState { state }),
    }
}

/// The same for progress. A worker that waits for its requester to sign in elsewhere gets no answer
/// from the hub; its next report says that it goes on.
pub fn ensure_can_report(job: &Job) -> Result<(), Refusal> {
    let signs_in = job.open_question().is_some_and(|(_, question)| question.signs_in);
    if signs_in { Ok(()) } else { ensure_at_work(job) }
}

/// A report about an earlier assignment never applies to this one, even if the job returned to the
/// same worker in between.
pub fn ensure_epoch(job: &Job, epoch: Option<u32>) -> Result<(), Refusal> {
    if epoch.is_none_or(|epoch| epoch == job.epoch) {
        Ok(())
    } else {
        Err(Refusal::OtherAssignment { epoch: job.epoch })
    }
}

/// The worker has the job and will report later; the requester is answered that it has to wait.
pub fn start(draft: &mut Draft<'_>, wanted: &JobRef, by: AgentId) -> Result<Answer, Refusal> {
    let mut job = find_assigned_job(draft, wanted, by)?;
    ensure_at_work(&job)?;
    message::knows_work(draft, by);
    if job.acceptance.accepted_at.is_none() {
        acceptance::mark_accepted(draft, &mut job, None);
        acceptance::notify_accepted(draft, &job);
    }
    job.state = State::Running;
    job.pending |= !job.policy.requester.waits;
    hand_over_one(&mut job, draft.now);
    draft.add_event(Event::JobStarted { job: job.id });
    Ok(put(draft, job))
}

/// The worker reports the result, or a part of it.
pub fn report_result(draft: &mut Draft<'_>, report: ReportResult) -> Result<Answer, Refusal> {
    let by = report.by;
    let mut job = match &report.job {
        JobRef::Named(request) => request::find_request(draft, by, request)?,
        job => find_assigned_job(draft, job, by)?,
    };
    ensure_epoch(&job, report.epoch)?;
    // The repeat of a signed report is recognised by the id of its order.
    if job.state.is_final() && !matches!(report.job, JobRef::Named(_)) {
        let first = job.result.as_ref().and_then(|result| result.content);
        if first == Some(report.content) {
            return Ok(Answer::Job { job: Arc::new(job), repeated: true });
        }
    }
    if job.state == State::Open && abandon::is_sole_invitee(&job, by) {
        abandon::assign_sole_invitee(draft, &mut job, by);
    }
    if job.worker() != Some(by) {
        return Err(Refusal::WrongState { state: job.state });
    }
    ensure_assigned(&job)?;
    if report.knows_work {
        message::knows_work(draft, by);
    }
    if report.no_response {
        grace_period::excuse_silence(draft, &mut job);
    } else {
        // A worker that reports a result has accepted the job, even if it never confirmed.
        if job.acceptance.accepted_at.is_none() {
            acceptance::mark_accepted(draft, &mut job, None);
        }
        grace_period::mark_received(&mut job, draft.now);
    }
    if !report.is_final {
        return report_part(draft, job, report.output.unwrap_or_default());
    }
    let price = job.assignment.map_or(Credits::ZERO, |assignment| assignment.price);
    let earned = earned_amount(&job, report.cost).min(job.payment.held);
    let paid = if report.ok { earned } else { Credits::ZERO };
    if report.ok && report.cost > price && report.cost != Credits::MAX {
        draft.add_event(Event::ReportedAbovePrice { job: job.id, reported: report.cost, paid });
    }
    let cause = (!report.ok).then(|| report.cause.unwrap_or(Cause::Execution));
    if !report.ok && job.policy.reassignment.when_failed {
        return fail_assignment(draft, job, cause.unwrap_or(Cause::Execution));
    }
    let result = JobResult {
        ok: report.ok,
        // Output that violates the worker's own schema is shown nevertheless.
        output: report.output.filter(|_| report.ok || cause == Some(Cause::Unusable)),
        paid,
        duration: report.took.unwrap_or_else(|| work_duration(&job, draft.now)),
        cause,
        text: report.text,
        meta: report.meta,
        content: Some(report.content),
        original: draft.worker_original.take(),
    };
    let state = if report.ok { State::Completed } else { State::Failed };
    end::finish(draft, job, state, result)
}

/// Adds a part of the result to the log; the job goes on.
fn report_part(draft: &mut Draft<'_>, mut job: Job, content: String) -> Result<Answer, Refusal> {
    ensure_at_work(&job)?;
    // The first part is also the first notice that the work has started.
    let was_running = draft.job(job.id).is_some_and(|job| job.state == State::Running);
    if !was_running {
        draft.add_event(Event::JobStarted { job: job.id });
    }
    job.state = State::Running;
    progress::renew_lease(draft, &mut job);
    let part = Some(ResultPart { content, append: false });
    progress::add_to_log(draft, &mut job, ProgressUpdate { part, ..ProgressUpdate::default() })?;
    Ok(put(draft, job))
}

/// The amount for a worker that names its cost: at most the agreed price. A lower cost counts only
/// below the worker's own price, because the requester saw that price rounded up.
fn earned_amount(job: &Job, cost: Credits) -> Credits {
    let Some(turn) = job.assignment else { return Credits::ZERO };
    match turn.own {
        Some(own) if cost >= own => turn.price,
        _ => job.payment.price_step.round_up(cost.max(Credits::ZERO)).min(turn.price),
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
    let mut job = find_assigned_job(draft, wanted, by)?;
    ensure_epoch(&job, epoch)?;
    ensure_assigned(&job)?;
    message::knows_work(draft, by);
    draft.add_event(Event::JobDeclined { job: job.id, worker: by });
    job.candidates.declined.push(by);
    market_totals::record_declined(draft, by, &job);
    if job.policy.reassignment.when_declined {
        let text =
            reason.map(|reason| format!("{NO_WORKER_LEFT}; the last worker declined: {reason}"));
        return reassign_or_fail(draft, job, text.as_deref().unwrap_or(NO_WORKER_LEFT));
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
    let mut job = find_assigned_job(draft, wanted, by)?;
    ensure_at_work(&job)?;
    message::knows_work(draft, by);
    let until = backoff::extend_deferral(draft, &mut job, until);
    grace_period::mark_received(&mut job, draft.now);
    job.state = State::Deferred { until };
    job.pending = true;
    draft.add_event(Event::JobDeferred { job: job.id, until });
    Ok(put(draft, job))
}

/// The worker has read these jobs; they can no longer be withdrawn.
pub fn hand_over(draft: &mut Draft<'_>, agent: AgentId, jobs: &[JobId]) -> Answer {
    let mut given = Vec::new();
    let told_now = draft.agent(agent).is_some_and(|agent| agent.terms.intake.urgent_first);
    for id in jobs {
        let Some(mut job) = draft.job(*id).cloned() else { continue };
        if job.worker() != Some(agent) || ensure_assigned(&job).is_err() {
            continue;
        }
        let is_new = job.assignment.is_some_and(|turn| !turn.handed_over);
        if is_new && told_now {
            let news = NoticeKind::Assigned { job: job.id, epoch: job.epoch };
            draft.notify(Some(agent), news, None);
        }
        if is_new || job.assignment.is_some_and(|turn| turn.received_at.is_none()) {
            hand_over_one(&mut job, draft.now);
            given.push(draft.put_job(job));
        } else {
            given.push(Arc::new(job));
        }
    }
    message::knows_work(draft, agent);
    presence::record_activity(draft, agent);
    Answer::Jobs(given)
}

/// The worker has the job, so it can no longer be withdrawn.
pub fn hand_over_one(job: &mut Job, now: Timestamp) {
    grace_period::mark_received(job, now);
    if let Some(turn) = &mut job.assignment {
        turn.handed_over = true;
    }
}

/// The requester is about to be answered that it has to wait, so it is notified of the end.
pub fn mark_pending(draft: &mut Draft<'_>, id: JobId) -> Result<Answer, Refusal> {
    let mut job = draft.job(id).cloned().ok_or(Refusal::NotFound)?;
    if job.state.is_final() || job.pending {
        return Ok(Answer::Job { job: Arc::new(job), repeated: true });
    }
    job.pending = true;
    Ok(put(draft, job))
}

/// The worker could not be reached: assigns the next one, or withdraws the job as if never
/// requested.
pub fn handle_unreachable(draft: &mut Draft<'_>, id: JobId, epoch: u32) -> Result<Answer, Refusal> {
    let mut job = draft.job(id).cloned().ok_or(Refusal::NotFound)?;
    if job.epoch != epoch || ensure_at_work(&job).is_err() {
        return Ok(Answer::Done);
    }
    if let Some(worker) = job.worker() {
        presence::mark_unreachable(draft, worker);
        // A named worker is not replaced: the job may still wait for it.
        if job.selection != Selection::Direct(worker) {
            job.candidates.declined.push(worker);
        } else if may_reassign(draft, &job) && waits_until_back(draft, &job, worker) {
            open::queue(draft, &mut job);
            return Ok(put(draft, job));
        }
    }
    if may_reassign(draft, &job) {
        let rests = backoff::start_after_failure(draft, &mut job);
        if job.policy.reassignment.when_unreachable
            && !rests
            && let Ok(chosen) = select::next_worker(draft, &job, Readiness::Immediate)
        {
            open::assign(draft, &mut job, chosen);
            return Ok(put(draft, job));
        }
        if job.policy.queueing.when_unmatched || rests && job.policy.reassignment.when_unreachable {
            open::queue(draft, &mut job);
            return Ok(put(draft, job));
        }
    }
    if job.pending || job.state == State::Running || job.policy.requester.follows_log {
        // The requester knows the job, or was answered that it has to wait, so the job cannot
        // vanish. It is not a worker's failure.
        let text = Some("no agent could be reached".to_owned());
        return end::fail(draft, job, State::Failed, Cause::NoWorkerLeft, text);
    }
    end::withdraw(draft, job)
}

/// Whether a job for a named worker waits until the protocol of that worker reaches it again.
fn waits_until_back(draft: &Draft<'_>, job: &Job, worker: AgentId) -> bool {
    job.policy.named_worker.may_be_offline
        && draft.agent(worker).is_some_and(Agent::is_called_by_protocol)
}

/// A worker failed or did not respond, and the job goes on without it.
pub fn fail_assignment(
    draft: &mut Draft<'_>,
    mut job: Job,
    cause: Cause,
) -> Result<Answer, Refusal> {
    end_assignment(draft, &mut job, cause);
    reassign(draft, job)
}

/// The worker asked a question that the requester cannot answer, and the job goes on without it.
pub fn reassign_after_question(
    draft: &mut Draft<'_>,
    mut job: Job,
    question: &str,
) -> Result<Answer, Refusal> {
    end_assignment(draft, &mut job, Cause::NoAnswer);
    let text = format!("{NO_WORKER_LEFT}; the last worker asked: {question}");
    reassign_or_fail(draft, job, &text)
}

/// Records how an assignment ended. A worker that may still be working is told.
fn end_assignment(draft: &mut Draft<'_>, job: &mut Job, cause: Cause) {
    end::record_outcome(draft, job, false, Some(cause), Credits::ZERO);
    let Some(worker) = job.worker() else { return };
    job.candidates.declined.push(worker);
    if matches!(cause, Cause::TimedOut | Cause::NoAnswer) {
        let news = NoticeKind::Unassigned { job: job.id, epoch: job.epoch };
        draft.notify(Some(worker), news, None);
    }
}

/// Assigns the next worker, or queues the job, or fails it.
pub fn reassign(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    reassign_or_fail(draft, job, NO_WORKER_LEFT)
}

/// The same, with the text of the result if the job fails.
fn reassign_or_fail(draft: &mut Draft<'_>, mut job: Job, text: &str) -> Result<Answer, Refusal> {
    if may_reassign(draft, &job) && backoff::start_after_failure(draft, &mut job) {
        open::queue(draft, &mut job);
        return Ok(put(draft, job));
    }
    assign_next(draft, job, text)
}

/// Assigns the next worker at once, for the operator: no limit on earlier assignments applies.
pub fn reassign_now(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    assign_next(draft, job, NO_WORKER_LEFT)
}

fn assign_next(draft: &mut Draft<'_>, mut job: Job, text: &str) -> Result<Answer, Refusal> {
    job.candidates.pending_assignment = None;
    if may_reassign(draft, &job) {
        if let Ok(chosen) = select::next_worker(draft, &job, Readiness::AfterApproval)
            && acceptance::hold_and_assign(draft, &mut job, chosen).is_ok()
        {
            return Ok(put(draft, job));
        }
        let for_all =
            matches!(job.selection, Selection::Broadcast | Selection::BroadcastToProtocol);
        if job.policy.queueing.when_unmatched || job.policy.queueing.after_failure && !for_all {
            open::queue(draft, &mut job);
            return Ok(put(draft, job));
        }
    }
    job.unassign();
    end::fail(draft, job, State::Failed, Cause::NoWorkerLeft, Some(text.to_owned()))
}

/// Whether the deadline and the attempt limit allow another assignment.
fn may_reassign(draft: &Draft<'_>, job: &Job) -> bool {
    // A job that may be queued for new workers never fails for having been declined.
    let patient = job.policy.queueing.after_failure || job.epoch < draft.world.rules.attempts_max;
    draft.now < job.request.deadline && patient
}

/// Writes the job and answers with it.
pub fn put(draft: &mut Draft<'_>, job: Job) -> Answer {
    let job = draft.put_job(job);
    Answer::Job { job, repeated: false }
}

/// How long the worker had it, by the hub's clock.
pub fn work_duration(job: &Job, now: Timestamp) -> Millis {
    job.assignment.map_or(Millis(0), |turn| now.since(turn.since))
}
