//! Authenticates callers by their key, before the body is read.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use rialto_core::agent::key::KeyHash;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::keys::{Key, parse_bearer};
use rialto_engine::{Engine, Idempotency};

use super::RelayContext;
use super::errors::{self, ErrorResponse, error_response};
use super::{Code, Failure, ID};
use crate::adapter::caller::Caller;
use crate::adapter::idempotency::RequestIdempotency;

/// Any caller, with a valid key or none.
#[derive(Clone, Copy, Debug)]
pub struct OptionalCaller {
    pub caller: Caller,
    pub idempotency: Option<Idempotency>,
}

/// An agent, by its own key.
#[derive(Clone, Copy, Debug)]
pub struct AgentCaller {
    pub id: AgentId,
    pub once: Option<Idempotency>,
}

/// The operator.
#[derive(Clone, Copy, Debug)]
pub struct OperatorCaller {
    pub once: Option<Idempotency>,
}

/// An agent or the operator.
#[derive(Clone, Copy, Debug)]
pub struct AgentOrOperator {
    /// `None` for the operator.
    pub agent: Option<AgentId>,
    pub once: Option<Idempotency>,
}

/// The presented key, for streams that end with it and for answers that repeat it.
pub struct PresentedKey(pub Option<Key>);

/// A message refused because of its key gets the same form as any rejected message.
fn refuse_at(context: &RelayContext, parts: &Parts, failure: Failure) -> ErrorResponse {
    let refused = error_response(context, failure);
    let is_message = parts.uri.path().trim_start_matches("/relay") == "/messages";
    if is_message { refused.into_rejected_message() } else { refused }
}

impl FromRequestParts<RelayContext> for OptionalCaller {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, ErrorResponse> {
        let caller = Caller::authenticate(&context.engine, parts);
        let caller =
            caller.map_err(|bad| refuse_at(context, parts, errors::from_key_rejection(bad)))?;
        let once = parts.extensions.get::<RequestIdempotency>().map(|once| once.0);
        Ok(Self { caller, idempotency: once })
    }
}

impl FromRequestParts<RelayContext> for AgentOrOperator {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, ErrorResponse> {
        let OptionalCaller { caller, idempotency: once } =
            OptionalCaller::from_request_parts(parts, context).await?;
        match caller {
            Caller::Agent(id) => Ok(Self { agent: Some(id), once }),
            Caller::Operator => Ok(Self { agent: None, once }),
            Caller::Anonymous | Caller::FormerAgent(_) => {
                Err(refuse_at(context, parts, errors::unauthorized()))
            }
        }
    }
}

impl FromRequestParts<RelayContext> for AgentCaller {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, ErrorResponse> {
        let AgentOrOperator { agent, once } =
            AgentOrOperator::from_request_parts(parts, context).await?;
        // An operator key opens no inbox (R56).
        let id = agent.ok_or_else(|| error_response(context, errors::unauthorized()))?;
        Ok(Self { id, once })
    }
}

impl FromRequestParts<RelayContext> for OperatorCaller {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, ErrorResponse> {
        let AgentOrOperator { agent, once } =
            AgentOrOperator::from_request_parts(parts, context).await?;
        let only = "operator key required; agents register with POST /register";
        match agent {
            None => Ok(Self { once }),
            Some(_) => Err(error_response(context, Failure::new(Code::Forbidden, only))),
        }
    }
}

impl FromRequestParts<RelayContext> for PresentedKey {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &RelayContext,
    ) -> Result<Self, Self::Rejection> {
        Ok(Self(key(&parts.headers)))
    }
}

fn key(headers: &HeaderMap) -> Option<Key> {
    headers.get(AUTHORIZATION)?.to_str().ok().and_then(parse_bearer).and_then(Key::parse)
}

/// Whether a key is still valid for this agent.
pub fn is_key_valid(engine: &Engine, agent: AgentId, key: &KeyHash) -> bool {
    let now = engine.now();
    engine.with_world(|world| {
        let works = world.key(key).is_some_and(|key| key.is_valid(now));
        works && world.may_act(agent)
    })
}

/// The listed agent with this address.
pub fn listed_agent(world: &World, canonical: &str) -> Option<AgentId> {
    let id = world.agent_by_alias(ID, canonical)?;
    world.agent(id).filter(|agent| agent.active).map(|agent| agent.id)
}
