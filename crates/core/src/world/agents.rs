//! Online agents, kept in step with the skills index.
//!
//! An agent goes offline when there is no more activity, so the end of each agent's online time is
//! kept in order, and `expire_online` removes those whose time has passed.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::World;
use super::id_map::IdMap;
use super::skills::Rank;
use crate::agent::presence::online_until;
use crate::agent::{Agent, AgentState};
use crate::command::Timer;
use crate::id::{AgentId, OwnerId};
use crate::time::Timestamp;

/// Until when each agent is online, and the rank at which it is listed.
#[derive(Clone, Debug, Default)]
pub(super) struct OnlineIndex {
    shown: IdMap<AgentId, (Rank, Timestamp)>,
    ending: BTreeSet<(Timestamp, AgentId)>,
    /// Active agents that are offline, and their rank.
    away: IdMap<AgentId, Rank>,
}

impl World {
    /// Whether the agent counts as online now.
    pub fn is_online(&self, agent: AgentId, now: Timestamp) -> bool {
        let (Some(agent), Some(agent_state)) =
            (self.agents.get(&agent), self.agent_states.get(&agent))
        else {
            return false;
        };
        self.online_until(agent, agent_state).is_some_and(|until| now <= until)
    }

    /// Whether the agent or its owner is suspended.
    pub fn is_suspended(&self, agent: AgentId) -> bool {
        self.agents.get(&agent).is_some_and(|agent| self.is_agent_suspended(agent))
    }

    /// Whether the agent is registered and not suspended, so that its credential is valid.
    pub fn may_act(&self, agent: AgentId) -> bool {
        self.agents.get(&agent).is_some_and(|agent| agent.active && !self.is_agent_suspended(agent))
    }

    /// Whether this agent or its owner is suspended.
    pub fn is_agent_suspended(&self, agent: &Agent) -> bool {
        agent.suspended || self.suspended_owners.contains(&agent.owner)
    }

    fn online_until(&self, agent: &Agent, agent_state: &AgentState) -> Option<Timestamp> {
        let until = online_until(agent, agent_state, self.rules.presence_ttl);
        until.filter(|_| !self.is_agent_suspended(agent))
    }

    /// Lists or unlists an owner's agents when its suspension begins or ends.
    pub(super) fn reindex_agents_of(&mut self, owner: OwnerId) {
        let agents: Vec<Arc<Agent>> =
            self.agents_of(owner).filter_map(|id| self.agents.get(&id).cloned()).collect();
        for agent in agents {
            self.unlist_agent(&agent);
            self.list_agent(&agent);
        }
    }

    /// Whether the agent is listed as online, as of the last expiry run.
    pub fn is_listed(&self, agent: AgentId) -> bool {
        self.online.shown.contains_key(&agent)
    }

    /// How many agents are online, as of the last expiry run.
    pub fn online_count(&self) -> usize {
        self.online.shown.len()
    }

    /// When the next agent goes offline without further activity.
    pub fn next_offline_at(&self) -> Option<Timestamp> {
        self.online.ending.first().map(|(at, _)| *at)
    }

    /// Removes agents from the index whose last activity is too old.
    pub fn expire_online(&mut self, now: Timestamp) {
        while let Some((until, id)) = self.online.ending.first().copied() {
            if now <= until {
                return;
            }
            // Removed here unconditionally, so that the loop ends.
            self.online.ending.remove(&(until, id));
            if let Some(agent) = self.agents.get(&id).cloned() {
                self.unlist_agent(&agent);
                self.list_offline(&agent);
            }
        }
    }

    /// Records an activity that is not worth a write of its own.
    pub fn record_activity(&mut self, id: AgentId, now: Timestamp) {
        let Some(agent_state) = self.agent_states.get(&id) else { return };
        if agent_state.presence.last_seen >= now && !agent_state.presence.unreachable {
            return;
        }
        let mut agent_state = AgentState::clone(agent_state);
        agent_state.presence.last_seen = agent_state.presence.last_seen.max(now);
        agent_state.presence.unreachable = false;
        self.set_agent_state(Arc::new(agent_state));
    }

    pub(super) fn set_agent(&mut self, agent: Arc<Agent>, agent_state: Option<Arc<AgentState>>) {
        if !agent.active && self.agents.contains_key(&agent.id) {
            // Later commands of this batch may need the full row, and the store does not have it
            // yet.
            self.cold_rows.agents.insert(agent.id, agent.clone());
        }
        let agent = agent.hot_row();
        // An agent state that exists before its agent belongs to no owner yet.
        let known = self.agents.contains_key(&agent.id);
        let failures = if known { self.failures_of(agent.id) } else { 0 };
        if let Some(old) = self.agents.get(&agent.id).cloned() {
            self.unlist_agent(&old);
            if old.active {
                self.skills.set_listed(&old, false);
            }
            if let Some(until) = old.probation {
                self.timers.remove(&(until, Timer::Probation(old.id)));
            }
        } else {
            self.index_agent_skeletons(&agent);
        }
        if agent.active {
            self.skills.set_listed(&agent, true);
            self.timers.extend(agent.probation.map(|until| (until, Timer::Probation(agent.id))));
        }
        self.agents_by_owner.entry(agent.owner).or_default().insert(agent.id);
        self.agents.insert(agent.id, agent.clone());
        if let Some(agent_state) = agent_state {
            self.put_agent_state(agent_state);
        }
        self.update_owner_failures(agent.owner, failures, self.failures_of(agent.id));
        self.list_agent(&agent);
    }

    pub(super) fn set_agent_state(&mut self, agent_state: Arc<AgentState>) {
        let id = agent_state.agent;
        let Some(agent) = self.agents.get(&id).cloned() else {
            self.put_agent_state(agent_state);
            return;
        };
        let until = self.online_until(&agent, &agent_state);
        let rank = rank(&agent_state);
        self.update_owner_failures(
            agent.owner,
            self.failures_of(id),
            agent_state.ranking_standing().failures,
        );
        let same_place = self.online.shown.get(&id).is_some_and(|(shown, _)| *shown == rank);
        self.put_agent_state(agent_state);
        match until {
            // The common case: for the index, only the end of the online time changed.
            Some(until) if same_place => self.extend_online(id, until),
            _ => {
                self.unlist_agent(&agent);
                self.list_agent(&agent);
            }
        }
    }

    fn extend_online(&mut self, id: AgentId, until: Timestamp) {
        if let Some((_, old)) = self.online.shown.get_mut(&id)
            && *old != until
        {
            self.online.ending.remove(&(*old, id));
            *old = until;
            if until != Timestamp::NEVER {
                self.online.ending.insert((until, id));
            }
        }
    }

    fn list_agent(&mut self, agent: &Agent) {
        let Some(agent_state) = self.agent_states.get(&agent.id) else { return };
        let Some(until) = self.online_until(agent, agent_state) else {
            return self.list_offline(agent);
        };
        let rank = rank(agent_state);
        self.skills.insert_online(agent, rank);
        self.online.shown.insert(agent.id, (rank, until));
        if until != Timestamp::NEVER {
            self.online.ending.insert((until, agent.id));
        }
    }

    fn unlist_agent(&mut self, agent: &Agent) {
        if let Some((rank, until)) = self.online.shown.remove(&agent.id) {
            self.skills.remove_online(agent, rank);
            self.online.ending.remove(&(until, agent.id));
        }
        if let Some(rank) = self.online.away.remove(&agent.id) {
            self.skills.remove_offline(agent, rank);
        }
    }

    /// Lists a registered agent that is offline, so that it can still be found.
    fn list_offline(&mut self, agent: &Agent) {
        let Some(agent_state) = self.agent_states.get(&agent.id).filter(|_| agent.active) else {
            return;
        };
        let rank = rank(agent_state);
        self.skills.insert_offline(agent, rank);
        self.online.away.insert(agent.id, rank);
    }
}

fn rank(agent_state: &AgentState) -> Rank {
    Rank {
        score: Reverse(agent_state.standing.score),
        unproven: agent_state.standing.settled_jobs() == 0,
        agent: agent_state.agent,
    }
}
