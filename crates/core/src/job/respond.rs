//! Responses: what an agent that answers for itself says to a job, and what people say who have to
//! agree to one.

use std::sync::Arc;

use super::{Cause, Job, Selection, State, Waiting, end, fit, open, work};
use crate::answer::Answer;
use crate::command::{Approver, JobRef, Response};
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::money::Credits;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::time::Timestamp;
use crate::world::skills::Candidate;

/// The agent says whether it takes the job.
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
    match said {
        Response::Accept { ready_at } => Ok(accept(draft, job, ready_at)),
        Response::Refuse { cause, text } => {
            draft.event(Event::JobDeclined { job: job.id, worker: by });
            job.declined.push(by);
            if job.policy.next_when_declined {
                return work::pass_on(draft, job);
            }
            unanswered(draft, job, cause, text)
        }
        Response::Defer { until } => {
            if until <= draft.now {
                return Err(Refusal::DeadlineTooSoon);
            }
            // A yes that was given once holds.
            let skill = draft.agent(by).and_then(|agent| agent.skill(&job.skill));
            let agreed = skill.is_some_and(|skill| skill.approval);
            job.waits_for = Some(Waiting { worker: by, approval: false, agreed });
            fit::put_off(draft, &mut job, by, fit::When::Back(until));
            Ok(put(draft, job))
        }
    }
}

fn accept(draft: &mut Draft<'_>, mut job: Job, ready_at: Option<Timestamp>) -> Answer {
    take_on(draft, &mut job, ready_at);
    job.state = State::Running;
    job.pending = true;
    draft.event(Event::JobStarted { job: job.id });
    tell_accepted(draft, &job);
    put(draft, job)
}

/// Somebody who answers for itself has the job from now on, and the time to do it.
pub fn take_on(draft: &Draft<'_>, job: &mut Job, ready_at: Option<Timestamp>) {
    job.accepted_at = Some(draft.now);
    job.promised = job.promised.or(ready_at);
    if let Some(turn) = &mut job.assignment {
        turn.until = draft.now.plus(job.lease).min(job.deadline);
        turn.handed_over = true;
    }
}

/// A job that was put off has a worker now; whoever waits for the word is told.
pub fn tell_accepted(draft: &mut Draft<'_>, job: &Job) {
    if let super::Requester::Agent(requester) = job.requester {
        let url = end::told_at(draft, job);
        draft.tell(Some(requester), News::Accepted { job: job.id }, url);
    }
}

/// Ends a job that nobody ever took on; nobody is to blame for it.
pub fn unanswered(
    draft: &mut Draft<'_>,
    mut job: Job,
    cause: Cause,
    text: String,
) -> Result<Answer, Refusal> {
    job.unassign();
    end::fail(draft, job, State::Failed, cause, Some(text))
}

/// Somebody who may agree to a job says yes or no.
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

/// What a job was put off for is over: now, later once more, or not at all.
pub fn reconsider(draft: &mut Draft<'_>, job: Job) -> Result<Answer, Refusal> {
    match job.waits_for {
        Some(Waiting { approval: true, .. }) => {
            unanswered(draft, job, Cause::Policy, "nobody approved it in time".to_owned())
        }
        Some(Waiting { worker, .. }) => again(draft, job, worker),
        None => work::pass_on(draft, job),
    }
}

/// Looks at a worker once more, as if the job had just been asked of it.
pub fn again(draft: &mut Draft<'_>, mut job: Job, worker: AgentId) -> Result<Answer, Refusal> {
    let fits = price(draft, &job, worker).ok_or(Refusal::NoSuchSkill).and_then(|price| {
        if price > job.purse() {
            return Err(Refusal::BudgetTooLow { price });
        }
        Ok((price, fit::when(draft, &job, worker)?))
    });
    match fits {
        Ok((price, fit::When::Now)) => {
            open::assign(draft, &mut job, Candidate { agent: worker, price });
            if job.accepted_at.is_some() {
                tell_accepted(draft, &job);
            }
            Ok(put(draft, job))
        }
        Ok((_, when)) => {
            fit::put_off(draft, &mut job, worker, when);
            Ok(put(draft, job))
        }
        // One that was named is not replaced by another.
        Err(refusal) if matches!(job.selection, Selection::Direct(_)) => {
            unanswered(draft, job, cause_of(&refusal), refusal.to_string())
        }
        Err(_) => {
            job.declined.push(worker);
            work::pass_on(draft, job)
        }
    }
}

/// What the worker gets: what was agreed on, or what it asks now.
fn price(draft: &Draft<'_>, job: &Job, worker: AgentId) -> Option<Credits> {
    let own = job.offers.iter().filter(|offer| offer.by == worker).map(|offer| offer.price);
    let listed = || draft.agent(worker)?.skill(&job.skill).map(|skill| skill.price);
    match job.selection {
        Selection::Asked { .. } => Some(job.held),
        Selection::Auction { .. } => own.min().or_else(listed),
        _ => listed(),
    }
}

/// The agent is back: what was put off for it is looked at again, the most urgent first. What
/// waits for a yes goes on waiting for it.
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
        Refusal::NoSuchSkill | Refusal::NoSuchAgent | Refusal::OutOfOrder => Cause::NoSuchSkill,
        Refusal::BudgetTooLow { .. } => Cause::BudgetTooLow,
        Refusal::DeadlineTooSoon => Cause::TimedOut,
        _ => Cause::Offline,
    }
}

fn put(draft: &mut Draft<'_>, job: Job) -> Answer {
    draft.put_job(job.clone());
    Answer::Job { job: Arc::new(job), repeated: false }
}

/// The choice of a worker, and when it begins.
pub fn give(draft: &mut Draft<'_>, job: &mut Job, chosen: Candidate) -> Result<(), Refusal> {
    match fit::when(draft, job, chosen.agent)? {
        fit::When::Now => open::assign(draft, job, chosen),
        when => fit::put_off(draft, job, chosen.agent, when),
    }
    Ok(())
}
