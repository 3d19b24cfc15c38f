//! Acceptance: responses of agents that confirm jobs themselves, and approvals of jobs that need
//! one.

use std::sync::Arc;

use uuid::Uuid;

use super::{
    Cause, Job, PendingAssignment, Selection, State, backoff, end, grace_period, open, readiness,
    work,
};
use crate::agent::market_totals;
use crate::alias::{ClaimTarget, claim};
use crate::answer::Answer;
use crate::command::{Approver, JobRef, WorkerResponse};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::message;
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};
use crate::world::skills::Candidate;

/// How long after its own promised time a worker may still deliver.
pub const LATENESS_MAX: Millis = Millis::minutes(10);
/// How soon an approved job is retried while its worker has no capacity.
const CAPACITY_RETRY_DELAY: Millis = Millis::seconds(5);

/// The agent accepts, refuses or defers the job.
pub fn respond(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    said: WorkerResponse,
) -> Result<Answer, Refusal> {
    let mut job = work::find_assigned_job(draft, wanted, by)?;
    if job.state != State::Assigned || job.acceptance.accepted_at.is_some() {
        return Err(Refusal::WrongState { state: job.state });
    }
    if draft.now >= job.request.deadline {
        return Err(Refusal::WrongState { state: State::Expired });
    }
    message::knows_work(draft, by);
    match said {
        WorkerResponse::Accept { ready_at, worker_job_id: called } => {
            if let Some(name) = called.filter(|name| *name != job.uuid) {
                set_worker_job_id(draft, &mut job, name)?;
            }
            Ok(accept(draft, job, ready_at))
        }
        WorkerResponse::Refuse { cause, text, words } => {
            draft.add_event(Event::JobDeclined { job: job.id, worker: by });
            job.candidates.declined.push(by);
            market_totals::record_declined(draft, by, &job);
            if job.policy.reassignment.when_declined {
                return work::reassign(draft, job);
            }
            job.unassign();
            end::fail_with_meta(draft, job, cause, text, words)
        }
        WorkerResponse::Defer { until } => {
            if until <= draft.now {
                return Err(Refusal::DeadlineTooSoon);
            }
            // An approval, once given, stays valid.
            let skill = draft.agent(by).and_then(|agent| agent.skill_for(&job));
            let agreed = skill.is_some_and(|skill| skill.needs_approval);
            job.candidates.pending_assignment =
                Some(PendingAssignment { worker: by, needs_approval: false, approved: agreed });
            let until = backoff::extend_deferral(draft, &mut job, until);
            readiness::defer(draft, &mut job, by, readiness::StartCondition::OnReturn(until));
            Ok(put(draft, job))
        }
    }
}

/// Adds the worker's own id for the job as a claim.
fn set_worker_job_id(draft: &mut Draft<'_>, job: &mut Job, name: Uuid) -> Result<(), Refusal> {
    let digest = claim::job_uuid(name);
    match draft.claim_target(digest) {
        None => draft.add_claim(digest, ClaimTarget::Job(job.id)),
        // After a deferral the worker may reuse the id it chose before.
        Some(ClaimTarget::Job(known)) if known == job.id => {}
        Some(_) => return Err(Refusal::IdTaken),
    }
    job.acceptance.worker_job_id = Some(name);
    Ok(())
}

fn accept(draft: &mut Draft<'_>, mut job: Job, ready_at: Option<Timestamp>) -> Answer {
    mark_accepted(draft, &mut job, ready_at);
    job.state = State::Running;
    job.pending = true;
    draft.add_event(Event::JobStarted { job: job.id });
    notify_accepted(draft, &job);
    put(draft, job)
}

/// Marks the job as accepted by its worker and starts its lease.
pub fn mark_accepted(draft: &Draft<'_>, job: &mut Job, ready_at: Option<Timestamp>) {
    job.acceptance.accepted_at = Some(draft.now);
    job.acceptance.ready_at = ready_at;
    // The worker's own time counts before the expected duration of the skill.
    job.acceptance.promised = job.request.wanted_by.or(ready_at).or(job.acceptance.promised);
    // A worker that names its own time is overdue only well after that.
    let until = match (job.request.wanted_by, ready_at) {
        (None, Some(ready)) => ready.max(draft.now).plus(LATENESS_MAX),
        _ => draft.now.plus(job.request.lease),
    };
    if let Some(turn) = &mut job.assignment {
        turn.until = until.min(job.request.deadline);
        turn.handed_over = true;
    }
    grace_period::mark_received(job, draft.now);
}

/// A deferred job has a worker now; notifies a requester that waits for it.
pub fn notify_accepted(draft: &mut Draft<'_>, job: &Job) {
    if let super::Requester::Agent(requester) = job.request.requester
        && !job.policy.requester.follows_log
    {
        let url = end::notify_url(draft, job);
        draft.notify(Some(requester), NoticeKind::Accepted { job: job.id }, url);
    }
}

/// Ends a job that was never accepted. It is not a worker's failure.
pub fn fail_unaccepted(
    draft: &mut Draft<'_>,
    mut job: Job,
    cause: Cause,
    text: String,
) -> Result<Answer, Refusal> {
    job.unassign();
    end::fail(draft, job, State::Failed, cause, Some(text))
}

/// Approves or rejects a job.
pub fn approve(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: Approver,
    yes: bool,
) -> Result<Answer, Refusal> {
    let mut job = work::find_job(draft, wanted).ok_or(Refusal::NotFound)?;
    let worker = job.candidates.pending_assignment.map(|waits| waits.worker).or(job.worker());
    let may = match by {
        Approver::Agent(agent) => worker == Some(agent),
        Approver::Operator => true,
    };
    if !may {
        return Err(Refusal::NotFound);
    }
    let (Some(PendingAssignment { worker, needs_approval: true, .. }), State::Deferred { .. }) =
        (job.candidates.pending_assignment, job.state)
    else {
        return Err(Refusal::WrongState { state: job.state });
    };
    if !yes {
        return fail_unaccepted(draft, job, Cause::Policy, "approval was refused".to_owned());
    }
    job.candidates.pending_assignment =
        Some(PendingAssignment { worker, needs_approval: false, approved: true });
    retry_worker(draft, job, worker)
}

/// A deferral has ended: assigns the job, defers it again or fails it.
pub fn retry_deferred(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    match job.candidates.pending_assignment {
        Some(PendingAssignment { needs_approval: true, .. }) => {
            fail_unaccepted(draft, job, Cause::Policy, "approval timed out".to_owned())
        }
        Some(PendingAssignment { worker, .. }) => retry_worker(draft, job, worker),
        None => work::reassign(draft, job),
    }
}

/// Checks again whether a worker can take the job.
pub fn retry_worker(
    draft: &mut Draft<'_>,
    mut job: Job,
    worker: AgentId,
) -> Result<Answer, Refusal> {
    let agreed = job.candidates.pending_assignment.is_some_and(|waits| waits.approved);
    match check_and_hold(draft, &mut job, worker) {
        Ok((_, readiness::StartCondition::Never)) => {
            job.unassign();
            let (text, flaw) = (
                "the input does not match the worker's input schema".to_owned(),
                job.request.input_error.take(),
            );
            end::fail_with_meta(draft, job, Cause::Unusable, text, flaw)
        }
        Ok((price, readiness::StartCondition::Now)) => {
            open::assign(draft, &mut job, Candidate { agent: worker, price });
            if job.acceptance.accepted_at.is_some() {
                notify_accepted(draft, &job);
            }
            Ok(put(draft, job))
        }
        Ok((price, when)) => {
            open::agree_price(draft, &mut job, Candidate { agent: worker, price });
            readiness::defer(draft, &mut job, worker, when);
            Ok(put(draft, job))
        }
        // An approval is not lost because the worker has no capacity.
        Err(Refusal::AtCapacity | Refusal::AtRateLimit | Refusal::InboxFull) if agreed => {
            let back = readiness::StartCondition::OnReturn(draft.now.plus(CAPACITY_RETRY_DELAY));
            readiness::defer(draft, &mut job, worker, back);
            Ok(put(draft, job))
        }
        // A named worker is not replaced by another.
        Err(refusal) if matches!(job.selection, Selection::Direct(_)) => {
            fail_unaccepted(draft, job, cause_of(&refusal), refusal.to_string())
        }
        Err(_) => {
            job.candidates.declined.push(worker);
            work::reassign(draft, job)
        }
    }
}

/// When and at what price the worker can start the job. Holds the budget for it.
fn check_and_hold(
    draft: &mut Draft<'_>,
    job: &mut Job,
    worker: AgentId,
) -> Result<(Credits, readiness::StartCondition), Refusal> {
    let price = current_price(draft, job, worker).ok_or(Refusal::SkillNotOffered)?;
    let when = match job.policy.requester.answered_at_once {
        true => Some(readiness::start_condition(draft, job, worker)?),
        false => None,
    };
    if price > job.max_payment() && when != Some(readiness::StartCondition::Never) {
        return Err(Refusal::BudgetTooLow { price });
    }
    let when = when.map_or_else(|| readiness::start_condition(draft, job, worker), Ok)?;
    hold_if_started(draft, job, when)?;
    Ok((price, when))
}

/// Holds the budget once a worker starts, or would start with approval. A job that waits for a
/// worker that is away may wait without a hold.
fn hold_if_started(
    draft: &mut Draft<'_>,
    job: &mut Job,
    when: readiness::StartCondition,
) -> Result<(), Refusal> {
    let away =
        matches!(when, readiness::StartCondition::OnReturn(_) | readiness::StartCondition::Never)
            && job.policy.requester.answered_at_once;
    if !away && job.payment.held.is_zero() && !matches!(job.selection, Selection::Invited { .. }) {
        open::hold_budget(draft, job)?;
    }
    Ok(())
}

/// The worker's price: the agreed one, or its current one. `None` if it no longer offers the skill.
fn current_price(draft: &Draft<'_>, job: &Job, worker: AgentId) -> Option<Credits> {
    if let Selection::Invited { .. } = job.selection {
        return Some(job.payment.held);
    }
    let agreed = job.agreed_price_with(worker).map(|agreed| agreed.price);
    match agreed.filter(|_| job.selection.is_by_offers()) {
        Some(price) => Some(price),
        None => {
            let skill = draft.agent(worker)?.skill_for(job)?;
            Some(agreed.unwrap_or_else(|| job.payment.price_step.round_price(skill.price)))
        }
    }
}

/// The agent is back: retries the jobs deferred for it, the most urgent first. Jobs that need
/// approval keep waiting for it.
pub fn retry_deferred_jobs_of(draft: &mut Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    let for_it = |job: &&Arc<Job>| {
        job.candidates.pending_assignment.is_some_and(|waits| !waits.needs_approval)
    };
    let mut waiting: Vec<Arc<Job>> =
        draft.world.deferred_jobs_for(agent).filter(for_it).cloned().collect();
    waiting.sort_by_key(|job| (job.request.priority, job.id));
    for job in waiting {
        retry_deferred(draft, Job::clone(&job))?;
    }
    Ok(())
}

fn cause_of(refusal: &Refusal) -> Cause {
    match refusal {
        Refusal::NoSuchSkill
        | Refusal::SkillNotOffered
        | Refusal::NoSuchAgent
        | Refusal::AgentBroken => Cause::NoSuchSkill,
        Refusal::BudgetTooLow { .. } => Cause::BudgetTooLow,
        Refusal::DeadlineTooSoon => Cause::TimedOut,
        Refusal::TooFewCredits
        | Refusal::OverLimit { .. }
        | Refusal::NotAuthenticated
        | Refusal::GuestCannotPay => Cause::Payment,
        _ => Cause::Offline,
    }
}

fn put(draft: &mut Draft<'_>, job: Job) -> Answer {
    let job = draft.put_job(job);
    Answer::Job { job, repeated: false }
}

/// Holds the budget for the first chosen worker, then assigns or defers the job.
pub fn hold_and_assign(
    draft: &mut Draft<'_>,
    job: &mut Job,
    chosen: Candidate,
) -> Result<(), Refusal> {
    let when = readiness::start_condition(draft, job, chosen.agent)?;
    hold_if_started(draft, job, when)?;
    assign_or_defer(draft, job, chosen)
}

/// Assigns the job to the chosen worker, or defers it until the worker can start.
pub fn assign_or_defer(
    draft: &mut Draft<'_>,
    job: &mut Job,
    chosen: Candidate,
) -> Result<(), Refusal> {
    match readiness::start_condition(draft, job, chosen.agent)? {
        readiness::StartCondition::Now => open::assign(draft, job, chosen),
        when => {
            open::agree_price(draft, job, chosen);
            readiness::defer(draft, job, chosen.agent, when);
        }
    }
    Ok(())
}
