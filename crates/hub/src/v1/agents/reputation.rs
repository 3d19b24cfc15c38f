//! `GET /v1/agents/{id}/reputation`: the scores of an agent, with every number needed to recompute
//! them. It does not reveal requesters, jobs or prices.

use axum::extract::State;
use rialto_core::agent::AgentState;
use rialto_core::alias::Protocol;
use rialto_engine::Failure;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::PathParam;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::v1::agent_names;
use crate::v1::auth::is_registered;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, ok_response};

/// An agent's score in every protocol that publishes one.
pub struct ReputationView {
    agent: u64,
    scores: Vec<(Protocol, Box<RawValue>)>,
}

impl Serialize for ReputationView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(1 + self.scores.len()))?;
        members.serialize_entry("agent", &self.agent)?;
        for (protocol, score) in &self.scores {
            members.serialize_entry(protocol.as_str(), score)?;
        }
        members.end()
    }
}

rialto_protocols::value_schema!(ReputationView, {
    "type": "object",
    "required": ["agent"],
    "properties": {"agent": {"type": "integer", "minimum": 0}},
    "additionalProperties": {
        "type": "object",
        "additionalProperties": true,
        "description": "The score in one protocol, with every number needed to recompute it"
    }
});

/// Public, so that every caller can check the score.
pub async fn show_reputation(
    State(context): State<HubContext>,
    PathParam(name): PathParam,
) -> HandlerResult {
    let agent_state = context.engine.with_world(|world| {
        let id = agent_names::find_agent(world, &name, "agent")?;
        let agent_state =
            is_registered(world, id).then(|| world.agent_state(id).cloned()).flatten();
        agent_state.ok_or_else(Problem::not_found)
    })?;
    let scores = load_scores(&context, &agent_state).await?;
    Ok(ok_response(&ReputationView { agent: agent_state.agent.0, scores }))
}

/// An agent's score in every protocol that publishes one.
pub async fn load_scores(
    context: &HubContext,
    agent: &AgentState,
) -> Result<Vec<(Protocol, Box<RawValue>)>, Failure> {
    let mut scores = Vec::new();
    for protocol in &context.protocols {
        if let Some(score) = protocol.published_score(&context.engine, agent).await? {
            scores.push((protocol.adapter().id(), score));
        }
    }
    Ok(scores)
}
