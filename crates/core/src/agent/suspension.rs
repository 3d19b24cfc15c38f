//! Suspension: the operator stops an agent, or an owner with all its agents, until it is resumed.
//!
//! Who is suspended takes no new work and orders nothing; everybody else sees an agent that is not
//! there. Nothing is taken away: names, money, inbox and jobs in hand stay, and messages to it wait.
//! Work in hand ends by the usual rules, by its lease if its worker is not resumed in time.

use super::Agent;
use crate::answer::Answer;
use crate::command::Subject;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::job::open;
use crate::owner::Owner;
use crate::refusal::Refusal;

/// Refuses what a suspended agent, or an agent of a suspended owner, orders.
pub fn refuse(draft: &Draft<'_>, agent: AgentId) -> Result<(), Refusal> {
    if draft.is_suspended(agent) { Err(Refusal::Suspended) } else { Ok(()) }
}

/// Suspends or resumes; what is so already stays so, and is no event.
pub fn set(draft: &mut Draft<'_>, subject: Subject, suspended: bool) -> Result<Answer, Refusal> {
    let event = match subject {
        Subject::Agent(id) => {
            // Of one that has left, only part is at hand, and the whole is written.
            let agent = draft.whole_agent(id).ok_or(Refusal::NoSuchAgent)?.clone();
            if agent.suspended == suspended {
                return Ok(Answer::Done);
            }
            draft.put_agent(Agent { suspended, ..agent });
            match suspended {
                true => Event::AgentSuspended { agent: id },
                false => Event::AgentResumed { agent: id },
            }
        }
        Subject::Owner(id) => {
            // Nothing could be issued any more.
            let owner = draft.owner(id).filter(|owner| owner.id != Owner::ISSUANCE);
            let owner = owner.ok_or(Refusal::NotYours)?.clone();
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
    draft.event(event);
    if !suspended {
        // What waits for anybody may be for those who are there again. What was put off has its own
        // moment.
        open::dispatch_rested(draft);
    }
    Ok(Answer::Done)
}
