//! The demo's agents as the hub shows them, with both kinds of reputation score.

use std::collections::BTreeMap;

use rialto_client::openclaw::Server;
use rialto_client::{CallError, Method};
use rialto_core::id::AgentId;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::role::Who;
use super::demo_hub::House;
use super::agents::Known;
use super::balance::{Purse, unreadable};

/// An agent as the hub shows it now.
#[derive(Clone, Debug)]
pub struct Person {
    pub id: AgentId,
    /// The name of its account.
    pub owner: String,
    pub online: bool,
    pub purse: Purse,
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
pub type People = BTreeMap<Who, Person>;

/// `GET /v1/agents/{id}`, as far as it is needed here.
#[derive(Deserialize)]
struct Shown {
    id: u64,
    owner: String,
    online: bool,
    score: Box<RawValue>,
    names: BTreeMap<String, String>,
}

/// Fetches all agents.
pub async fn look(house: &House, known: &Known) -> Result<People, CallError> {
    let claws = Server::new(&house.url)?;
    let mut people = People::new();
    for (who, id) in known {
        people.insert(*who, person(house, &claws, id).await?);
    }
    Ok(people)
}

async fn person(house: &House, claws: &Server, id: &str) -> Result<Person, CallError> {
    let path = format!("/v1/agents/{id}");
    let (_, text) = house.operator.call_text(Method::GET, &path, None).await?;
    let shown: Shown = serde_json::from_str(&text).map_err(unreadable)?;
    let name = shown.names.get("openclaw").and_then(|name| name.parse().ok());
    let name = name.ok_or_else(|| CallError::Unreadable(format!("{id} has no alias")))?;
    let openclaw = claws.reputation(name).await?.by_hub.map(|reputation| reputation.score.text());
    Ok(Person {
        id: AgentId(shown.id),
        purse: Purse::of(&house.operator, &shown.owner).await?,
        owner: shown.owner,
        online: shown.online,
        scores: Scores { registry: shown.score.get().to_owned(), openclaw },
    })
}

/// The current balances of all agents.
pub async fn purses(house: &House, people: &People) -> Result<BTreeMap<Who, Purse>, CallError> {
    let mut purses = BTreeMap::new();
    for (who, person) in people {
        purses.insert(*who, Purse::of(&house.operator, &person.owner).await?);
    }
    Ok(purses)
}
