//! Suspension: the operator stops an agent, or an owner with all its agents, until it is resumed.
//!
//! A suspended agent gets no new work and cannot act; to others it is offline. Nothing is lost:
//! names, credits, inbox and assigned jobs stay, and messages to it wait. Assigned jobs end by the
//! usual rules, by their lease if the worker is not resumed in time.

use super::Agent;
use crate::answer::Answer;
use crate::command::SuspensionTarget;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::job::open;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// Refuses commands of a suspended agent, or of an agent of a suspended owner.
pub fn ensure_not_suspended(draft: &Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    if draft.is_suspended(agent) { Err(Refusal::Suspended) } else { Ok(()) }
}

/// Suspends or resumes. If nothing changes, there is no event.
pub fn set_suspended(
    draft: &mut Draft<'_>,
    subject: SuspensionTarget,
    suspended: bool,
) -> Result<Answer, Refusal> {
    let event = match subject {
        SuspensionTarget::Agent(id) => {
            // For an agent that has left, only part is in memory, but the full row is written.
            let agent = draft.full_agent(id).ok_or(Refusal::NoSuchAgent)?.clone();
            if agent.suspended == suspended {
                return Ok(Answer::Done);
            }
            draft.put_agent(Agent { suspended, ..agent });
            match suspended {
                true => Event::AgentSuspended { agent: id },
                false => Event::AgentResumed { agent: id },
            }
        }
        SuspensionTarget::Owner(id) => {
            // If the issue account were suspended, no credits could be issued.
            let owner = draft.owner(id).filter(|owner| owner.id != Owner::ISSUANCE);
            let owner = owner.ok_or(Refusal::NotFound)?.clone();
            if owner.suspended == suspended {
                return Ok(Answer::Done);
            }
            draft.put_owner(Owner { suspended, ..owner });
            match suspended {
                true => Event::OwnerSuspended { owner: id },
                false => Event::OwnerResumed { owner: id },
            }
        }
    };
    draft.add_event(event);
    if !suspended {
        // Queued jobs may fit agents that are available again. Deferred jobs have their own time.
        open::dispatch_ready_queue(draft);
    }
    Ok(Answer::Done)
}
