//! Abandoning a job: an agent declines or fails, or the requester cancels, by a job's id among its
//! parties. Also what a sole invitee may do without an offer.

use super::{Assignment, Cause, Job, Selection, State, end, grace_period, request, work};
use crate::agent::market_totals;
use crate::answer::Answer;
use crate::command::AbandonJob;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::refusal::Refusal;

/// Whether this agent is the only one invited, to work without an offer.
pub fn is_sole_invitee(job: &Job, by: AgentId) -> bool {
    let offers_only = matches!(job.selection, Selection::Invited { offers_only: true, .. });
    job.candidates.invited == [by] && job.candidates.declined.is_empty() && !offers_only
}

/// A sole invitee takes the job without making an offer.
pub fn assign_sole_invitee(draft: &mut Draft<'_>, job: &mut Job, by: AgentId) {
    let Some(owner) = draft.agent(by).map(|agent| agent.owner) else { return };
    let fair_time = grace_period::period_for(draft, job, by);
    job.progress.restart();
    job.epoch += 1;
    job.acceptance.accepted_at = Some(job.request.opened_at);
    job.state = State::Running;
    job.assignment = Some(Assignment {
        worker: by,
        owner,
        price: job.payment.held,
        own: None,
        price_open: false,
        since: job.request.opened_at,
        until: job.request.deadline,
        handed_over: true,
        inbox_position: job.candidates.invitation_position,
        received_at: job.candidates.read_at.or(Some(draft.now)),
        grace_period: fair_time,
        excused: false,
    });
    draft.add_event(Event::JobAssigned { job: job.id, worker: by, epoch: job.epoch });
}

/// The requester cancels its request, or an invited agent declines or fails.
pub fn abandon_job(draft: &mut Draft<'_>, order: AbandonJob) -> Result<Answer, Refusal> {
    let by = order.by;
    let named = request::find_by_requester_id(draft, by, &order.request.id);
    let is_known = named.is_some();
    let has_counterparty =
        |job: &Job| order.request.counterparty.is_none_or(|other| request::involves(job, other));
    let own = named.filter(has_counterparty);
    let invited = request::find_request(draft, by, &order.request);
    match (own, invited) {
        // Two agents requested jobs of each other under one id: a finished job cannot be meant.
        (Some(own), Ok(job)) if own.state.is_final() => decline_or_fail(draft, job, by, order),
        (Some(own), Ok(job)) if job.state.is_final() => cancel_request(draft, own, order.text),
        (Some(_), Ok(_) | Err(Refusal::Ambiguous)) => Err(Refusal::Ambiguous),
        (Some(own), Err(_)) => cancel_request(draft, own, order.text),
        (None, Ok(job)) => decline_or_fail(draft, job, by, order),
        (None, Err(Refusal::NotFound)) if is_known => Err(Refusal::WrongParty),
        (None, Err(refusal)) => Err(refusal),
    }
}

fn cancel_request(draft: &mut Draft<'_>, job: Job, text: String) -> Result<Answer, Refusal> {
    if draft.now >= job.request.deadline && !job.state.is_final() {
        return Err(Refusal::WrongState { state: State::Expired });
    }
    match job.state {
        State::Open | State::Negotiating => {
            end::fail(draft, job, State::Cancelled, Cause::Cancelled, Some(text))
        }
        is => Err(Refusal::WrongState { state: is }),
    }
}

fn decline_or_fail(
    draft: &mut Draft<'_>,
    mut job: Job,
    by: AgentId,
    order: AbandonJob,
) -> Result<Answer, Refusal> {
    if !is_by_invitation(&job) {
        return return_assigned_job(draft, job, by, order);
    }
    let AbandonJob { mut cause, refused, text, .. } = order;
    match job.state {
        state if state.is_assigned() && job.worker() == Some(by) => {
            // An agent that accepted the job is responsible for its failure.
            if !cause.is_worker_failure() {
                cause = Cause::Execution;
            }
        }
        State::Open | State::Negotiating if !job.candidates.invited.contains(&by) => {
            return Err(Refusal::WrongState { state: job.state });
        }
        State::Open if is_sole_invitee(&job, by) && !refused => {
            assign_sole_invitee(draft, &mut job, by)
        }
        State::Open | State::Negotiating if job.candidates.invited.len() > 1 => {
            return Ok(remove_invitee(draft, job, by));
        }
        State::Open | State::Negotiating => {}
        is => return Err(Refusal::WrongState { state: is }),
    }
    end::fail(draft, job, State::Failed, cause, Some(text))
}

/// A job of another protocol was assigned without invitation; its own policy decides what happens
/// next.
fn return_assigned_job(
    draft: &mut Draft<'_>,
    mut job: Job,
    by: AgentId,
    order: AbandonJob,
) -> Result<Answer, Refusal> {
    let AbandonJob { cause, refused, text, .. } = order;
    // An agent that lost an auction can still name the job but may not act on it.
    let holds = job.worker() == Some(by);
    if !holds || !job.state.is_assigned() {
        return Err(Refusal::WrongState { state: job.state });
    }
    if refused {
        draft.add_event(Event::JobDeclined { job: job.id, worker: by });
        job.candidates.declined.push(by);
        market_totals::record_declined(draft, by, &job);
    }
    if refused && job.policy.reassignment.when_declined {
        return work::reassign(draft, job);
    }
    if !refused && job.policy.reassignment.when_failed {
        return work::fail_assignment(draft, job, cause);
    }
    // A refusal is not the worker's failure, whatever reason it gives.
    if refused && cause.is_worker_failure() {
        job.unassign();
    }
    end::fail(draft, job, State::Failed, cause, Some(text))
}

fn is_by_invitation(job: &Job) -> bool {
    matches!(job.selection, Selection::Invited { .. })
}

/// One of several invited agents declines; the others stay invited.
fn remove_invitee(draft: &mut Draft<'_>, mut job: Job, by: AgentId) -> Answer {
    job.candidates.invited.retain(|one| *one != by);
    job.candidates.declined.push(by);
    market_totals::record_declined(draft, by, &job);
    draft.add_event(Event::JobDeclined { job: job.id, worker: by });
    let job = draft.put_job(job);
    Answer::Job { job, repeated: false }
}

/// The deadline of a job without any answer passed. A sole invitee is responsible if it had read
/// the request and its grace period has passed since. Without that condition, a requester could
/// ruin an agent's reputation with requests that cannot be answered.
pub fn assign_silent_invitee(draft: &mut Draft<'_>, job: &mut Job) {
    let asked =
        is_by_invitation(job) && job.state == State::Open && job.candidates.declined.is_empty();
    let ([only], Some(read_at), true) =
        (&job.candidates.invited[..], job.candidates.read_at, asked)
    else {
        return;
    };
    if draft.now.since(read_at) >= grace_period::period_for(draft, job, *only) {
        assign_sole_invitee(draft, job, *only);
    }
}
