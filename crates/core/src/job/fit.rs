//! Fit: whether an agent takes a job on, and when.
//!
//! What an agent says about itself (its stance, its terms, how long its skills take) is kept here for
//! it, whichever protocol the job comes from.

use super::{Job, State};
use crate::agent::Agent;
use crate::agent::presence::Stance;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// In which jobs begun are counted for agents that limit them.
pub const MINUTE: Millis = Millis::minutes(1);

/// When an agent takes a job on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Now,
    /// Once it is back.
    Back(Timestamp),
    /// Once somebody has agreed.
    Approved,
}

/// When the agent takes the job on, or why it does not: presence, then load, then time.
pub fn when(draft: &Draft<'_>, job: &Job, agent: AgentId) -> Result<When, Refusal> {
    let named = draft.agent(agent).filter(|agent| agent.active).ok_or(Refusal::NoSuchAgent)?;
    if let Some(back) = is_there(draft, job, named)? {
        return Ok(When::Back(back));
    }
    has_room(draft, named)?;
    let skill = named.skill(&job.skill);
    let by = job.promised.unwrap_or(job.deadline).min(job.deadline);
    if skill.and_then(|skill| skill.takes).is_some_and(|takes| draft.now.plus(takes) > by) {
        return Err(Refusal::DeadlineTooSoon);
    }
    let agreed = job.waits_for.is_some_and(|waits| waits.approval && waits.worker == agent);
    let asks = skill.is_some_and(|skill| skill.approval) && !agreed;
    Ok(if asks { When::Approved } else { When::Now })
}

/// Whether it is there; if it said when it comes back, then.
fn is_there(draft: &Draft<'_>, job: &Job, agent: &Agent) -> Result<Option<Timestamp>, Refusal> {
    let presence = draft.desk(agent.id).map(|desk| desk.presence);
    let stance = presence.map_or(Stance::Idle, |presence| presence.stance);
    let back = presence.and_then(|presence| presence.until).filter(|until| *until > draft.now);
    match stance {
        Stance::Broken => return Err(Refusal::OutOfOrder),
        Stance::Maintenance if back.is_some() => return Ok(back),
        _ => {}
    }
    if !draft.is_online(agent.id) || job.declined.contains(&agent.id) {
        return Err(Refusal::Offline);
    }
    Ok(None)
}

/// Whether its terms leave room for one more.
fn has_room(draft: &Draft<'_>, agent: &Agent) -> Result<(), Refusal> {
    let full = |limit: Option<u32>, count: usize| limit.is_some_and(|max| count >= max as usize);
    if agent.terms.is_default() {
        return Ok(());
    }
    if full(agent.terms.per_minute, draft.begun_lately(agent.id)) {
        return Err(Refusal::TooFast);
    }
    if full(agent.terms.at_once, draft.jobs_in_hand(agent.id)) {
        return Err(Refusal::AtCapacity);
    }
    Ok(())
}

/// Whether it could begin at once, or as soon as somebody agrees.
pub fn is_able(draft: &Draft<'_>, job: &Job, agent: AgentId) -> bool {
    matches!(when(draft, job, agent), Ok(When::Now | When::Approved))
}

/// Puts a job off before anybody has it.
pub fn put_off(draft: &mut Draft<'_>, job: &mut Job, worker: AgentId, when: When) {
    let (until, approval) = match when {
        When::Now => return,
        When::Back(until) => (until, false),
        When::Approved => (draft.now.plus(draft.world.rules.approval_window), true),
    };
    job.state = State::Deferred { until };
    job.assignment = None;
    job.waits_for = Some(super::Waiting { worker, approval });
    job.pending = true;
    draft.event(Event::JobDeferred { job: job.id, until });
}
