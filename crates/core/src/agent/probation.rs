//! Probation: an agent that registers without proof is removed unless it is active once within a
//! period.
//!
//! Registration is open, so a caller could fill the lists with agents that are never used. One call
//! with its key, one delivery to its endpoint, one job or one credit is enough to stay. An agent
//! with a signed registration, or one registered by a proven caller, has no probation.

use super::{Agent, registration};
use crate::answer::Answer;
use crate::command::Actor;
use crate::draft::Draft;
use crate::id::AgentId;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// When the probation of a newly registered agent ends, if it has one.
pub fn begins(draft: &Draft<'_>, actor: Actor) -> Option<Timestamp> {
    let span = draft.world.rules.unproven_ttl?;
    (actor == Actor::Nobody).then(|| draft.now.plus(span))
}

/// The agent was active.
pub fn passed(draft: &mut Draft<'_>, id: AgentId) {
    let agent = draft.agent(id).filter(|agent| agent.probation.is_some());
    if let Some(agent) = agent.cloned() {
        draft.put_agent(Agent { probation: None, ..agent });
    }
}

/// The period is over: an agent without activity is unregistered. Its id stays reserved, and its
/// key brings it back.
pub fn over(draft: &mut Draft<'_>, id: AgentId) -> Result<Answer, Refusal> {
    let on_probation = |agent: &&Agent| agent.active && agent.probation.is_some();
    let Some(agent) = draft.agent(id).filter(on_probation).cloned() else {
        return Ok(Answer::Done);
    };
    if agent.probation.is_some_and(|until| draft.now < until) {
        return Ok(Answer::Done);
    }
    // If the operator has disabled probation since then, the agent stays.
    if draft.world.rules.unproven_ttl.is_some() && is_unheard_of(draft, &agent) {
        return registration::remove(draft, id, false);
    }
    passed(draft, id);
    Ok(Answer::Done)
}

/// Whether the agent has no activity, no messages, no jobs and no ledger entries.
fn is_unheard_of(draft: &Draft<'_>, agent: &Agent) -> bool {
    let silent = draft.desk(agent.id).is_none_or(|desk| {
        let unseen = desk.presence.seen <= agent.registered_at;
        let unhired = desk.last_outcome.is_none() && desk.last_worked.is_none();
        unseen && unhired && desk.last_asked.is_none()
    });
    let mailbox = draft.mailbox(agent.id);
    let speechless = mailbox.sent.is_none() && mailbox.read() == 0;
    let world = draft.world;
    let idle = world.work_of(agent.id).next().is_none()
        && world.waiting_for(agent.id).next().is_none()
        && world.asked_by(agent.id).next().is_none();
    // Not even a welcome grant: an account with ledger entries stays, because its owner may use it.
    let poor = draft.owner(agent.owner).is_none_or(|owner| owner.newest.is_none());
    silent && speechless && idle && poor
}
