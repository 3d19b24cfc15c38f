//! Failures per owner, summed over all its agents, including unregistered ones.
//!
//! The sum of the failures in their agent states, updated with each change, so that reading it does
//! not walk all agents of an owner. Owners without failures take no memory.

use std::sync::Arc;

use super::World;
use crate::agent::AgentState;
use crate::id::{AgentId, OwnerId};

impl World {
    /// Failures that count in the hub's own ranking, of all other agents the owner has or had.
    pub fn failures_of_other_agents(&self, agent: AgentId) -> u64 {
        let owner = self.agents.row(agent).map(|agent| agent.owner);
        let all = owner.and_then(|owner| self.owner_failures.get(&owner)).copied().unwrap_or(0);
        all.saturating_sub(self.failures_of(agent))
    }

    /// Failures of this agent that count in the hub's own ranking.
    pub(super) fn failures_of(&self, agent: AgentId) -> u64 {
        self.agents.state(agent).map_or(0, |agent_state| agent_state.ranking_standing().failures)
    }

    /// Agents that rank higher in the hub's own ranking than by their published score, in order.
    pub fn underrated_agents(&self) -> impl Iterator<Item = AgentId> {
        self.underrated.iter().copied()
    }

    pub(super) fn put_agent_state(&mut self, agent_state: Arc<AgentState>) {
        if agent_state.ranking_standing().score > agent_state.standing.score {
            self.underrated.insert(agent_state.agent);
        } else {
            self.underrated.remove(&agent_state.agent);
        }
        self.agents.set_state(agent_state);
    }

    /// Updates an owner's sum when the failures of one of its agents change.
    pub(super) fn update_owner_failures(&mut self, owner: OwnerId, before: u64, after: u64) {
        if before != after {
            let sum = self.owner_failures.entry(owner).or_default();
            *sum = (*sum + after).saturating_sub(before);
        }
    }
}
