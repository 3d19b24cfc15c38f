//! Agents: register, show, unregister, heartbeat, reputation.

use axum::extract::State;
use rialto_core::agent::Liveness;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::keys::{Key, KeyPrefix};
use schemars::JsonSchema;
use serde::Serialize;

use super::HandlerResult;
use super::discover::agent_entry;
use crate::adapter::caller::{Caller, KnownCaller, OptionalCaller, PresentedKey};
use crate::adapter::request::{BodyBytes, PathParam};
use crate::adapter::{NewAgent, make_aliases, naming};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::raw_json::Number;
use crate::kit::{ijson, raw_json, rfc3339};
use crate::registry::RegistryContext;
use crate::registry::auth::{acting_agent, agent_in_path, native_agent};
use crate::registry::errors::{
    Failure, HEARTBEAT_EXAMPLE, RequestKind, from_engine, json_response, with_body_example,
};
use crate::registry::wire::{RegisterBody, read_path_uuid};
use crate::registry::{ID, translate};

#[derive(Serialize, JsonSchema)]
pub struct RegistrationAnswer {
    status: &'static str,
    agent_id: String,
    reputation_score: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
}

/// `POST /register`: a new agent, or an update of a known one (§3.1).
pub async fn register(
    State(context): State<RegistryContext>,
    anyone: OptionalCaller,
    PresentedKey(presented): PresentedKey,
    sent: BodyBytes,
) -> HandlerResult {
    let wire = RegisterBody::read(&sent.0)?;
    if let Some((field, max)) = wire.oversized_member() {
        return Err(Failure::too_large(field, max));
    }
    let owner_id =
        context.engine.with_world(|world| naming::canonical_owner_name(world, wire.owner_id));
    let wire = RegisterBody { owner_id, ..wire };
    if let Some(url) = wire.api_endpoint.as_deref().filter(|url| translate::is_callable(url)) {
        let blocked = |why| Failure::field("/api_endpoint", format!("api_endpoint {why}"));
        context.egress.check_url(url).map_err(blocked)?;
    }
    let native = wire.agent_id.unwrap_or_else(|| context.engine.random().new_uuid());
    let key = Key::from_random(KeyPrefix::AGENT, context.engine.random().new_key_bytes());
    let text = native.to_string();
    let new_agent = NewAgent { home: ID, native: &text, name: &wire.agent_name };
    let aliases = make_aliases(&context.engine, new_agent);
    let rotated = wire.rotate_key;
    let command = translate::register_agent(wire, native, anyone.actor(), aliases, key.hash());
    let ran = context.engine.run_once(command, anyone.idempotency).await;
    let ran = ran.map_err(|failure| from_engine(failure, RequestKind::Other))?;
    let Answer::Agent { agent, state: agent_state, new, .. } = ran.answer else {
        return Err(Failure::not_found());
    };
    // A repeat after a crash finds the agent registered, but its key was not stored and is lost.
    let fresh = (new || rotated) && !ran.replayed;
    // An operator key, or one of another protocol, is not an agent's api_key.
    let presented = presented.filter(|key| key.prefix() == KeyPrefix::AGENT);
    let api_key = if fresh { Some(key) } else { presented };
    let body = RegistrationAnswer {
        status: "registered",
        agent_id: agent.native_id.clone(),
        reputation_score: raw_json::score(agent_state.standing.score.millionths()),
        api_key: api_key.map(|key| key.expose().to_owned()),
        webhook_secret: (agent.liveness == Liveness::ByEndpoint).then(|| {
            context.engine.hub_secret().webhook_secret(agent.id, agent.secret_generation).to_text()
        }),
    };
    Ok(json_response(if new { 201 } else { 200 }, &body))
}

/// `GET /agents/{agent_id}`: an agent's public entry.
pub async fn show(
    State(context): State<RegistryContext>,
    _: OptionalCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let id = read_path_uuid(&id, "agent_id")?.to_string();
    let now = context.engine.now();
    let entry = context.engine.with_world(|world| {
        let agent = listed_agent(world, &id)?;
        let (agent, agent_state) = world.agent(agent).zip(world.agent_state(agent))?;
        Some(agent_entry(&context, world, (agent, agent_state), None, now))
    });
    Ok(json_response(200, &entry.ok_or_else(Failure::not_found)?))
}

/// A listed agent of any protocol.
fn listed_agent(world: &World, name: &str) -> Option<AgentId> {
    let id = world.agent_by_alias(ID, name)?;
    world.agent(id).filter(|agent| agent.active).map(|agent| agent.id)
}

#[derive(Serialize, JsonSchema)]
pub struct UnregisterAnswer {
    status: &'static str,
    agent_id: String,
}

/// `DELETE /agents/{agent_id}`: removes the agent from the lists; the id stays reserved.
pub async fn unregister(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let id = read_path_uuid(&id, "agent_id")?.to_string();
    let (agent, by_operator) = context.engine.with_world(|world| {
        if known.0.caller == Caller::Operator {
            let agent = native_agent(world, &id).ok_or_else(Failure::not_found)?;
            return Ok::<_, Failure>((agent, true));
        }
        Ok((agent_in_path(known, world, &id)?, false))
    })?;
    let done = context.engine.run(Command::Remove { agent, by_operator }).await;
    done.map_err(|failure| from_engine(failure, RequestKind::Other))?;
    Ok(json_response(200, &UnregisterAnswer { status: "unregistered", agent_id: id }))
}

#[derive(Serialize, JsonSchema)]
pub struct HeartbeatAnswer {
    status: &'static str,
    agent_id: String,
    timestamp: String,
}

/// `POST /heartbeat`: the agent is online and will keep sending heartbeats.
pub async fn heartbeat(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    sent: BodyBytes,
) -> HandlerResult {
    let whole = with_body_example(HEARTBEAT_EXAMPLE);
    let body = ijson::read(&sent.0).map_err(Malformed::from).map_err(&whole)?;
    let f = Fields::read(&body, "").map_err(&whole)?;
    let id = f.required("agent_id", f.uuid("agent_id")?)?.to_string();
    let agent = context.engine.with_world(|world| acting_agent(known, world, Some(&id)))?;
    let done = context.engine.run_once(Command::Heartbeat { agent }, known.0.idempotency).await;
    done.map_err(|failure| from_engine(failure, RequestKind::Other))?;
    let timestamp = rfc3339::format_seconds(context.engine.now());
    Ok(json_response(200, &HeartbeatAnswer { status: "ok", agent_id: id, timestamp }))
}

#[derive(Serialize, JsonSchema)]
pub struct ReputationScoreAnswer {
    agent_id: String,
    score: Number,
    stats: Stats,
}

#[derive(Serialize, JsonSchema)]
pub struct Stats {
    total: u64,
    successes: u64,
    failures: u64,
}

/// `GET /reputation/{agent_id}`.
pub async fn reputation(
    State(context): State<RegistryContext>,
    _: OptionalCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let id = read_path_uuid(&id, "agent_id")?.to_string();
    context.engine.with_world(|world| {
        let agent = listed_agent(world, &id).ok_or_else(Failure::not_found)?;
        let standing = world.agent_state(agent).ok_or_else(Failure::not_found)?.standing;
        let stats = Stats {
            total: standing.settled_jobs(),
            successes: standing.successes,
            failures: standing.failures,
        };
        let score = raw_json::score(standing.score.millionths());
        Ok(json_response(200, &ReputationScoreAnswer { agent_id: id.clone(), score, stats }))
    })
}

#[derive(Serialize, JsonSchema)]
pub struct ReputationClaimAnswer {
    agent_id: String,
    applied: bool,
    score: Number,
    reason: &'static str,
}

/// `POST /reputation/{agent_id}/success` and `/failure`: answered, but nothing changes (D17).
pub async fn claim_reputation(
    State(context): State<RegistryContext>,
    _: OptionalCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let id = read_path_uuid(&id, "agent_id")?.to_string();
    context.engine.with_world(|world| {
        let agent = listed_agent(world, &id).ok_or_else(Failure::not_found)?;
        let standing = world.agent_state(agent).ok_or_else(Failure::not_found)?.standing;
        Ok(json_response(
            200,
            &ReputationClaimAnswer {
                agent_id: id.clone(),
                applied: false,
                score: raw_json::score(standing.score.millionths()),
                reason: "scores change only when a job is settled",
            },
        ))
    })
}
