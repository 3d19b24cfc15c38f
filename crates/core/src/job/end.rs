//! The end of a job: state, credits, reputation and notices in one step.

use std::sync::Arc;

use super::{
    Assignment, Cause, Job, JobResult, Requester, Selection, State, abandon, acceptance, backoff,
    grace_period, offer, open, question, work,
};
use crate::agent::{Agent, market_totals};
use crate::alias::{ClaimTarget, claim};
use crate::answer::Answer;
use crate::command::{Canceller, JobRef};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::ledger::post;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::reputation::window::WindowOutcome;
use crate::reputation::{Outcome, Score};

/// The text of a job that its requester cancelled without a reason.
pub const CANCELLED_BY_REQUESTER: &str = "cancelled by requester";

/// Settles a job and makes it final.
pub fn finish(
    draft: &mut Draft<'_>,
    mut job: Job,
    state: State,
    report: JobResult,
) -> Result<Answer, Refusal> {
    debug_assert!(job.state.may_become(state), "{:?} to {state:?}", job.state);
    release_hold(draft, &mut job, report.ok.then_some(report.paid))?;
    if matches!(state, State::Completed | State::Failed | State::Expired) {
        record_outcome(draft, &job, report.ok, report.cause, report.paid);
    }
    job.state = state;
    job.ended_at = Some(draft.now);
    job.links.market_orders_at_end = draft.next.market_orders;
    draft.add_event(Event::JobEnded { job: job.id, state, cause: report.cause, paid: report.paid });
    if let Some(worker) = job.worker() {
        job.links.previous_worked = draft.agent_state_mut(worker).last_worked.replace(job.id);
        if report.ok {
            let paid = report.paid;
            market_totals::update(draft, worker, &job, |tally| {
                tally.completed += 1;
                tally.earned = tally.earned.checked_add(paid).unwrap_or(tally.earned);
            });
        }
    }
    // These ends are news to the worker.
    let is_ended_by_hub = report.cause == Some(Cause::NoAnswer);
    if is_ended_by_hub || matches!(state, State::Expired | State::Cancelled) {
        notify_workers(draft, &job);
    }
    notify_requester(draft, &job);
    job.result = Some(report);
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}

/// Ends a job without success; everything held is released.
pub fn fail(
    draft: &mut Draft<'_>,
    job: Job,
    state: State,
    cause: Cause,
    text: Option<String>,
) -> Result<Answer, Refusal> {
    let took = work::work_duration(&job, draft.now);
    let paid = Credits::ZERO;
    let cause = Some(cause);
    let (output, words, content) = (None, None, None);
    let report = JobResult {
        ok: false,
        output,
        paid,
        duration: took,
        cause,
        text,
        meta: words,
        content,
        original: draft.worker_original.take(),
    };
    finish(draft, job, state, report)
}

/// The same for a worker that gave its reason in its own protocol.
pub fn fail_with_meta(
    draft: &mut Draft<'_>,
    job: Job,
    cause: Cause,
    text: String,
    words: Option<String>,
) -> Result<Answer, Refusal> {
    let (took, paid) = (work::work_duration(&job, draft.now), Credits::ZERO);
    let (cause, text) = (Some(cause), Some(text));
    let report = JobResult {
        ok: false,
        output: None,
        paid,
        duration: took,
        cause,
        text,
        meta: words,
        content: None,
        original: None,
    };
    finish(draft, job, State::Failed, report)
}

/// Withdraws a job as if it had never been requested; its id may be used again.
pub fn withdraw(draft: &mut Draft<'_>, mut job: Job) -> Result<Answer, Refusal> {
    release_hold(draft, &mut job, None)?;
    job.state = State::Withdrawn;
    job.ended_at = Some(draft.now);
    if job.has_unique_name() {
        draft.add_claim(
            claim::job(job.request.origin, &job.request.foreign_id),
            ClaimTarget::Released,
        );
    }
    let (state, paid) = (State::Withdrawn, Credits::ZERO);
    draft.add_event(Event::JobEnded { job: job.id, state, cause: None, paid });
    let job = draft.put_job(job);
    Ok(Answer::Job { job, repeated: false })
}

/// Ends the hold: the earned amount goes to the worker's owner, the rest back to the payer.
pub fn release_hold(
    draft: &mut Draft<'_>,
    job: &mut Job,
    paid: Option<Credits>,
) -> Result<(), Refusal> {
    if let Some(payer) = job.payment.payer {
        let pay = job.assignment.zip(paid).map(|(turn, paid)| (turn.owner, paid));
        post::resolve_hold(draft, job, payer, pay)?;
    }
    Ok(())
}

/// Records the worker's outcome. Jobs within one owner and jobs that are not its failure do not
/// change its score.
pub fn record_outcome(
    draft: &mut Draft<'_>,
    job: &Job,
    ok: bool,
    cause: Option<Cause>,
    paid: Credits,
) {
    let Some(turn) = job.assignment else { return };
    let hired_by = match job.request.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    let hirer = hired_by.and_then(|agent| draft.agent_state(agent));
    let hirer_score = hirer.map_or(Score::START, |agent_state| agent_state.standing.score);
    let cause = if turn.excused { Some(Cause::WithinGracePeriod) } else { cause };
    let is_responsible = ok || cause.is_some_and(Cause::is_worker_failure);
    let counted = is_responsible && job.payment.payer != Some(turn.owner);
    let weighs = !is_favour_to_a_stranger(draft, job, turn, cause);
    let (id, now) = (draft.next.outcome, draft.now);
    let assigned_at = job.acceptance.accepted_at.unwrap_or(turn.since);
    let on_time = now <= job.acceptance.promised.unwrap_or(job.request.deadline);
    if is_responsible {
        draft.add_event(Event::AgentOutcomeRecorded { agent: turn.worker, job: job.id, ok });
    }
    let agent_state = draft.agent_state_mut(turn.worker);
    agent_state.record_outcome(ok, (counted, weighs), hirer_score);
    if counted {
        let took = now.since(assigned_at);
        Arc::make_mut(&mut agent_state.window).push(WindowOutcome { ok, on_time, took });
    }
    if counted && weighs && ok {
        Arc::make_mut(&mut agent_state.customers).add(job.payment.payer, paid);
    }
    let outcome = Outcome {
        id,
        subject: turn.worker,
        number: agent_state.standing.outcomes,
        job: job.id,
        hired_by,
        hirer_score,
        ok,
        cause,
        counted,
        counts_in_ranking: weighs,
        paid,
        assigned_at,
        ended_at: now,
        on_time,
        score_after: agent_state.standing.score,
        before: agent_state.last_outcome.replace(id),
    };
    draft.add_outcome(outcome);
}

/// Whether the job was free for a requester whose owner never paid or was paid. Such requesters
/// cost nothing to create, so their jobs count neither for nor against a worker in the hub's
/// ranking. Work without a price is free, and so is input that makes a worker answer nonsense.
fn is_favour_to_a_stranger(
    draft: &Draft<'_>,
    job: &Job,
    turn: Assignment,
    cause: Option<Cause>,
) -> bool {
    let is_free =
        turn.price.is_zero() || job.policy.requester.unpaid || cause == Some(Cause::Unusable);
    is_free && is_for_a_stranger(draft, job)
}

/// Whether the job has no payer, or a payer that never paid or was paid.
fn is_for_a_stranger(draft: &Draft<'_>, job: &Job) -> bool {
    let payer = job.payment.payer.and_then(|payer| draft.owner(payer));
    payer.is_none_or(|payer| payer.payment_count == 0)
}

/// Whether a requester without any credits so far could have this worker do it.
pub fn is_free_for_new_owner(draft: &Draft<'_>, job: &Job, worker: AgentId) -> bool {
    let any_price = matches!(job.selection, Selection::Invited { any_price: true, .. });
    let skill = || draft.agent(worker).and_then(|agent| agent.skill_for(job));
    let asks = any_price && skill().is_some_and(|skill| !skill.price.is_zero());
    let pays = !job.payment.budget.is_zero() || !job.payment.held.is_zero() || asks;
    (!pays || job.policy.requester.unpaid) && is_for_a_stranger(draft, job)
}

/// Notifies the worker, or the invited agents, that the job has ended.
fn notify_workers(draft: &mut Draft<'_>, job: &Job) {
    // An invited agent was never assigned.
    let epoch = job.intended_worker().map_or(0, |_| job.epoch);
    let news = NoticeKind::Unassigned { job: job.id, epoch };
    let workers =
        job.intended_worker().map_or_else(|| job.candidates.invited.clone(), |worker| vec![worker]);
    let answered = draft.answered_agent;
    for worker in workers.into_iter().filter(|worker| answered != Some(*worker)) {
        // An agent that was invited at its endpoint is told there that it need not answer.
        let same_words = |agent: &&Agent| {
            let talks = matches!(job.selection, Selection::Invited { .. });
            agent.home == job.request.origin && talks || agent.terms.intake.urgent_first
        };
        let url = draft.agent(worker).filter(same_words).and_then(Agent::delivery_url);
        draft.notify_party(worker, news.clone(), url);
    }
}

/// The URL for notices to the requester: the job's callback, if the requester was answered that it
/// has to wait; for a protocol that delivers to its agents throughout, the agent's current
/// endpoint.
pub fn notify_url(draft: &Draft<'_>, job: &Job) -> Option<String> {
    let talks =
        matches!(job.selection, Selection::Invited { .. }) || job.policy.requester.answered_at_once;
    match &job.request.requester {
        Requester::Agent(agent) if talks => {
            draft.agent(*agent).filter(|agent| agent.home == job.request.origin)?.delivery_url()
        }
        _ => job.request.callback.clone().filter(|_| job.pending),
    }
}

/// Notifies the requester of the end: in its inbox and at its URL, if it has one.
fn notify_requester(draft: &mut Draft<'_>, job: &Job) {
    if job.policy.requester.follows_log {
        return;
    }
    let to = match job.request.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    let url = notify_url(draft, job);
    let news = NoticeKind::Ended { job: job.id };
    match to {
        Some(to) if draft.answered_agent == Some(to) => {}
        Some(to) => draft.notify_party(to, news, url),
        None if url.is_some() => drop(draft.notify(None, news, url)),
        None => {}
    }
}

/// Cancels a job, unless a worker has started and does not wait for an answer.
pub fn cancel(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: Canceller,
    reason: Option<String>,
) -> Result<Answer, Refusal> {
    let job = work::find_job(draft, wanted).ok_or(Refusal::NotFound)?;
    let freely = job.policy.requester.cancels_any_time;
    let allowed = match by {
        Canceller::Agent(agent) => {
            job.is_requested_by(agent) || freely && job.intended_worker() == Some(agent)
        }
        Canceller::Guest => matches!(job.request.requester, Requester::Guest(_)),
        Canceller::Operator => true,
    };
    if !allowed {
        return Err(Refusal::NotFound);
    }
    // A worker that waits for an answer may be told that there will be none.
    let waits = matches!(job.state, State::InputRequired { .. });
    if job.state.is_final() || job.has_started() && !freely && !waits {
        return Err(Refusal::WrongState { state: job.state });
    }
    let text = match by {
        Canceller::Agent(agent) if !job.is_requested_by(agent) => "cancelled by its worker",
        Canceller::Agent(_) | Canceller::Guest => CANCELLED_BY_REQUESTER,
        Canceller::Operator => "cancelled by operator",
    };
    let text = reason.unwrap_or_else(|| text.to_owned());
    let told = draft.answered_agent;
    if let (Canceller::Agent(agent), true) = (by, freely) {
        draft.answered_agent = Some(agent);
    }
    let answer = fail(draft, job, State::Cancelled, Cause::Cancelled, Some(text));
    // The same command may end other jobs of this agent, and those need notices.
    draft.answered_agent = told;
    answer
}

/// Something about the job is due: a lease, a deadline, an auction, an answer, the end of a
/// deferral.
pub fn handle_due(draft: &mut Draft<'_>, id: JobId) -> Result<Answer, Refusal> {
    let Some(mut job) = draft.job(id).cloned() else { return Ok(Answer::Done) };
    if job.due_at().is_none_or(|due| draft.now < due) {
        return Ok(Answer::Done);
    }
    let past_deadline = draft.now >= job.request.deadline;
    match job.state {
        State::Negotiating
            if matches!(job.selection, Selection::Auction { .. }) && !past_deadline =>
        {
            offer::close_auction(draft, job)
        }
        State::InputRequired { .. } => question::expire(draft, job),
        State::Queued if !past_deadline => backoff::handle_elapsed(draft, job),
        State::Deferred { .. } if !past_deadline => {
            let again = job.assignment.map(|turn| crate::world::skills::Candidate {
                agent: turn.worker,
                price: turn.price,
            });
            let Some(worker) = again else { return acceptance::retry_deferred(draft, job) };
            let (taken, promised) = (job.acceptance.accepted_at.is_some(), job.acceptance.promised);
            open::assign(draft, &mut job, worker);
            job.acceptance.promised = promised.or(job.acceptance.promised);
            // A worker that accepted and then deferred is not asked to accept again.
            if taken && job.acceptance.accepted_at.is_none() {
                acceptance::mark_accepted(draft, &mut job, None);
            }
            let job = draft.put_job(job);
            Ok(Answer::Job { job, repeated: false })
        }
        State::Assigned | State::Deferred { .. }
            if job.acceptance.accepted_at.is_none() && job.assignment.is_some() =>
        {
            handle_no_response(draft, job, "the agent did not answer in time")
        }
        State::Assigned | State::Running
            if job.policy.reassignment.when_failed && !past_deadline =>
        {
            grace_period::excuse_silence(draft, &mut job);
            work::fail_assignment(draft, job, Cause::TimedOut)
        }
        _ => {
            abandon::assign_silent_invitee(draft, &mut job);
            grace_period::excuse_silence(draft, &mut job);
            let text = Some("no result before the deadline".to_owned());
            fail(draft, job, State::Expired, Cause::TimedOut, text)
        }
    }
}

/// The worker did not accept or decline in time. It never accepted, so its score does not change.
fn handle_no_response(draft: &mut Draft<'_>, mut job: Job, text: &str) -> Result<Answer, Refusal> {
    let news = NoticeKind::Unassigned { job: job.id, epoch: job.epoch };
    if let Some(worker) = job.worker() {
        draft.notify(Some(worker), news, None);
        job.candidates.declined.push(worker);
    }
    if job.policy.reassignment.when_declined {
        return work::reassign(draft, job);
    }
    acceptance::fail_unaccepted(draft, job, Cause::NoWorkerLeft, text.to_owned())
}

/// The operator takes a job away from its worker and assigns it to the next.
pub fn requeue(draft: &mut Draft<'_>, wanted: &JobRef) -> Result<Answer, Refusal> {
    let mut job = work::find_job(draft, wanted).ok_or(Refusal::NotFound)?;
    if !job.state.is_assigned() && !matches!(job.state, State::Deferred { .. }) {
        return Err(Refusal::WrongState { state: job.state });
    }
    if let Some(worker) = job.worker() {
        job.candidates.declined.push(worker);
        draft.notify(Some(worker), NoticeKind::Unassigned { job: job.id, epoch: job.epoch }, None);
    }
    // An agent the job was only deferred for never had it.
    job.candidates.declined.extend(job.candidates.pending_assignment.map(|waits| waits.worker));
    draft.add_event(Event::JobRequeued { job: job.id });
    work::reassign_now(draft, job)
}

/// The worker unregistered: its jobs are reassigned, or fail with a refund.
pub fn handle_worker_left(draft: &mut Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    let work: Vec<Arc<Job>> = draft.world.assigned_jobs(agent).cloned().collect();
    for job in work {
        let mut job = Job::clone(&job);
        grace_period::excuse_departure(&mut job);
        if job.acceptance.accepted_at.is_none() {
            handle_no_response(draft, job, "the agent unregistered before it answered")?;
        } else if job.policy.reassignment.when_failed {
            work::fail_assignment(draft, job, Cause::WorkerLeft)?;
        } else {
            let text = Some("the agent unregistered".to_owned());
            fail(draft, job, State::Failed, Cause::WorkerLeft, text)?;
        }
    }
    let waiting: Vec<Arc<Job>> = draft.world.deferred_jobs_for(agent).cloned().collect();
    for job in waiting {
        acceptance::retry_worker(draft, Job::clone(&job), agent)?;
    }
    Ok(())
}

/// The requester unregistered: jobs that are not started are cancelled; the rest is still paid.
pub fn handle_requester_left(draft: &mut Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    let asked: Vec<JobId> = draft.world.jobs_requested_by(agent).map(|job| job.id).collect();
    for id in asked {
        if draft.job(id).is_none_or(Job::has_started) {
            continue;
        }
        match cancel(draft, &JobRef::Id(id), Canceller::Agent(agent), None) {
            Ok(_) | Err(Refusal::WrongState { .. }) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(())
}
