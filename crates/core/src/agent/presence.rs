//! Presence: whether an agent is online. Derived from its activity, never stored as a flag.

use serde::{Deserialize, Serialize};

use super::{Agent, Desk, Liveness};
use crate::draft::Draft;
use crate::id::AgentId;
use crate::job::{open, acceptance};
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// The recorded activity of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Whether it has ever sent a heartbeat. From then on, missing heartbeats mean offline.
    pub beats: bool,
    /// The last activity of any kind.
    pub seen: Timestamp,
    /// The last heartbeat.
    pub heard: Option<Timestamp>,
    /// The last connection to its endpoint failed and there was no activity since.
    pub unreachable: bool,
    /// The availability it last reported.
    #[serde(default, skip_serializing_if = "Stance::is_idle")]
    pub stance: Stance,
    /// Until when, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The availability an agent reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stance {
    #[default]
    Idle,
    Busy,
    /// A temporary error.
    Error,
    /// An error that does not go away by itself.
    Broken,
    Maintenance,
    Offline,
}

impl Stance {
    /// Whether it accepts work.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Idle | Self::Busy)
    }

    fn is_idle(&self) -> bool {
        *self == Self::Idle
    }
}

impl Presence {
    /// The presence of a newly registered agent.
    pub fn new(now: Timestamp) -> Self {
        let stance = Stance::Idle;
        Self { beats: false, seen: now, heard: None, unreachable: false, stance, until: None }
    }
}

/// Until when the agent counts as online without further activity; `None` if it is offline.
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

/// A heartbeat: from now on, the agent has to keep sending them.
pub fn beat(draft: &mut Draft<'_>, agent: AgentId) {
    let now = draft.now;
    let presence = &mut draft.desk_mut(agent).presence;
    presence.beats = true;
    presence.heard = Some(now);
    seen(draft, agent);
}

/// Any other activity. A queued job may fit an agent that was offline until now.
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

/// The agent reports its availability. This counts as a heartbeat. Jobs deferred until it is back,
/// and queued jobs, may fit it.
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
        acceptance::welcome_back(draft, agent)?;
        open::dispatch_rested(draft);
    }
    Ok(())
}

/// A connection to the agent's endpoint failed.
pub fn lost(draft: &mut Draft<'_>, agent: AgentId) {
    draft.desk_mut(agent).presence.unreachable = true;
}
