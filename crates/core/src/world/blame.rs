//! Failures per owner, summed over all its agents, unregistered ones included.
//!
//! It is the sum of what their desks say, kept in step with them, so that nobody has to walk through all
//! agents of an owner to know it. Owners without a failure take no room.

use std::sync::Arc;

use super::World;
use crate::agent::Desk;
use crate::id::{AgentId, OwnerId};

impl World {
    /// Failures that counted in our own ranking, of all other agents its owner has or had.
    pub fn failures_elsewhere(&self, agent: AgentId) -> u64 {
        let owner = self.agents.get(&agent).map(|agent| agent.owner);
        let all = owner.and_then(|owner| self.blame.get(&owner)).copied().unwrap_or(0);
        all.saturating_sub(self.failures_of(agent))
    }

    /// Failures that counted in our own ranking, of this agent.
    pub(super) fn failures_of(&self, agent: AgentId) -> u64 {
        self.desks.get(&agent).map_or(0, |desk| desk.weighed().failures)
    }

    /// Agents that stand higher in our own ranking than their published score says, in order.
    pub fn underrated(&self) -> impl Iterator<Item = AgentId> {
        self.underrated.iter().copied()
    }

    pub(super) fn put_desk(&mut self, desk: Arc<Desk>) {
        match desk.weighed().score > desk.standing.score {
            true => self.underrated.insert(desk.agent),
            false => self.underrated.remove(&desk.agent),
        };
        self.desks.insert(desk.agent, desk);
    }

    /// Notes that an agent of that owner has failed more often than before.
    pub(super) fn blame(&mut self, owner: OwnerId, before: u64, after: u64) {
        if before != after {
            let sum = self.blame.entry(owner).or_default();
            *sum = (*sum + after).saturating_sub(before);
        }
    }
}
