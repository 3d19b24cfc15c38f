//! Acceptance: responses of agents that confirm jobs themselves, and approvals of jobs that need
//! one.

use std::sync::Arc;

use uuid::Uuid;

use super::{Cause, Job, Selection, State, Waiting, end, grace_period, readiness, open, backoff, work};
use crate::agent::market_totals;
use crate::alias::{Target, claim};
use crate::answer::Answer;
use crate::command::{Approver, JobRef, Response};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::message;
use crate::money::Credits;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};
use crate::world::skills::Candidate;

/// How long after its own promised time a worker may still deliver.
pub const PATIENCE: Millis = Millis::minutes(10);
/// How soon an approved job is retried while its worker has no capacity.
const NO_ROOM_YET: Millis = Millis::seconds(5);

/// The agent accepts, refuses or defers the job.
pub fn respond(
    draft: &mut Draft<'_>,
    wanted: &JobRef,
    by: AgentId,
    said: Response,
) -> Result<Answer, Refusal> {
    let mut job = work::held_by(draft, wanted, by)?;
    if job.state != State::Assigned || job.accepted_at.is_some() {
        return Err(Refusal::WrongState { is: job.state });
    }
    if draft.now >= job.deadline {
        return Err(Refusal::WrongState { is: State::Expired });
    }
    message::knows_work(draft, by);
    match said {
        Response::Accept { ready_at, called } => {
            if let Some(name) = called.filter(|name| *name != job.uuid) {
                call(draft, &mut job, name)?;
            }
            Ok(accept(draft, job, ready_at))
        }
        Response::Refuse { cause, text, words } => {
            draft.event(Event::JobDeclined { job: job.id, worker: by });
            job.declined.push(by);
            market_totals::declined(draft, by, &job);
            if job.policy.next_when_declined {
                return work::pass_on(draft, job);
            }
            job.unassign();
            end::fail_in_words(draft, job, cause, text, words)
        }
        Response::Defer { until } => {
            if until <= draft.now {
                return Err(Refusal::DeadlineTooSoon);
            }
            // An approval, once given, stays valid.
            let skill = draft.agent(by).and_then(|agent| agent.skill_for(&job));
            let agreed = skill.is_some_and(|skill| skill.approval);
            job.waits_for = Some(Waiting { worker: by, approval: false, agreed });
            let until = backoff::put_off(draft, &mut job, until);
            readiness::put_off(draft, &mut job, by, readiness::When::Back(until));
            Ok(put(draft, job))
        }
    }
}

/// Adds the worker's own id for the job as a claim.
fn call(draft: &mut Draft<'_>, job: &mut Job, name: Uuid) -> Result<(), Refusal> {
    let digest = claim::job_uuid(name);
    match draft.claimed(digest) {
        None => draft.claim(digest, Target::Job(job.id)),
        // After a deferral the worker may reuse the id it chose before.
        Some(Target::Job(known)) if known == job.id => {}
        Some(_) => return Err(Refusal::IdTaken),
    }
    job.called = Some(name);
    Ok(())
}

fn accept(draft: &mut Draft<'_>, mut job: Job, ready_at: Option<Timestamp>) -> Answer {
    take_on(draft, &mut job, ready_at);
    job.state = State::Running;
    job.pending = true;
    draft.event(Event::JobStarted { job: job.id });
    tell_accepted(draft, &job);
    put(draft, job)
}

/// Marks the job as accepted by its worker and starts its lease.
pub fn take_on(draft: &Draft<'_>, job: &mut Job, ready_at: Option<Timestamp>) {
    job.accepted_at = Some(draft.now);
    job.ready_at = ready_at;
    // The worker's own time counts before the expected duration of the skill.
    job.promised = job.wanted.or(ready_at).or(job.promised);
    // A worker that names its own time is overdue only well after that.
    let until = match (job.wanted, ready_at) {
        (None, Some(ready)) => ready.max(draft.now).plus(PATIENCE),
        _ => draft.now.plus(job.lease),
    };
    if let Some(turn) = &mut job.assignment {
        turn.until = until.min(job.deadline);
        turn.handed_over = true;
    }
    grace_period::in_hand(job, draft.now);
}

/// A deferred job has a worker now; notifies a requester that waits for it.
pub fn tell_accepted(draft: &mut Draft<'_>, job: &Job) {
    if let super::Requester::Agent(requester) = job.requester {
        let url = end::told_at(draft, job);
        draft.tell(Some(requester), News::Accepted { job: job.id }, url);
    }
}

/// Ends a job that was never accepted. It is not a worker's failure.
pub fn unanswered(
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
    let mut job = work::find(draft, wanted).ok_or(Refusal::NotYours)?;
    let worker = job.waits_for.map(|waits| waits.worker).or(job.worker());
    let may = match by {
        Approver::Agent(agent) => worker == Some(agent),
        Approver::Operator => true,
    };
    if !may {
        return Err(Refusal::NotYours);
    }
    let (Some(Waiting { worker, approval: true, .. }), State::Deferred { .. }) =
        (job.waits_for, job.state)
    else {
        return Err(Refusal::WrongState { is: job.state });
    };
    if !yes {
        return unanswered(draft, job, Cause::Policy, "approval was refused".to_owned());
    }
    job.waits_for = Some(Waiting { worker, approval: false, agreed: true });
    again(draft, job, worker)
}

/// A deferral has ended: assigns the job, defers it again or fails it.
pub fn reconsider(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    match job.waits_for {
        Some(Waiting { approval: true, .. }) => {
            unanswered(draft, job, Cause::Policy, "approval timed out".to_owned())
        }
        Some(Waiting { worker, .. }) => again(draft, job, worker),
        None => work::pass_on(draft, job),
    }
}

/// Checks again whether a worker can take the job.
pub fn again(draft: &mut Draft<'_>, mut job: Job, worker: AgentId) -> Result<Answer, Refusal> {
    let agreed = job.waits_for.is_some_and(|waits| waits.agreed);
    match fits(draft, &mut job, worker) {
        Ok((_, readiness::When::Never)) => {
            job.unassign();
            let (text, flaw) =
                ("the input does not match the worker's input schema".to_owned(), job.flaw.take());
            end::fail_in_words(draft, job, Cause::Unusable, text, flaw)
        }
        Ok((price, readiness::When::Now)) => {
            open::assign(draft, &mut job, Candidate { agent: worker, price });
            if job.accepted_at.is_some() {
                tell_accepted(draft, &job);
            }
            Ok(put(draft, job))
        }
        Ok((price, when)) => {
            open::agree(draft, &mut job, Candidate { agent: worker, price });
            readiness::put_off(draft, &mut job, worker, when);
            Ok(put(draft, job))
        }
        // An approval is not lost because the worker has no capacity.
        Err(Refusal::AtCapacity | Refusal::TooFast | Refusal::InboxFull) if agreed => {
            let back = readiness::When::Back(draft.now.plus(NO_ROOM_YET));
            readiness::put_off(draft, &mut job, worker, back);
            Ok(put(draft, job))
        }
        // A named worker is not replaced by another.
        Err(refusal) if matches!(job.selection, Selection::Direct(_)) => {
            unanswered(draft, job, cause_of(&refusal), refusal.to_string())
        }
        Err(_) => {
            job.declined.push(worker);
            work::pass_on(draft, job)
        }
    }
}

/// When and at what price the worker can start the job. Holds the budget for it.
fn fits(
    draft: &mut Draft<'_>,
    job: &mut Job,
    worker: AgentId,
) -> Result<(Credits, readiness::When), Refusal> {
    let price = price(draft, job, worker).ok_or(Refusal::SkillNotOffered)?;
    let when = match job.policy.presence_first {
        true => Some(readiness::when(draft, job, worker)?),
        false => None,
    };
    if price > job.purse() && when != Some(readiness::When::Never) {
        return Err(Refusal::BudgetTooLow { price });
    }
    let when = when.map_or_else(|| readiness::when(draft, job, worker), Ok)?;
    hold(draft, job, when)?;
    Ok((price, when))
}

/// Holds the budget once a worker starts, or would start with approval. A job that waits for a
/// worker that is away may wait without a hold.
fn hold(draft: &mut Draft<'_>, job: &mut Job, when: readiness::When) -> Result<(), Refusal> {
    let away = matches!(when, readiness::When::Back(_) | readiness::When::Never) && job.policy.presence_first;
    if !away && job.held.is_zero() && !matches!(job.selection, Selection::Asked { .. }) {
        open::set_aside(draft, job)?;
    }
    Ok(())
}

/// The worker's price: the agreed one, or its current one. `None` if it no longer offers the skill.
fn price(draft: &Draft<'_>, job: &Job, worker: AgentId) -> Option<Credits> {
    if let Selection::Asked { .. } = job.selection {
        return Some(job.held);
    }
    let agreed = job.agreed_with(worker).map(|agreed| agreed.price);
    match agreed.filter(|_| job.selection.is_by_offers()) {
        Some(price) => Some(price),
        None => {
            let skill = draft.agent(worker)?.skill_for(job)?;
            Some(agreed.unwrap_or_else(|| job.grain.shown(skill.price)))
        }
    }
}

/// The agent is back: retries the jobs deferred for it, the most urgent first. Jobs that need
/// approval keep waiting for it.
pub fn welcome_back(draft: &mut Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    let for_it = |job: &&Arc<Job>| job.waits_for.is_some_and(|waits| !waits.approval);
    let mut waiting: Vec<Arc<Job>> =
        draft.world.waiting_for(agent).filter(for_it).cloned().collect();
    waiting.sort_by_key(|job| (job.priority, job.id));
    for job in waiting {
        reconsider(draft, Job::clone(&job))?;
    }
    Ok(())
}

fn cause_of(refusal: &Refusal) -> Cause {
    match refusal {
        Refusal::NoSuchSkill
        | Refusal::SkillNotOffered
        | Refusal::NoSuchAgent
        | Refusal::OutOfOrder => Cause::NoSuchSkill,
        Refusal::BudgetTooLow { .. } => Cause::BudgetTooLow,
        Refusal::DeadlineTooSoon => Cause::TimedOut,
        Refusal::TooFewCredits | Refusal::GuestCannotPay => Cause::Payment,
        _ => Cause::Offline,
    }
}

fn put(draft: &mut Draft<'_>, job: Job) -> Answer {
    draft.put_job(job.clone());
    Answer::Job { job: Arc::new(job), repeated: false }
}

/// Holds the budget for the first chosen worker, then assigns or defers the job.
pub fn begin(draft: &mut Draft<'_>, job: &mut Job, chosen: Candidate) -> Result<(), Refusal> {
    let when = readiness::when(draft, job, chosen.agent)?;
    hold(draft, job, when)?;
    give(draft, job, chosen)
}

/// Assigns the job to the chosen worker, or defers it until the worker can start.
pub fn give(draft: &mut Draft<'_>, job: &mut Job, chosen: Candidate) -> Result<(), Refusal> {
    match readiness::when(draft, job, chosen.agent)? {
        readiness::When::Now => open::assign(draft, job, chosen),
        when => {
            open::agree(draft, job, chosen);
            readiness::put_off(draft, job, chosen.agent, when);
        }
    }
    Ok(())
}
