//! Signed results: results and failures of invited agents, and cancellation by the requester.

use super::{
    Assignment, Cause, Job, Report, Requester, Selection, State, request, end, grace_period, acceptance, work,
};
use crate::agent::market_totals;
use crate::alias::Digest;
use crate::answer::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::message;
use crate::money::Credits;
use crate::refusal::Refusal;
use crate::signed_order::{GiveResult, GiveUp};

/// Submits a result, or a part of it.
pub fn result(
    draft: &mut Draft<'_>,
    by: AgentId,
    order: GiveResult,
    content: Digest,
) -> Result<Job, Refusal> {
    let mut job = request::find(draft, by, &order.request)?;
    match job.state {
        State::Assigned | State::Running if job.worker() == Some(by) => taken_on(draft, &mut job),
        State::Open if asked_alone(&job, by) => begin(draft, &mut job, by),
        is => return Err(Refusal::WrongState { is }),
    }
    if !order.last {
        return part(draft, job);
    }
    let price = job.assignment.map_or(Credits::ZERO, |turn| turn.price);
    let report = Report {
        ok: true,
        output: Some(order.output),
        paid: price.min(job.held),
        took: work::worked_for(&job, draft.now),
        cause: None,
        text: None,
        words: None,
        content: Some(content),
    };
    ended(end::finish(draft, job, State::Completed, report)?)
}

/// A worker that sends a result has accepted the job, even if it never confirmed.
fn taken_on(draft: &Draft<'_>, job: &mut Job) {
    if job.accepted_at.is_none() {
        acceptance::take_on(draft, job, None);
    }
    grace_period::in_hand(job, draft.now);
}

/// Forwards a partial result unchanged; the job goes on.
fn part(draft: &mut Draft<'_>, mut job: Job) -> Result<Job, Refusal> {
    if let Requester::Agent(requester) = job.requester {
        if message::is_full(draft, requester) {
            return Err(Refusal::InboxFull);
        }
        draft.tell_in_words(requester);
    }
    // The first part is also the first notice that the work has started.
    let is_known = draft.job(job.id).is_some_and(|kept| kept.state == State::Running);
    if !is_known {
        draft.event(Event::JobStarted { job: job.id });
    }
    job.state = State::Running;
    draft.event(Event::JobProgressed { job: job.id });
    draft.put_job(job.clone());
    Ok(job)
}

/// Whether this agent is the only one invited, to work without an offer.
fn asked_alone(job: &Job, by: AgentId) -> bool {
    let offers_only = matches!(job.selection, Selection::Asked { offers_only: true, .. });
    job.asked == [by] && job.declined.is_empty() && !offers_only
}

/// A sole invitee takes the job without making an offer.
pub fn begin(draft: &mut Draft<'_>, job: &mut Job, by: AgentId) {
    let Some(owner) = draft.agent(by).map(|agent| agent.owner) else { return };
    let fair_time = grace_period::time(draft, job, by);
    job.epoch += 1;
    job.accepted_at = Some(job.opened_at);
    job.state = State::Running;
    job.assignment = Some(Assignment {
        worker: by,
        owner,
        price: job.held,
        own: None,
        price_open: false,
        since: job.opened_at,
        until: job.deadline,
        handed_over: true,
        told_at: job.asked_at,
        handed_at: job.read_at.or(Some(draft.now)),
        fair_time,
        excused: false,
    });
    draft.event(Event::JobAssigned { job: job.id, worker: by, epoch: job.epoch });
}

/// The requester cancels its request, or an invited agent declines or fails.
pub fn give_up(draft: &mut Draft<'_>, by: AgentId, order: GiveUp) -> Result<Job, Refusal> {
    let named = request::named_by(draft, by, &order.request.id);
    let known = named.is_some();
    let with = |job: &Job| order.request.with.is_none_or(|with| request::concerns(job, with));
    let own = named.filter(with);
    let asked = request::find(draft, by, &order.request);
    match (own, asked) {
        // Two agents requested jobs of each other under one id: a finished job cannot be meant.
        (Some(own), Ok(job)) if own.state.is_final() => refuse(draft, job, by, order),
        (Some(own), Ok(job)) if job.state.is_final() => take_back(draft, own, order.text),
        (Some(_), Ok(_) | Err(Refusal::Ambiguous)) => Err(Refusal::Ambiguous),
        (Some(own), Err(_)) => take_back(draft, own, order.text),
        (None, Ok(job)) => refuse(draft, job, by, order),
        (None, Err(Refusal::NotYours)) if known => Err(Refusal::WrongParty),
        (None, Err(refusal)) => Err(refusal),
    }
}

fn take_back(draft: &mut Draft<'_>, job: Job, text: String) -> Result<Job, Refusal> {
    if draft.now >= job.deadline && !job.state.is_final() {
        return Err(Refusal::WrongState { is: State::Expired });
    }
    match job.state {
        State::Open | State::Negotiating => {
            ended(end::fail(draft, job, State::Cancelled, Cause::Cancelled, Some(text))?)
        }
        is => Err(Refusal::WrongState { is }),
    }
}

fn refuse(draft: &mut Draft<'_>, mut job: Job, by: AgentId, order: GiveUp) -> Result<Job, Refusal> {
    if !was_asked(&job) {
        return give_back(draft, job, by, order);
    }
    let GiveUp { mut cause, refused, text, .. } = order;
    match job.state {
        State::Assigned | State::Running if job.worker() == Some(by) => {
            // An agent that accepted the job is responsible for its failure.
            if !cause.blames_worker() {
                cause = Cause::Execution;
            }
        }
        State::Open | State::Negotiating if !job.asked.contains(&by) => {
            return Err(Refusal::WrongState { is: job.state });
        }
        State::Open if asked_alone(&job, by) && !refused => begin(draft, &mut job, by),
        State::Open | State::Negotiating if job.asked.len() > 1 => {
            return Ok(leave(draft, job, by));
        }
        State::Open | State::Negotiating => {}
        is => return Err(Refusal::WrongState { is }),
    }
    ended(end::fail(draft, job, State::Failed, cause, Some(text))?)
}

/// A job of another protocol was assigned without invitation; its own policy decides what happens
/// next.
fn give_back(
    draft: &mut Draft<'_>,
    mut job: Job,
    by: AgentId,
    order: GiveUp,
) -> Result<Job, Refusal> {
    let GiveUp { cause, refused, text, .. } = order;
    // An agent that lost an auction can still name the job but may not act on it.
    let holds = job.worker() == Some(by);
    if !holds || !matches!(job.state, State::Assigned | State::Running) {
        return Err(Refusal::WrongState { is: job.state });
    }
    if refused {
        draft.event(Event::JobDeclined { job: job.id, worker: by });
        job.declined.push(by);
        market_totals::declined(draft, by, &job);
    }
    ended(match job.policy {
        policy if refused && policy.next_when_declined => work::pass_on(draft, job)?,
        policy if !refused && policy.next_when_failed => work::failed_turn(draft, job, cause)?,
        _ => {
            // A refusal is not the worker's failure, whatever reason it gives.
            if refused && cause.blames_worker() {
                job.unassign();
            }
            end::fail(draft, job, State::Failed, cause, Some(text))?
        }
    })
}

fn was_asked(job: &Job) -> bool {
    matches!(job.selection, Selection::Asked { .. })
}

/// One of several invited agents declines; the others stay invited.
fn leave(draft: &mut Draft<'_>, mut job: Job, by: AgentId) -> Job {
    job.asked.retain(|one| *one != by);
    job.declined.push(by);
    market_totals::declined(draft, by, &job);
    draft.event(Event::JobDeclined { job: job.id, worker: by });
    draft.put_job(job.clone());
    job
}

/// The deadline of a job without any answer passed. A sole invitee is responsible if it had read
/// the request and its grace period has passed since. Without that condition, a requester could
/// ruin an agent's reputation with requests that cannot be answered.
pub fn silent(draft: &mut Draft<'_>, job: &mut Job) {
    let asked = was_asked(job) && job.state == State::Open && job.declined.is_empty();
    let ([only], Some(read_at), true) = (&job.asked[..], job.read_at, asked) else { return };
    if draft.now.since(read_at) >= grace_period::time(draft, job, *only) {
        begin(draft, job, *only);
    }
}

fn ended(answer: Answer) -> Result<Job, Refusal> {
    match answer {
        Answer::Job { job, .. } => Ok(Job::clone(&job)),
        _ => Err(Refusal::NotYours),
    }
}
