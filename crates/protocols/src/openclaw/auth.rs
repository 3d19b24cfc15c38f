//! Authentication: which agent a caller may act for. The key decides. An open hub also trusts the
//! agent id in the message, but only for agents native to this protocol.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use rialto_core::id::AgentId;
use rialto_core::job::Requester;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::ID;
use super::OpenclawContext;
use super::errors;
use super::wire::error::{Code, Failure};
use crate::adapter::OperationInfo;
use crate::adapter::caller::{AcceptsKeys, Caller, KeyRejection, KnownCaller};
use crate::adapter::request::PathParam;

impl AcceptsKeys for OpenclawContext {
    fn key_error(&self, rejection: KeyRejection, _: &OperationInfo) -> Response {
        errors::error_response(self, &from_key_rejection(rejection))
    }

    fn is_open(&self) -> bool {
        self.state.settings.is_open()
    }
}

/// The error for a key that is rejected, or missing.
pub fn from_key_rejection(rejection: KeyRejection) -> Failure {
    match rejection {
        KeyRejection::Missing | KeyRejection::Unknown => unauthorized(),
        KeyRejection::Suspended => errors::from_refusal(&Refusal::Suspended),
    }
}

/// The agent that acts: the key's agent, which the message must not contradict (R85).
pub fn acting_agent(known: KnownCaller, world: &World, named: Uuid) -> Result<AgentId, Failure> {
    let name = named.to_string();
    match known.0.caller {
        Caller::Agent(id) if world.alias_of(id, ID) == Some(&name) => Ok(id),
        Caller::Agent(_) => Err(differs()),
        Caller::Operator => Err(no_operator()),
        Caller::Anonymous | Caller::FormerAgent(_) => {
            native_agent(world, named).ok_or_else(|| Failure::not_found("agent"))
        }
    }
}

/// The requester: the key's agent, or on an open hub the one that the request names.
pub fn requester(known: KnownCaller, world: &World, named: Uuid) -> Result<Requester, Failure> {
    match (known.0.caller, native_agent(world, named)) {
        (Caller::Anonymous | Caller::FormerAgent(_), Some(agent)) => Ok(Requester::Agent(agent)),
        // An agent of another protocol, or one that was unregistered, needs its own key.
        (Caller::Anonymous | Caller::FormerAgent(_), None) => {
            match world.agent_by_alias(ID, &named.to_string()) {
                None => Ok(Requester::Guest(named.to_string())),
                Some(_) => Err(differs()),
            }
        }
        _ => acting_agent(known, world, named).map(Requester::Agent),
    }
}

/// The caller's own agent, where the message names none. An open hub requires `agent_id`.
pub fn calling_agent(
    known: KnownCaller,
    world: &World,
    named: Option<&str>,
) -> Result<AgentId, Failure> {
    let named = match named {
        Some(text) => Some(read_uuid_param(text, "agent_id")?),
        None => None,
    };
    match (known.0.caller, named) {
        (Caller::Agent(id), None) => Ok(id),
        (Caller::Operator, None) => Err(no_operator()),
        (Caller::Anonymous | Caller::FormerAgent(_), None) => {
            let text = "agent_id is required on a hub that runs without keys";
            Err(Failure::with_violations(vec![text.to_owned()]))
        }
        (_, Some(named)) => acting_agent(known, world, named),
    }
}

/// A registered agent whose home is this protocol.
pub fn native_agent(world: &World, named: Uuid) -> Option<AgentId> {
    let id = world.agent_by_alias(ID, &named.to_string())?;
    world.agent(id).filter(|agent| agent.home == ID && agent.active).map(|agent| agent.id)
}

/// A listed agent of any protocol.
pub fn listed_agent(world: &World, named: Uuid) -> Option<AgentId> {
    let id = world.agent_by_alias(ID, &named.to_string())?;
    world.agent(id).filter(|agent| agent.active).map(|agent| agent.id)
}

/// Reads an id from a path or a query.
pub fn read_uuid_param(text: &str, name: &str) -> Result<Uuid, Failure> {
    let wrong = || format!("{name} must be a UUID like 550e8400-e29b-41d4-a716-446655440000");
    let id = text.parse::<Hyphenated>().map(Hyphenated::into_uuid);
    id.map_err(|_| Failure::with_violations(vec![wrong()]))
}

/// A missing, an unknown and a revoked key get the same answer.
fn unauthorized() -> Failure {
    let text = "authentication required: send Authorization: Bearer rk_…";
    Failure::new(Code::Unauthorized, text)
}

fn differs() -> Failure {
    Failure::new(Code::Forbidden, "the agent in the message does not belong to this key")
}

fn no_operator() -> Failure {
    Failure::new(Code::Forbidden, "an operator key cannot act for an agent")
}

/// The id in the path; `None` if it is not a UUID.
pub struct PathUuid(pub Option<Uuid>);

impl<S: Sync> FromRequestParts<S> for PathUuid {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let PathParam(text) = PathParam::from_request_parts(parts, state).await?;
        Ok(Self(text.parse::<Hyphenated>().ok().map(Hyphenated::into_uuid)))
    }
}
