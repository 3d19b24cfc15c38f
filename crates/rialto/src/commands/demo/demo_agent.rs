//! The demo's agents as the hub shows them, with both kinds of reputation score.

use std::collections::BTreeMap;

use rialto_client::openclaw::Server;
use rialto_client::{CallError, Method};
use rialto_core::id::AgentId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::agents::AgentIds;
use super::balance::{Balance, unreadable};
use super::demo_hub::DemoHub;
use super::role::Role;

/// An agent as the hub shows it now.
#[derive(Clone, Debug)]
pub struct DemoAgent {
    pub id: AgentId,
    /// The name of its account.
    pub owner: String,
    pub online: bool,
    pub balance: Balance,
    pub scores: Scores,
}

/// Reputation scores, with the digits the hub shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// Of registry: 0 to 100, one step per job.
    pub registry: String,
    /// Of openclaw: 0 to 1, none before the first job.
    pub openclaw: Option<String>,
}

/// All agents.
pub type DemoAgents = BTreeMap<Role, DemoAgent>;

/// `GET /v1/agents/{id}`, as far as it is needed here.
#[derive(Deserialize)]
struct AgentResponse {
    id: u64,
    owner: String,
    online: bool,
    score: Box<RawValue>,
    names: BTreeMap<String, String>,
}

/// Fetches all agents.
pub async fn fetch_agents(policy: &DemoHub, known: &AgentIds) -> Result<DemoAgents, CallError> {
    let claws = Server::new(&policy.url)?;
    let mut people = DemoAgents::new();
    for (who, id) in known {
        people.insert(*who, fetch_agent(policy, &claws, id).await?);
    }
    Ok(people)
}

async fn fetch_agent(policy: &DemoHub, claws: &Server, id: &str) -> Result<DemoAgent, CallError> {
    let path = format!("/v1/agents/{id}");
    let (_, text) = policy.operator.call_text(Method::GET, &path, None).await?;
    let shown: AgentResponse = serde_json::from_str(&text).map_err(unreadable)?;
    let name = shown.names.get("openclaw").and_then(|name| name.parse().ok());
    let name = name.ok_or_else(|| CallError::Unreadable(format!("{id} has no alias")))?;
    let openclaw = claws.reputation(name).await?.by_hub.map(|reputation| reputation.score.text());
    Ok(DemoAgent {
        id: AgentId(shown.id),
        balance: Balance::of_owner(&policy.operator, &shown.owner).await?,
        owner: shown.owner,
        online: shown.online,
        scores: Scores { registry: shown.score.get().to_owned(), openclaw },
    })
}

/// The current balances of all agents.
pub async fn fetch_balances(
    policy: &DemoHub,
    people: &DemoAgents,
) -> Result<BTreeMap<Role, Balance>, CallError> {
    let mut accounts = BTreeMap::new();
    for (who, person) in people {
        accounts.insert(*who, Balance::of_owner(&policy.operator, &person.owner).await?);
    }
    Ok(accounts)
}
