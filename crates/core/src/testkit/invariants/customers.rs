//! Customers of agents, and failures of their owners' other agents: counted from outcomes alone.

use std::collections::{BTreeMap, BTreeSet};

use super::Invariants;
use crate::agent::AgentState;
use crate::id::{AgentId, OwnerId};
use crate::reputation::Outcome;
use crate::reputation::customers::CUSTOMERS_MAX;
use crate::world::World;

/// The other owners each agent completed jobs for, and what they paid in millionths.
#[derive(Clone, Default)]
pub struct CustomerChecks(BTreeMap<AgentId, (BTreeSet<OwnerId>, i64)>);

impl CustomerChecks {
    pub fn record(&mut self, outcome: &Outcome, payer: Option<OwnerId>) {
        if outcome.counted && outcome.counts_in_ranking && outcome.ok {
            let (owners, paid) = self.0.entry(outcome.subject).or_default();
            owners.extend(payer);
            *paid += outcome.paid.micros();
        }
    }
}

impl Invariants {
    /// Customers are other owners, each once; failures elsewhere are those of all other agents of
    /// the owner.
    pub(super) fn check_customers(&self, world: &World, agent: AgentId, agent_state: &AgentState) {
        let (owners, paid) = self.patronage.0.get(&agent).cloned().unwrap_or_default();
        assert_eq!(agent_state.customers.count(), owners.len().min(CUSTOMERS_MAX));
        assert_eq!(agent_state.customers.paid().micros(), paid);
        let (own, _) = self.agents[&agent];
        assert!(!owners.contains(&own), "no owner is its own customer");
        let others = self.agents.iter().filter(|(id, (owner, _))| **id != agent && *owner == own);
        let weighed = &self.economy.ranking_standings;
        let failures = others.filter_map(|(id, _)| weighed.get(id)).map(|one| one.failures);
        assert_eq!(world.failures_of_other_agents(agent), failures.sum::<u64>());
    }
}
