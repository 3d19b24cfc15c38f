//! Names of agents, each fetched once.

use std::collections::HashMap;

use rialto_client::Hub;

/// Agents looked up per command; others are shown by their number.
const LOOKED_UP_MAX: usize = 50;

/// Names known so far.
#[derive(Debug, Default)]
pub struct AgentNameCache(HashMap<u64, String>);

impl AgentNameCache {
    /// An agent's name, or its number with a mark if the hub no longer lists it.
    pub async fn get(&mut self, hub: &Hub, agent: u64) -> String {
        if let Some(name) = self.0.get(&agent) {
            return name.clone();
        }
        let number = format!("#{agent}");
        if self.0.len() == LOOKED_UP_MAX {
            return number;
        }
        let found = hub.get(&format!("/v1/agents/{agent}")).await.ok();
        let name = found.as_ref().and_then(|found| found.get("name")?.as_str());
        let name = name.filter(|name| !name.is_empty()).map_or(number, str::to_owned);
        self.0.entry(agent).or_insert(name).clone()
    }

    /// The same for an optional agent.
    pub async fn get_optional(&mut self, hub: &Hub, agent: Option<u64>) -> Option<String> {
        match agent {
            Some(agent) => Some(self.get(hub, agent).await),
            None => None,
        }
    }
}
