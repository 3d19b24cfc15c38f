//! The end of a job: state, credits, reputation and notices in one step.

use std::sync::Arc;

use super::{
    Assignment, Cause, Job, Report, Requester, Selection, State, grace_period, offer, open, signed_result, acceptance,
    backoff, work,
};
use crate::agent::{Agent, market_totals};
use crate::alias::{Target, claim};
use crate::answer::Answer;
use crate::command::{Canceller, JobRef};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::ledger::post;
use crate::money::Credits;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::reputation::window::Seen;
use crate::reputation::{Outcome, Score};

/// Settles a job and makes it final.
pub fn finish(
    draft: &mut Draft<'_>,
    mut job: Job,
    state: State,
    report: Report,
) -> Result<Answer, Refusal> {
    debug_assert!(job.state.may_become(state), "{:?} to {state:?}", job.state);
    release(draft, &mut job, report.ok.then_some(report.paid))?;
    if matches!(state, State::Completed | State::Failed | State::Expired) {
        record_outcome(draft, &job, report.ok, report.cause, report.paid);
    }
    job.state = state;
    job.ended_at = Some(draft.now);
    job.posts_at_end = draft.next.posts;
    draft.event(Event::JobEnded { job: job.id, state, cause: report.cause, paid: report.paid });
    if let Some(worker) = job.worker() {
        job.before_worked = draft.desk_mut(worker).last_worked.replace(job.id);
        if report.ok {
            let paid = report.paid;
            market_totals::count(draft, worker, &job, |tally| {
                tally.done += 1;
                tally.earned = tally.earned.plus(paid).unwrap_or(tally.earned);
            });
        }
    }
    if matches!(state, State::Expired | State::Cancelled) {
        tell_workers(draft, &job);
    }
    tell_requester(draft, &job);
    job.report = Some(report);
    draft.put_job(job.clone());
    Ok(Answer::Job { job: Arc::new(job), repeated: false })
}

/// Ends a job without success; everything held is released.
pub fn fail(
    draft: &mut Draft<'_>,
    job: Job,
    state: State,
    cause: Cause,
    text: Option<String>,
) -> Result<Answer, Refusal> {
    let took = work::worked_for(&job, draft.now);
    let paid = Credits::ZERO;
    let cause = Some(cause);
    let (output, words, content) = (None, None, None);
    let report = Report { ok: false, output, paid, took, cause, text, words, content };
    finish(draft, job, state, report)
}

/// The same for a worker that gave its reason in its own protocol.
pub fn fail_in_words(
    draft: &mut Draft<'_>,
    job: Job,
    cause: Cause,
    text: String,
    words: Option<String>,
) -> Result<Answer, Refusal> {
    let (took, paid) = (work::worked_for(&job, draft.now), Credits::ZERO);
    let (cause, text) = (Some(cause), Some(text));
    let report = Report { ok: false, output: None, paid, took, cause, text, words, content: None };
    finish(draft, job, State::Failed, report)
}

/// Withdraws a job as if it had never been requested; its id may be used again.
pub fn withdraw(draft: &mut Draft<'_>, mut job: Job) -> Result<Answer, Refusal> {
    release(draft, &mut job, None)?;
    job.state = State::Withdrawn;
    job.ended_at = Some(draft.now);
    if job.has_its_own_name() {
        draft.claim(claim::job(job.origin, &job.foreign), Target::Free);
    }
    let (state, paid) = (State::Withdrawn, Credits::ZERO);
    draft.event(Event::JobEnded { job: job.id, state, cause: None, paid });
    draft.put_job(job.clone());
    Ok(Answer::Job { job: Arc::new(job), repeated: false })
}

/// Ends the hold: the earned amount goes to the worker's owner, the rest back to the payer.
pub fn release(draft: &mut Draft<'_>, job: &mut Job, paid: Option<Credits>) -> Result<(), Refusal> {
    if let Some(payer) = job.payer {
        let pay = job.assignment.zip(paid).map(|(turn, paid)| (turn.owner, paid));
        post::resolve(draft, payer, job.held, pay, job.id)?;
        job.held = Credits::ZERO;
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
    let hired_by = match job.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    let hirer = hired_by.and_then(|agent| draft.desk(agent));
    let hirer_score = hirer.map_or(Score::START, |desk| desk.standing.score);
    let cause = if turn.excused { Some(Cause::NoFairTime) } else { cause };
    let to_blame = ok || cause.is_some_and(Cause::blames_worker);
    let counted = to_blame && job.payer != Some(turn.owner);
    let weighs = !is_favour_to_a_stranger(draft, job, turn, cause);
    let (id, now) = (draft.next.outcome, draft.now);
    let assigned_at = job.accepted_at.unwrap_or(turn.since);
    let on_time = now <= job.promised.unwrap_or(job.deadline);
    if to_blame {
        draft.event(Event::AgentJudged { agent: turn.worker, job: job.id, ok });
    }
    let desk = draft.desk_mut(turn.worker);
    desk.judge(ok, (counted, weighs), hirer_score);
    if counted {
        let took = now.since(assigned_at);
        Arc::make_mut(&mut desk.window).push(Seen { ok, on_time, took });
    }
    if counted && weighs && ok {
        Arc::make_mut(&mut desk.patrons).add(job.payer, paid);
    }
    let outcome = Outcome {
        id,
        subject: turn.worker,
        number: desk.standing.outcomes,
        job: job.id,
        hired_by,
        hirer_score,
        ok,
        cause,
        counted,
        weighs,
        paid,
        assigned_at,
        ended_at: now,
        on_time,
        score_after: desk.standing.score,
        before: desk.last_outcome.replace(id),
    };
    draft.outcome(outcome);
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
    let is_free = turn.price.is_zero() || job.policy.unpaid || cause == Some(Cause::Unusable);
    is_free && is_for_a_stranger(draft, job)
}

/// Whether the job has no payer, or a payer that never paid or was paid.
fn is_for_a_stranger(draft: &Draft<'_>, job: &Job) -> bool {
    let payer = job.payer.and_then(|payer| draft.owner(payer));
    payer.is_none_or(|payer| payer.movements == 0)
}

/// Whether a requester without any credits so far could have this worker do it.
pub fn is_free_for_a_stranger(draft: &Draft<'_>, job: &Job, worker: AgentId) -> bool {
    let any_price = matches!(job.selection, Selection::Asked { any_price: true, .. });
    let skill = || draft.agent(worker).and_then(|agent| agent.skill_for(job));
    let asks = any_price && skill().is_some_and(|skill| !skill.price.is_zero());
    let pays = !job.budget.is_zero() || !job.held.is_zero() || asks;
    (!pays || job.policy.unpaid) && is_for_a_stranger(draft, job)
}

/// Notifies the worker, or the invited agents, that the job has ended.
fn tell_workers(draft: &mut Draft<'_>, job: &Job) {
    // An invited agent was never assigned.
    let epoch = job.for_whom().map_or(0, |_| job.epoch);
    let news = News::TakenBack { job: job.id, epoch };
    let workers = job.for_whom().map_or_else(|| job.asked.clone(), |worker| vec![worker]);
    let answered = draft.answered;
    for worker in workers.into_iter().filter(|worker| answered != Some(*worker)) {
        // An agent that was invited at its endpoint is told there that it need not answer.
        let same_words = |agent: &&Agent| {
            let talks = matches!(job.selection, Selection::Asked { .. });
            agent.home == job.origin && talks || agent.terms.urgent_first
        };
        let url = draft.agent(worker).filter(same_words).and_then(Agent::push_url);
        draft.tell_party(worker, news.clone(), url);
    }
}

/// The URL for notices to the requester: the job's callback, if the requester was answered that it
/// has to wait; for a protocol that delivers to its agents throughout, the agent's current
/// endpoint.
pub fn told_at(draft: &Draft<'_>, job: &Job) -> Option<String> {
    let talks = matches!(job.selection, Selection::Asked { .. }) || job.policy.presence_first;
    match &job.requester {
        Requester::Agent(agent) if talks => {
            draft.agent(*agent).filter(|agent| agent.home == job.origin)?.push_url()
        }
        _ => job.callback.clone().filter(|_| job.pending),
    }
}

/// Notifies the requester of the end: in its inbox and at its URL, if it has one.
fn tell_requester(draft: &mut Draft<'_>, job: &Job) {
    let to = match job.requester {
        Requester::Agent(agent) => Some(agent),
        Requester::Guest(_) => None,
    };
    let url = told_at(draft, job);
    let news = News::Ended { job: job.id };
    match to {
        Some(to) if draft.answered == Some(to) => {}
        Some(to) => draft.tell_party(to, news, url),
        None if url.is_some() => drop(draft.tell(None, news, url)),
        None => {}
    }
}

/// Cancels a job, unless a worker has started.
pub fn cancel(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: Canceller,
    reason: Option<String>,
) -> Result<Answer, Refusal> {
    let job = work::find(draft, wanted).ok_or(Refusal::NotYours)?;
    let freely = job.policy.cancel_any_time;
    let allowed = match by {
        Canceller::Agent(agent) => job.asked_by(agent) || freely && job.for_whom() == Some(agent),
        Canceller::Guest => matches!(job.requester, Requester::Guest(_)),
        Canceller::Operator => true,
    };
    if !allowed {
        return Err(Refusal::NotYours);
    }
    if job.state.is_final() || job.has_started() && !freely {
        return Err(Refusal::WrongState { is: job.state });
    }
    let text = match by {
        Canceller::Agent(agent) if !job.asked_by(agent) => "cancelled by its worker",
        Canceller::Agent(_) | Canceller::Guest => "cancelled by requester",
        Canceller::Operator => "cancelled by operator",
    };
    let text = reason.unwrap_or_else(|| text.to_owned());
    let told = draft.answered;
    if let (Canceller::Agent(agent), true) = (by, freely) {
        draft.answered = Some(agent);
    }
    let answer = fail(draft, job, State::Cancelled, Cause::Cancelled, Some(text));
    // The same command may end other jobs of this agent, and those need notices.
    draft.answered = told;
    answer
}

/// Something about the job is due: a lease, a deadline, an auction, the end of a deferral.
pub fn overdue(draft: &mut Draft<'_>, id: JobId) -> Result<Answer, Refusal> {
    let Some(mut job) = draft.job(id).cloned() else { return Ok(Answer::Done) };
    if job.due().is_none_or(|due| draft.now < due) {
        return Ok(Answer::Done);
    }
    let past_deadline = draft.now >= job.deadline;
    match job.state {
        State::Negotiating
            if matches!(job.selection, Selection::Auction { .. }) && !past_deadline =>
        {
            offer::close(draft, job)
        }
        State::Queued if !past_deadline => backoff::over(draft, job),
        State::Deferred { .. } if !past_deadline => {
            let again = job.assignment.map(|turn| crate::world::skills::Candidate {
                agent: turn.worker,
                price: turn.price,
            });
            let Some(worker) = again else { return acceptance::reconsider(draft, job) };
            let (taken, promised) = (job.accepted_at.is_some(), job.promised);
            open::assign(draft, &mut job, worker);
            job.promised = promised.or(job.promised);
            // A worker that accepted and then deferred is not asked to accept again.
            if taken && job.accepted_at.is_none() {
                acceptance::take_on(draft, &mut job, None);
            }
            draft.put_job(job.clone());
            Ok(Answer::Job { job: Arc::new(job), repeated: false })
        }
        State::Assigned | State::Deferred { .. }
            if job.accepted_at.is_none() && job.assignment.is_some() =>
        {
            silent(draft, job, "the agent did not answer in time")
        }
        State::Assigned | State::Running if job.policy.next_when_failed && !past_deadline => {
            grace_period::excuse_silence(draft, &mut job);
            work::failed_turn(draft, job, Cause::TimedOut)
        }
        _ => {
            signed_result::silent(draft, &mut job);
            grace_period::excuse_silence(draft, &mut job);
            let text = Some("no result before the deadline".to_owned());
            fail(draft, job, State::Expired, Cause::TimedOut, text)
        }
    }
}

/// The worker did not accept or decline in time. It never accepted, so its score does not change.
fn silent(draft: &mut Draft<'_>, mut job: Job, text: &str) -> Result<Answer, Refusal> {
    let news = News::TakenBack { job: job.id, epoch: job.epoch };
    if let Some(worker) = job.worker() {
        draft.tell(Some(worker), news, None);
        job.declined.push(worker);
    }
    if job.policy.next_when_declined {
        return work::pass_on(draft, job);
    }
    acceptance::unanswered(draft, job, Cause::NobodyLeft, text.to_owned())
}

/// The operator takes a job away from its worker and assigns it to the next.
pub fn requeue(draft: &mut Draft<'_>, wanted: &JobRef) -> Result<Answer, Refusal> {
    let mut job = work::find(draft, wanted).ok_or(Refusal::NotYours)?;
    if !matches!(job.state, State::Assigned | State::Running | State::Deferred { .. }) {
        return Err(Refusal::WrongState { is: job.state });
    }
    if let Some(worker) = job.worker() {
        job.declined.push(worker);
        draft.tell(Some(worker), News::TakenBack { job: job.id, epoch: job.epoch }, None);
    }
    // An agent the job was only deferred for never had it.
    job.declined.extend(job.waits_for.map(|waits| waits.worker));
    draft.event(Event::JobRequeued { job: job.id });
    work::pass_on_now(draft, job)
}

/// The worker unregistered: its jobs are reassigned, or fail with a refund.
pub fn worker_left(draft: &mut Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    let work: Vec<Arc<Job>> = draft.world.work_of(agent).cloned().collect();
    for job in work {
        let mut job = Job::clone(&job);
        grace_period::excuse_leaving(&mut job);
        if job.accepted_at.is_none() {
            silent(draft, job, "the agent unregistered before it answered")?;
        } else if job.policy.next_when_failed {
            work::failed_turn(draft, job, Cause::WorkerLeft)?;
        } else {
            let text = Some("the agent unregistered".to_owned());
            fail(draft, job, State::Failed, Cause::WorkerLeft, text)?;
        }
    }
    let waiting: Vec<Arc<Job>> = draft.world.waiting_for(agent).cloned().collect();
    for job in waiting {
        acceptance::again(draft, Job::clone(&job), agent)?;
    }
    Ok(())
}

/// The requester unregistered: jobs that are not started are cancelled; the rest is still paid.
pub fn requester_left(draft: &mut Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    let asked: Vec<JobId> = draft.world.asked_by(agent).map(|job| job.id).collect();
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
