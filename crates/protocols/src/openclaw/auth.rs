//! Authentication: which agent a caller may act for. The key decides. An open hub also trusts the
//! agent id in the message, but only for agents native to this protocol.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use rialto_core::command::Actor;
use rialto_core::id::AgentId;
use rialto_core::idempotency::Principal;
use rialto_core::job::Requester;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::Idempotency;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::OpenclawContext;
use super::errors::{self, ErrorResponse};
use super::wire::error::{Code, Failure};
use super::{BODY_MAX, ID};
use crate::adapter::body;
use crate::adapter::caller::{Caller, KeyRejection};
use crate::adapter::idempotency::{RequestIdempotency, principal};

/// Any caller, with a valid key or with none. An invalid key is refused before the body is read.
#[derive(Clone, Copy, Debug)]
pub struct OptionalCaller {
    pub caller: Caller,
    open: bool,
    pub idempotency: Option<Idempotency>,
    /// Where the caller's idempotency records are counted.
    pub principal: Principal,
}

/// A caller with a key, or on an open hub without one.
#[derive(Clone, Copy, Debug)]
pub struct KnownCaller(pub OptionalCaller);

impl FromRequestParts<OpenclawContext> for OptionalCaller {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &OpenclawContext,
    ) -> Result<Self, ErrorResponse> {
        let caller = Caller::authenticate(&context.engine, &parts.headers, &parts.extensions);
        let caller = caller.map_err(|bad| {
            let failure = match bad {
                KeyRejection::Unknown => unauthorized(),
                KeyRejection::Suspended => errors::from_refusal(&Refusal::Suspended),
            };
            ErrorResponse::new(context, failure)
        })?;
        let once = parts.extensions.get::<RequestIdempotency>().map(|once| once.0);
        let principal = principal(caller, &parts.extensions);
        Ok(Self { caller, open: context.state.settings.is_open(), idempotency: once, principal })
    }
}

impl FromRequestParts<OpenclawContext> for KnownCaller {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &OpenclawContext,
    ) -> Result<Self, ErrorResponse> {
        let anyone = OptionalCaller::from_request_parts(parts, context).await?;
        anyone.require_known().map_err(|failure| ErrorResponse::new(context, failure))
    }
}

impl OptionalCaller {
    /// The caller, if it has a key or the hub is open.
    pub fn require_known(self) -> Result<KnownCaller, Failure> {
        match self.caller {
            Caller::Anonymous if !self.open => Err(unauthorized()),
            Caller::FormerAgent(_) => Err(unauthorized()),
            _ => Ok(KnownCaller(self)),
        }
    }

    /// The actor that publishes an identity.
    pub fn actor(&self) -> Actor {
        match self.caller {
            Caller::Anonymous if self.open => Actor::OpenRegistration,
            Caller::Anonymous => Actor::Anonymous,
            Caller::Agent(id) | Caller::FormerAgent(id) => Actor::Agent(id),
            Caller::Operator => Actor::Operator,
        }
    }
}

impl KnownCaller {
    /// The agent that acts: the key's agent, which the message must not contradict (R85).
    pub fn acting_agent(&self, world: &World, named: Uuid) -> Result<AgentId, Failure> {
        let name = named.to_string();
        match self.0.caller {
            Caller::Agent(id) if world.alias_of(id, ID) == Some(&name) => Ok(id),
            Caller::Agent(_) => Err(differs()),
            Caller::Operator => Err(no_operator()),
            Caller::Anonymous | Caller::FormerAgent(_) => {
                native_agent(world, named).ok_or_else(|| Failure::not_found("agent"))
            }
        }
    }

    /// The requester: the key's agent, or on an open hub the one that the request names.
    pub fn requester(&self, world: &World, named: Uuid) -> Result<Requester, Failure> {
        match (self.0.caller, native_agent(world, named)) {
            (Caller::Anonymous | Caller::FormerAgent(_), Some(agent)) => {
                Ok(Requester::Agent(agent))
            }
            // An agent of another protocol, or one that was unregistered, needs its own key.
            (Caller::Anonymous | Caller::FormerAgent(_), None) => {
                match world.agent_by_alias(ID, &named.to_string()) {
                    None => Ok(Requester::Guest(named.to_string())),
                    Some(_) => Err(differs()),
                }
            }
            _ => self.acting_agent(world, named).map(Requester::Agent),
        }
    }

    /// The caller's own agent, where the message names none. An open hub requires `agent_id`.
    pub fn calling_agent(&self, world: &World, named: Option<&str>) -> Result<AgentId, Failure> {
        let named = match named {
            Some(text) => Some(read_uuid_param(text, "agent_id")?),
            None => None,
        };
        match (self.0.caller, named) {
            (Caller::Agent(id), None) => Ok(id),
            (Caller::Operator, None) => Err(no_operator()),
            (Caller::Anonymous | Caller::FormerAgent(_), None) => {
                let text = "agent_id is required on a hub that runs without keys";
                Err(Failure::with_violations(vec![text.to_owned()]))
            }
            (_, Some(named)) => self.acting_agent(world, named),
        }
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

/// The whole body.
pub struct BodyBytes(pub Bytes);

impl FromRequest<OpenclawContext> for BodyBytes {
    type Rejection = ErrorResponse;

    async fn from_request(
        request: Request,
        context: &OpenclawContext,
    ) -> Result<Self, ErrorResponse> {
        let (parts, body) = request.into_parts();
        let limit = context.body_limit.min(BODY_MAX);
        let body = body::read_body(&parts.headers, body, limit).await;
        body.map(Self).map_err(|error| ErrorResponse::new(context, errors::from_edge(&error)))
    }
}

/// The id in the path; `None` if it is not a UUID.
pub struct PathParam(pub Option<Uuid>);

impl FromRequestParts<OpenclawContext> for PathParam {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &OpenclawContext,
    ) -> Result<Self, Self::Rejection> {
        let name = Path::<String>::from_request_parts(parts, context).await.ok();
        let id = name.and_then(|Path(name)| name.parse::<Hyphenated>().ok());
        Ok(Self(id.map(Hyphenated::into_uuid)))
    }
}
