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
pub fn deadline_for(draft: &Draft<'_>, actor: Actor) -> Option<Timestamp> {
    let span = draft.world.rules.probation_period?;
    (actor == Actor::Anonymous).then(|| draft.now.plus(span))
}

/// The agent was active.
pub fn clear(draft: &mut Draft<'_>, id: AgentId) {
    let agent = draft.agent(id).filter(|agent| agent.probation.is_some());
    if let Some(agent) = agent.cloned() {
        draft.put_agent(Agent { probation: None, ..agent });
    }
}

/// The period is over: an agent without activity is unregistered. Its id stays reserved, and its
/// key brings it back.
pub fn expire(draft: &mut Draft<'_>, id: AgentId) -> Result<Answer, Refusal> {
    let on_probation = |agent: &&Agent| agent.active && agent.probation.is_some();
    let Some(agent) = draft.agent(id).filter(on_probation).cloned() else {
        return Ok(Answer::Done);
    };
    if agent.probation.is_some_and(|until| draft.now < until) {
        return Ok(Answer::Done);
    }
    // If the operator has disabled probation since then, the agent stays.
    if draft.world.rules.probation_period.is_some() && has_no_activity(draft, &agent) {
        return registration::remove(draft, id, false);
    }
    clear(draft, id);
    Ok(Answer::Done)
}

/// Whether the agent has no activity, no messages, no jobs and no ledger entries.
fn has_no_activity(draft: &Draft<'_>, agent: &Agent) -> bool {
    let silent = draft.agent_state(agent.id).is_none_or(|agent_state| {
        let unseen = agent_state.presence.last_seen <= agent.registered_at;
        let unhired = agent_state.last_outcome.is_none() && agent_state.last_worked.is_none();
        unseen && unhired && agent_state.last_requested.is_none()
    });
    let mailbox = draft.inbox(agent.id);
    let speechless = mailbox.last_sent.is_none() && mailbox.read_position() == 0;
    let world = draft.world;
    let idle = world.assigned_jobs(agent.id).next().is_none()
        && world.deferred_jobs_for(agent.id).next().is_none()
        && world.jobs_requested_by(agent.id).next().is_none();
    // Not even a welcome grant: an account with ledger entries stays, because its owner may use it.
    let poor = draft.owner(agent.owner).is_none_or(|owner| owner.newest_entry.is_none());
    silent && speechless && idle && poor
}
