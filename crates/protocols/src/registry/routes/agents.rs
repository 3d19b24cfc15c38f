//! Agents: register, show, unregister, heartbeat, reputation.

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_engine::keys::{Key, Kind};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Answered;
use crate::adapter::caller::Caller;
use crate::adapter::{Floor, Newcomer, aliases, naming};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::{ijson, rfc3339, raw_json};
use crate::registry::codes::{Context, Failure, failed, json, unread};
use crate::registry::proof::{Anyone, Known, Named, Sent, native};
use crate::registry::wire::{Register, path_uuid};
use crate::registry::{ID, examples, shape, translate};

#[derive(Serialize)]
struct Registered {
    status: &'static str,
    agent_id: String,
    reputation_score: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_secret: Option<String>,
}

/// `POST /register`: a new agent, or an update of a known one (§3.1).
pub async fn register(
    State(floor): State<Floor>,
    anyone: Anyone,
    shown: Shown,
    sent: Sent,
) -> Answered {
    let wire = Register::read(&sent.0)?;
    if let Some((field, max)) = wire.too_large() {
        return Err(Failure::too_large(field, max));
    }
    let owner_id = floor.engine.look(|world| naming::owner(world, wire.owner_id));
    let wire = Register { owner_id, ..wire };
    if let Some(url) = wire.api_endpoint.as_deref().filter(|url| translate::is_callable(url)) {
        let blocked = |why| Failure::field("/api_endpoint", format!("api_endpoint {why}"));
        floor.egress.check(url).map_err(blocked)?;
    }
    let native = wire.agent_id.unwrap_or_else(|| floor.engine.ids().uuid());
    let key = Key::make(Kind::Registry, floor.engine.ids().key_bits());
    let text = native.to_string();
    let newcomer = Newcomer { home: ID, native: &text, name: &wire.agent_name };
    let aliases = aliases(&floor.engine, newcomer);
    let rotated = wire.rotate_key;
    let command = translate::enrol(wire, native, anyone.actor(), aliases, key.hash());
    let ran = floor.engine.run_once(command, anyone.once).await;
    let ran = ran.map_err(|failure| failed(failure, Context::Other))?;
    let Answer::Agent { agent, desk, new, .. } = ran.answer else {
        return Err(Failure::not_found());
    };
    // A repeat after a crash finds the agent registered, but its key was not stored and is lost.
    let fresh = (new || rotated) && !ran.replayed;
    let body = Registered {
        status: "registered",
        agent_id: agent.native.clone(),
        reputation_score: raw_json::score(desk.standing.score.millionths()),
        api_key: if fresh { Some(key.expose().to_owned()) } else { shown.0 },
        webhook_secret: (agent.liveness == rialto_core::agent::Liveness::Reached).then(|| {
            floor.engine.secret().webhook_secret(agent.id, agent.secret_generation).text()
        }),
    };
    Ok(json(if new { 201 } else { 200 }, &body))
}

/// The presented key, repeated to the caller that already has it.
pub struct Shown(Option<String>);

impl axum::extract::FromRequestParts<Floor> for Shown {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        _: &Floor,
    ) -> Result<Self, Self::Rejection> {
        let header = parts.headers.get(axum::http::header::AUTHORIZATION);
        let key =
            header.and_then(|value| value.to_str().ok()).and_then(rialto_engine::keys::bearer);
        // An operator key is not an agent's api_key.
        Ok(Self(key.filter(|key| key.starts_with("rk_")).map(str::to_owned)))
    }
}

/// `GET /agents/{agent_id}`: an agent's public entry.
pub async fn show(State(floor): State<Floor>, _: Anyone, Named(id): Named) -> Answered {
    let id = path_uuid(&id, "agent_id")?.to_string();
    let now = floor.engine.now();
    let entry = floor.engine.look(|world| {
        let agent = public(world, &id)?;
        let (agent, desk) = world.agent(agent).zip(world.desk(agent))?;
        Some(shape::entry(&floor, world, (agent, desk), None, now))
    });
    Ok(json(200, &entry.ok_or_else(Failure::not_found)?))
}

/// A listed agent of any protocol.
pub fn public(world: &rialto_core::world::World, name: &str) -> Option<AgentId> {
    let id = world.agent_named(ID, name)?;
    world.agent(id).filter(|agent| agent.active).map(|agent| agent.id)
}

#[derive(Serialize)]
struct Gone {
    status: &'static str,
    agent_id: String,
}

/// `DELETE /agents/{agent_id}`: removes the agent from the lists; the id stays reserved.
pub async fn unregister(State(floor): State<Floor>, known: Known, Named(id): Named) -> Answered {
    let id = path_uuid(&id, "agent_id")?.to_string();
    let (agent, by_operator) = floor.engine.look(|world| {
        if known.0.caller == Caller::Operator {
            let agent = native(world, &id).ok_or_else(Failure::not_found)?;
            return Ok::<_, Failure>((agent, true));
        }
        Ok((known.agent_of_path(world, &id)?, false))
    })?;
    let done = floor.engine.run(Command::Remove { agent, by_operator }).await;
    done.map_err(|failure| failed(failure, Context::Other))?;
    Ok(json(200, &Gone { status: "unregistered", agent_id: id }))
}

#[derive(Serialize)]
struct Beaten {
    status: &'static str,
    agent_id: String,
    timestamp: String,
}

/// `POST /heartbeat`: the agent is online and will keep sending heartbeats.
pub async fn heartbeat(State(floor): State<Floor>, known: Known, sent: Sent) -> Answered {
    let whole = unread(examples::BEAT);
    let body = ijson::read(&sent.0).map_err(Malformed::from).map_err(&whole)?;
    let f = Fields::of(&body, "").map_err(&whole)?;
    let id = f.required("agent_id", f.uuid("agent_id")?)?.to_string();
    let agent = floor.engine.look(|world| known.agent(world, Some(&id)))?;
    let done = floor.engine.run_once(Command::Beat { agent }, known.0.once).await;
    done.map_err(|failure| failed(failure, Context::Other))?;
    let timestamp = rfc3339::seconds(floor.engine.now());
    Ok(json(200, &Beaten { status: "ok", agent_id: id, timestamp }))
}

#[derive(Serialize)]
struct Reputation {
    agent_id: String,
    score: Box<RawValue>,
    stats: Stats,
}

#[derive(Serialize)]
struct Stats {
    total: u64,
    successes: u64,
    failures: u64,
}

/// `GET /reputation/{agent_id}`.
pub async fn reputation(State(floor): State<Floor>, _: Anyone, Named(id): Named) -> Answered {
    let id = path_uuid(&id, "agent_id")?.to_string();
    floor.engine.look(|world| {
        let agent = public(world, &id).ok_or_else(Failure::not_found)?;
        let standing = world.desk(agent).ok_or_else(Failure::not_found)?.standing;
        let stats = Stats {
            total: standing.settled(),
            successes: standing.successes,
            failures: standing.failures,
        };
        let score = raw_json::score(standing.score.millionths());
        Ok(json(200, &Reputation { agent_id: id.clone(), score, stats }))
    })
}

#[derive(Serialize)]
struct NotApplied {
    agent_id: String,
    applied: bool,
    score: Box<RawValue>,
    reason: &'static str,
}

/// `POST /reputation/{agent_id}/success` and `/failure`: answered, but nothing changes (D17).
pub async fn claim_reputation(State(floor): State<Floor>, _: Anyone, Named(id): Named) -> Answered {
    let id = path_uuid(&id, "agent_id")?.to_string();
    floor.engine.look(|world| {
        let agent = public(world, &id).ok_or_else(Failure::not_found)?;
        let standing = world.desk(agent).ok_or_else(Failure::not_found)?.standing;
        Ok(json(
            200,
            &NotApplied {
                agent_id: id.clone(),
                applied: false,
                score: raw_json::score(standing.score.millionths()),
                reason: "scores change only when a job is settled",
            },
        ))
    })
}
