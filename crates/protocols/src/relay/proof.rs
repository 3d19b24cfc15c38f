//! Authenticates callers by their key, before the body is read.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use bytes::Bytes;
use rialto_core::agent::key::KeyHash;
use rialto_core::id::AgentId;
use rialto_engine::keys::{Key, bearer};
use rialto_engine::{Engine, Idempotency};

use super::codes::Code;
use super::refusals::{self, Refused};
use super::shape::Failure;
use super::{BODY_MAX, ID};
use crate::adapter::caller::Caller;
use crate::adapter::idempotency::Once;
use crate::adapter::{Floor, Head, body};

/// Any caller, with a valid key or none.
#[derive(Clone, Copy, Debug)]
pub struct Anyone {
    pub caller: Caller,
    pub once: Option<Idempotency>,
}

/// An agent, by its own key.
#[derive(Clone, Copy, Debug)]
pub struct AsAgent {
    pub id: AgentId,
    pub once: Option<Idempotency>,
}

/// The operator.
#[derive(Clone, Copy, Debug)]
pub struct AsOperator {
    pub once: Option<Idempotency>,
}

/// An agent or the operator.
#[derive(Clone, Copy, Debug)]
pub struct AsEither {
    /// `None` for the operator.
    pub agent: Option<AgentId>,
    pub once: Option<Idempotency>,
}

/// The presented key, for streams that end with it and for answers that repeat it.
pub struct Shown(pub Option<Key>);

/// The request body.
pub struct Sent(pub Bytes);

/// The path parameter.
pub struct Named(pub String);

fn refuse(floor: &Floor, failure: Failure) -> Refused {
    Refused::new(failure, floor.engine.now())
}

/// A message refused because of its key gets the same form as any rejected message.
fn refuse_at(floor: &Floor, parts: &Parts, failure: Failure) -> Refused {
    let refused = refuse(floor, failure);
    match parts.uri.path().trim_start_matches("/relay") == "/messages" {
        true => refused.rejected(),
        false => refused,
    }
}

impl FromRequestParts<Floor> for Anyone {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Refused> {
        let caller = Caller::read(&floor.engine, &parts.headers, &parts.extensions);
        let caller = caller.map_err(|bad| refuse_at(floor, parts, refusals::bad_key(bad)))?;
        let once = parts.extensions.get::<Once>().map(|once| once.0);
        Ok(Self { caller, once })
    }
}

impl FromRequestParts<Floor> for AsEither {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Refused> {
        let Anyone { caller, once } = Anyone::from_request_parts(parts, floor).await?;
        match caller {
            Caller::Agent(id) => Ok(Self { agent: Some(id), once }),
            Caller::Operator => Ok(Self { agent: None, once }),
            Caller::Nobody | Caller::Former(_) => {
                Err(refuse_at(floor, parts, refusals::unauthorized()))
            }
        }
    }
}

impl AsEither {
    /// The caller of a request without an idempotency key.
    pub fn of(floor: &Floor, head: &Head) -> Result<Self, Refused> {
        let agent = match Caller::read(&floor.engine, &head.headers, &head.extensions) {
            Ok(Caller::Agent(id)) => Some(id),
            Ok(Caller::Operator) => None,
            Ok(Caller::Nobody | Caller::Former(_)) => {
                return Err(refuse(floor, refusals::unauthorized()));
            }
            Err(bad) => return Err(refuse(floor, refusals::bad_key(bad))),
        };
        Ok(Self { agent, once: None })
    }
}

impl FromRequestParts<Floor> for AsAgent {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Refused> {
        let AsEither { agent, once } = AsEither::from_request_parts(parts, floor).await?;
        // An operator key opens no inbox (R56).
        let id = agent.ok_or_else(|| refuse(floor, refusals::unauthorized()))?;
        Ok(Self { id, once })
    }
}

impl FromRequestParts<Floor> for AsOperator {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Refused> {
        let AsEither { agent, once } = AsEither::from_request_parts(parts, floor).await?;
        let only = "operator key required; agents register with POST /register";
        match agent {
            None => Ok(Self { once }),
            Some(_) => Err(refuse(floor, Failure::new(Code::Forbidden, only))),
        }
    }
}

impl FromRequestParts<Floor> for Shown {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Floor) -> Result<Self, Self::Rejection> {
        Ok(Self(key(&parts.headers)))
    }
}

fn key(headers: &HeaderMap) -> Option<Key> {
    headers.get(AUTHORIZATION)?.to_str().ok().and_then(bearer).and_then(Key::read)
}

impl FromRequestParts<Floor> for Named {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Self::Rejection> {
        // A path that is not valid UTF-8 names nothing.
        let name = Path::<String>::from_request_parts(parts, floor).await;
        Ok(Self(name.map_or_else(|_| "\u{fffd}".to_owned(), |Path(name)| name)))
    }
}

impl FromRequest<Floor> for Sent {
    type Rejection = Refused;

    async fn from_request(request: Request<Body>, floor: &Floor) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let limit = floor.body_limit.min(BODY_MAX);
        let body = body::read(&parts.headers, body, limit).await;
        body.map(Self).map_err(|trouble| refuse_at(floor, &parts, refusals::trouble(&trouble)))
    }
}

/// Whether a key is still valid for this agent.
pub fn still_holds(engine: &Engine, agent: AgentId, key: &KeyHash) -> bool {
    let now = engine.now();
    engine.look(|world| {
        let works = world.key(key).is_some_and(|key| key.works(now));
        works && world.admits(agent)
    })
}

/// The listed agent with this address.
pub fn listed(world: &rialto_core::world::World, canonical: &str) -> Option<AgentId> {
    let id = world.agent_named(ID, canonical)?;
    world.agent(id).filter(|agent| agent.active).map(|agent| agent.id)
}
