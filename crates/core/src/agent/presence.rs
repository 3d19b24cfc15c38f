//! Presence: whether an agent is online. Derived from its activity, never stored as a flag.

use serde::{Deserialize, Serialize};

use super::{Agent, AgentState, Liveness};
use crate::draft::Draft;
use crate::id::AgentId;
use crate::job::{acceptance, open};
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};

/// The recorded activity of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// Whether it has ever sent a heartbeat. From then on, missing heartbeats mean offline.
    #[serde(rename = "beats")]
    pub sends_heartbeats: bool,
    /// The last activity of any kind.
    #[serde(rename = "seen")]
    pub last_seen: Timestamp,
    /// The last heartbeat.
    #[serde(rename = "heard")]
    pub last_heartbeat: Option<Timestamp>,
    /// The last connection to its endpoint failed and there was no activity since.
    pub unreachable: bool,
    /// The availability it last reported.
    #[serde(default, skip_serializing_if = "Availability::is_idle")]
    #[serde(rename = "stance")]
    pub availability: Availability,
    /// Until when, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// The availability an agent reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Availability {
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

impl Availability {
    /// Whether it accepts work.
    pub fn accepts_work(self) -> bool {
        matches!(self, Self::Idle | Self::Busy)
    }

    fn is_idle(&self) -> bool {
        *self == Self::Idle
    }
}

impl Presence {
    /// The presence of a newly registered agent.
    pub fn new(now: Timestamp) -> Self {
        let availability = Availability::Idle;
        Self {
            sends_heartbeats: false,
            last_seen: now,
            last_heartbeat: None,
            unreachable: false,
            availability,
            until: None,
        }
    }
}

/// Until when the agent counts as online without further activity; `None` if it is offline.
pub fn online_until(agent: &Agent, agent_state: &AgentState, ttl: Millis) -> Option<Timestamp> {
    if !agent.active {
        return None;
    }
    let presence = &agent_state.presence;
    if !presence.availability.accepts_work() {
        return None;
    }
    match agent.liveness {
        Liveness::Always => Some(Timestamp::NEVER),
        _ if presence.sends_heartbeats => Some(presence.last_seen.plus(ttl)),
        Liveness::ByPolling => Some(presence.last_seen.plus(ttl)),
        Liveness::ByEndpoint => (!presence.unreachable).then_some(Timestamp::NEVER),
    }
}

/// A heartbeat: from now on, the agent has to keep sending them.
pub fn record_heartbeat(draft: &mut Draft<'_>, agent: AgentId) {
    let now = draft.now;
    let presence = &mut draft.agent_state_mut(agent).presence;
    presence.sends_heartbeats = true;
    presence.last_heartbeat = Some(now);
    record_activity(draft, agent);
}

/// Any other activity. A queued job may fit an agent that was offline until now. Where a protocol
/// calls the agent, what the agent sends says nothing of whether it can be called.
pub fn record_activity(draft: &mut Draft<'_>, agent: AgentId) {
    let is_called = draft.agent(agent).is_some_and(|agent| agent.is_called_by_protocol());
    record_seen(draft, agent, !is_called);
}

/// The agent's protocol has reached its server.
pub fn record_reached(draft: &mut Draft<'_>, agent: AgentId) {
    record_seen(draft, agent, true);
}

fn record_seen(draft: &mut Draft<'_>, agent: AgentId, can_be_reached: bool) {
    let was_there = draft.is_online(agent);
    let now = draft.now;
    let presence = &mut draft.agent_state_mut(agent).presence;
    presence.last_seen = presence.last_seen.max(now);
    presence.unreachable &= !can_be_reached;
    if !was_there && draft.is_online(agent) && draft.world.queued_jobs().next().is_some() {
        open::dispatch_ready_queue(draft);
    }
}

/// The agent reports its availability. This counts as a heartbeat. Jobs deferred until it is back,
/// and queued jobs, may fit it.
pub fn set_availability(
    draft: &mut Draft<'_>,
    agent: AgentId,
    availability: Availability,
    until: Option<Timestamp>,
) -> Result<(), Refusal> {
    let presence = &mut draft.agent_state_mut(agent).presence;
    let returns = availability.accepts_work() && !presence.availability.accepts_work();
    presence.availability = availability;
    presence.until = until;
    record_heartbeat(draft, agent);
    if returns {
        acceptance::retry_deferred_jobs_of(draft, agent)?;
        open::dispatch_ready_queue(draft);
    }
    Ok(())
}

/// A connection to the agent's endpoint failed.
pub fn mark_unreachable(draft: &mut Draft<'_>, agent: AgentId) {
    draft.agent_state_mut(agent).presence.unreachable = true;
}
