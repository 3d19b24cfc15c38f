//! Presence: is the agent there? Derived from signs of life, never stored as a yes or no.

use serde::{Deserialize, Serialize};

use super::{Agent, Desk, Liveness};
use crate::draft::Draft;
use crate::id::AgentId;
use crate::job::{open, respond};
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// The signs of life of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Whether it has ever sent a heartbeat; from then on silence means absence.
    pub beats: bool,
    /// The last sign of life of any kind.
    pub seen: Timestamp,
    /// The last heartbeat proper.
    pub heard: Option<Timestamp>,
    /// The last connection to its endpoint failed and nothing has been heard since.
    pub unreachable: bool,
    /// What it last said about itself.
    #[serde(default, skip_serializing_if = "Stance::is_idle")]
    pub stance: Stance,
    /// Until when, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How an agent says it is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stance {
    #[default]
    Idle,
    Busy,
    /// Something is wrong that may pass.
    Error,
    /// Something is wrong that does not pass by itself.
    Broken,
    Maintenance,
    Offline,
}

impl Stance {
    /// Whether it would take work.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Idle | Self::Busy)
    }

    fn is_idle(&self) -> bool {
        *self == Self::Idle
    }
}

impl Presence {
    /// An agent that has just arrived.
    pub fn new(now: Timestamp) -> Self {
        let stance = Stance::Idle;
        Self { beats: false, seen: now, heard: None, unreachable: false, stance, until: None }
    }
}

/// Until when the agent counts as online if nothing more is heard; `None` when it is offline.
pub fn online_until(agent: &Agent, desk: &Desk, ttl: Millis) -> Option<Timestamp> {
    if !agent.active {
        return None;
    }
    let presence = &desk.presence;
    if !presence.stance.is_open() {
        return None;
    }
    match agent.liveness {
        Liveness::Always => Some(Timestamp::NEVER),
        _ if presence.beats => Some(presence.seen.plus(ttl)),
        Liveness::Polls => Some(presence.seen.plus(ttl)),
        Liveness::Reached => (!presence.unreachable).then_some(Timestamp::NEVER),
    }
}

/// A heartbeat: the agent says it is there and promises to go on saying so.
pub fn beat(draft: &mut Draft<'_>, agent: AgentId) {
    let now = draft.now;
    let presence = &mut draft.desk_mut(agent).presence;
    presence.beats = true;
    presence.heard = Some(now);
    seen(draft, agent);
}

/// Any other sign of life. What waits for anybody may be for somebody who was away until now.
pub fn seen(draft: &mut Draft<'_>, agent: AgentId) {
    let was_there = draft.is_online(agent);
    let now = draft.now;
    let presence = &mut draft.desk_mut(agent).presence;
    presence.seen = presence.seen.max(now);
    presence.unreachable = false;
    if !was_there && draft.is_online(agent) && draft.world.queue().next().is_some() {
        open::dispatch_rested(draft);
    }
}

/// The agent says how it is doing, and promises to go on saying so. What was put off until it is back,
/// or waits for anybody, may be for it.
pub fn stand(
    draft: &mut Draft<'_>,
    agent: AgentId,
    stance: Stance,
    until: Option<Timestamp>,
) -> Result<(), Refusal> {
    let presence = &mut draft.desk_mut(agent).presence;
    let returns = stance.is_open() && !presence.stance.is_open();
    presence.stance = stance;
    presence.until = until;
    beat(draft, agent);
    if returns {
        respond::welcome_back(draft, agent)?;
        open::dispatch_rested(draft);
    }
    Ok(())
}

/// A connection to the agent's endpoint could not be made.
pub fn lost(draft: &mut Draft<'_>, agent: AgentId) {
    draft.desk_mut(agent).presence.unreachable = true;
}
