//! Authenticates callers by their key, before the body is read.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use bytes::Bytes;
use rialto_core::agent::key::KeyHash;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use rialto_engine::keys::{Key, parse_bearer};
use rialto_engine::{Engine, Idempotency};

use super::RelayContext;
use super::errors::{self, ErrorResponse, error_response};
use super::{BODY_MAX, Code, Failure, ID};
use crate::adapter::caller::Caller;
use crate::adapter::idempotency::RequestIdempotency;
use crate::adapter::{RequestHead, body};

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

/// The request body.
pub struct BodyBytes(pub Bytes);

/// The path parameter.
pub struct PathParam(pub String);

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
        let caller = Caller::authenticate(&context.engine, &parts.headers, &parts.extensions);
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

impl AgentOrOperator {
    /// The caller of a request without an idempotency key.
    pub fn from_headers(context: &RelayContext, head: &RequestHead) -> Result<Self, ErrorResponse> {
        let agent = match Caller::authenticate(&context.engine, &head.headers, &head.extensions) {
            Ok(Caller::Agent(id)) => Some(id),
            Ok(Caller::Operator) => None,
            Ok(Caller::Anonymous | Caller::FormerAgent(_)) => {
                return Err(error_response(context, errors::unauthorized()));
            }
            Err(bad) => return Err(error_response(context, errors::from_key_rejection(bad))),
        };
        Ok(Self { agent, once: None })
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

impl FromRequestParts<RelayContext> for PathParam {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RelayContext,
    ) -> Result<Self, Self::Rejection> {
        // A path that is not valid UTF-8 names nothing.
        let name = Path::<String>::from_request_parts(parts, context).await;
        Ok(Self(name.map_or_else(|_| "\u{fffd}".to_owned(), |Path(name)| name)))
    }
}

impl FromRequest<RelayContext> for BodyBytes {
    type Rejection = ErrorResponse;

    async fn from_request(
        request: Request<Body>,
        context: &RelayContext,
    ) -> Result<Self, ErrorResponse> {
        let (parts, body) = request.into_parts();
        let limit = context.body_limit.min(BODY_MAX);
        let body = body::read_body(&parts.headers, body, limit).await;
        body.map(Self).map_err(|error| refuse_at(context, &parts, errors::from_edge(&error)))
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
