//! JSON views of an agent: public, and for the agent itself.

use std::collections::BTreeMap;

use rialto_core::agent::{Agent, Liveness, Skill};
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_protocols::kit::api_doc::{Nullable, Time};
use rialto_protocols::kit::raw_json;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::v1::agent_names;
use crate::v1::response::{format_amount, format_time};
use rialto_protocols::adapter::own_server::OwnServerView;
use rialto_protocols::adapter::rank::RankRecord;

/// The fields of an agent, with all numbers that the hub's ranking uses.
#[derive(Serialize, JsonSchema)]
pub struct AgentView {
    id: u64,
    name: String,
    owner: String,
    protocol: String,
    /// Its name in each protocol.
    names: BTreeMap<String, String>,
    skills: Vec<SkillView>,
    score: Number,
    /// The score used in the hub's ranking.
    rank_score: Number,
    jobs_settled: u64,
    /// Other owners it completed a job for successfully; 64 means 64 or more.
    counterparties: u64,
    /// What they paid for that.
    credits_paid: Number,
    /// Failures of its owner's other agents, unregistered ones included.
    owner_failures: u64,
    age_seconds: i64,
    online: bool,
    registered_at: Time,
    /// The agent's own server, where the hub calls it by itself. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<OwnServerView>,
    #[serde(flatten)]
    own: Option<PrivateFields>,
}

rialto_protocols::words! {
    /// How the hub knows that an agent is reachable.
    LivenessName: "reached" | "polls" | "always"
}

/// Fields that only the agent itself sees.
#[derive(Serialize, JsonSchema)]
pub struct PrivateFields {
    #[schemars(with = "Nullable<String>")]
    endpoint: Option<String>,
    #[schemars(with = "LivenessName")]
    liveness: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub struct SkillView {
    name: String,
    price: Number,
    /// The price is set by an offer for each job.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_offer: bool,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Box<RawValue>>,
}

impl AgentView {
    /// For lists: without the schemas, which may be long.
    pub fn summary(world: &World, id: AgentId, now: Timestamp) -> Option<Self> {
        Self::build(world, id, now, false)
    }

    /// For one agent: with the schemas.
    pub fn full(world: &World, id: AgentId, now: Timestamp) -> Option<Self> {
        Self::build(world, id, now, true)
    }

    /// For the agent itself.
    pub fn for_itself(world: &World, id: AgentId, now: Timestamp) -> Option<Self> {
        let agent = world.agent(id)?;
        let endpoint = agent.endpoint.clone();
        let own = Some(PrivateFields { endpoint, liveness: liveness_name(agent.liveness) });
        Some(Self { own, ..Self::build(world, id, now, true)? })
    }

    fn build(world: &World, id: AgentId, now: Timestamp, schemas: bool) -> Option<Self> {
        let agent: &Agent = world.agent(id)?;
        let rank_record = RankRecord::load(world, id)?;
        let owner = world.owner(agent.owner).map(|owner| owner.name.clone());
        Some(Self {
            id: id.0,
            name: agent.name.clone(),
            owner: owner.unwrap_or_default(),
            protocol: agent.home.to_string(),
            names: agent_names::names_of(world, id),
            skills: agent
                .skills_for_other_protocols()
                .map(|skill| SkillView::of(skill, schemas))
                .collect(),
            score: raw_json::score(rank_record.score.millionths()),
            rank_score: raw_json::score(rank_record.rank_score().millionths()),
            jobs_settled: rank_record.jobs_settled,
            counterparties: rank_record.counterparties,
            credits_paid: format_amount(rank_record.credits_paid),
            owner_failures: rank_record.owner_failures,
            age_seconds: now.since(agent.registered_at).0 / 1_000,
            online: world.is_online(id, now),
            registered_at: format_time(agent.registered_at),
            server: schemas.then(|| own_server(agent)).flatten(),
            own: None,
        })
    }
}

/// The server of an agent, by its home protocol.
fn own_server(agent: &Agent) -> Option<OwnServerView> {
    let home = rialto_protocols::ALL.iter().find(|adapter| adapter.id() == agent.home)?;
    home.own_server(agent)
}

impl SkillView {
    fn of(skill: &Skill, schemas: bool) -> Self {
        Self {
            name: skill.name.clone(),
            price: format_amount(skill.price),
            by_offer: skill.by_offer,
            description: skill.description.clone(),
            input_schema: schemas.then(|| raw_json::verbatim(&skill.input)),
            output_schema: schemas.then(|| raw_json::verbatim(&skill.output)),
        }
    }
}

fn liveness_name(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::ByEndpoint => "reached",
        Liveness::ByPolling => "polls",
        Liveness::Always => "always",
    }
}
