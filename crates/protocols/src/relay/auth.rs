//! Authenticates callers by their key, before the body is read.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use rialto_core::agent::key::KeyHash;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::{Engine, Idempotency};

use super::RelayContext;
use super::errors::{self, error_response};
use super::operations::MESSAGES;
use super::{Code, Failure, ID};
use crate::adapter::OperationInfo;
use crate::adapter::caller::{AcceptsKeys, Caller, KeyRejection, KnownCaller};

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

impl AcceptsKeys for RelayContext {
    fn key_error(&self, rejection: KeyRejection, operation: &OperationInfo) -> Response {
        let refused = error_response(self, errors::from_key_rejection(rejection));
        // A message refused because of its key has the same form as any rejected message.
        if operation.path.trim_start_matches("/relay") == MESSAGES {
            refused.into_rejected_message().into_response()
        } else {
            refused.into_response()
        }
    }
}

impl FromRequestParts<RelayContext> for AgentOrOperator {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, Response> {
        let KnownCaller(known) = KnownCaller::from_request_parts(parts, context).await?;
        let agent = if let Caller::Agent(id) = known.caller { Some(id) } else { None };
        Ok(Self { agent, once: known.idempotency })
    }
}

impl FromRequestParts<RelayContext> for AgentCaller {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, Response> {
        let AgentOrOperator { agent, once } =
            AgentOrOperator::from_request_parts(parts, context).await?;
        // An operator key opens no inbox (R56).
        let refused = || error_response(context, errors::unauthorized()).into_response();
        Ok(Self { id: agent.ok_or_else(refused)?, once })
    }
}

impl FromRequestParts<RelayContext> for OperatorCaller {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, Response> {
        let AgentOrOperator { agent, once } =
            AgentOrOperator::from_request_parts(parts, context).await?;
        let only = "operator key required; agents register with POST /register";
        match agent {
            None => Ok(Self { once }),
            Some(_) => {
                Err(error_response(context, Failure::new(Code::Forbidden, only)).into_response())
            }
        }
    }
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
