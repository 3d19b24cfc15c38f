//! Authentication. The caller's identity comes from the key alone, never from a body or path.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap};
use rialto_core::agent::key::KeyHash;
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::keys::{Key, Kind, bearer};
use rialto_engine::{Engine, Idempotency};
use rialto_protocols::adapter::caller::{BadKey, Caller};
use rialto_protocols::adapter::idempotency::Once;
use rialto_protocols::adapter::{Floor, body};

use super::problem::Problem;

/// The holder of a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Agent(AgentId),
    Operator,
}

/// A key that was sent and is valid.
#[derive(Clone, Copy, Debug)]
pub struct Proven {
    pub who: Who,
    pub key: KeyHash,
    pub kind: Kind,
}

impl Proven {
    /// Reads the header. `None` without a key, or with a key that can only be used to register
    /// again. An invalid key is an error even where no key is needed.
    pub fn read(
        engine: &Engine,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Option<Self>, Problem> {
        let caller = Caller::read(engine, headers, extensions).map_err(|bad| match bad {
            BadKey::Unknown => Problem::unauthorized(),
            BadKey::Suspended => Refusal::Suspended.into(),
        });
        let who = match caller? {
            Caller::Agent(id) => Who::Agent(id),
            Caller::Operator => Who::Operator,
            Caller::Nobody | Caller::Former(_) => return Ok(None),
        };
        let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        let key = header.and_then(bearer).and_then(Key::read);
        Ok(key.map(|key| Self { who, key: key.hash(), kind: key.kind() }))
    }

    /// Whether the key is still valid and its agent still registered, for open streams.
    pub fn still_holds(&self, engine: &Engine) -> bool {
        let now = engine.now();
        engine.look(|world| {
            let works = world.key(&self.key).is_some_and(|key| key.works(now));
            works && self.agent().is_none_or(|id| world.admits(id))
        })
    }

    fn agent(&self) -> Option<AgentId> {
        match self.who {
            Who::Agent(id) => Some(id),
            Who::Operator => None,
        }
    }
}

/// Whether the agent is registered.
pub fn is_registered(world: &World, id: AgentId) -> bool {
    world.agent(id).is_some_and(|agent| agent.active)
}

/// A caller with a valid key.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub proven: Proven,
    pub once: Option<Idempotency>,
}

/// An agent, acting for itself.
#[derive(Clone, Copy, Debug)]
pub struct AsAgent {
    pub id: AgentId,
    pub kind: Kind,
    pub once: Option<Idempotency>,
}

/// The operator.
#[derive(Clone, Copy, Debug)]
pub struct AsOperator {
    pub once: Option<Idempotency>,
}

impl FromRequestParts<Floor> for Known {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Floor) -> Result<Self, Problem> {
        // The middleware has inserted it.
        let proven = parts.extensions.get::<Proven>().ok_or_else(Problem::unauthorized)?;
        let once = parts.extensions.get::<Once>().map(|once| once.0);
        Ok(Self { proven: *proven, once })
    }
}

impl FromRequestParts<Floor> for AsAgent {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Problem> {
        let Known { proven, once } = Known::from_request_parts(parts, floor).await?;
        match proven.who {
            Who::Agent(id) => Ok(Self { id, kind: proven.kind, once }),
            Who::Operator => Err(Problem::forbidden("an operator key cannot act for an agent")),
        }
    }
}

impl FromRequestParts<Floor> for AsOperator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Problem> {
        let Known { proven, once } = Known::from_request_parts(parts, floor).await?;
        match proven.who {
            Who::Operator => Ok(Self { once }),
            Who::Agent(_) => Err(Problem::forbidden("the operator key is required")),
        }
    }
}

/// A caller that may only read, authenticated by a key or by a read-only credential.
#[derive(Clone, Copy, Debug)]
pub struct ReadingParty(pub Who);

impl FromRequestParts<Floor> for ReadingParty {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Floor) -> Result<Self, Problem> {
        // The middleware has inserted one of them.
        let by_key = parts.extensions.get::<Proven>().map(|proven| Self(proven.who));
        let reads = parts.extensions.get::<Self>().copied();
        by_key.or(reads).ok_or_else(Problem::unauthorized)
    }
}

/// The variable part of the path.
pub struct Part(pub String);

impl FromRequestParts<Floor> for Part {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Problem> {
        // This fails only for bytes that are not valid text, and no name contains those.
        let part = Path::<String>::from_request_parts(parts, floor).await;
        part.map(|Path(text)| Self(text)).map_err(|_| Problem::not_found())
    }
}

/// The complete body.
pub struct Sent(pub Bytes);

impl FromRequest<Floor> for Sent {
    type Rejection = Problem;

    async fn from_request(request: Request<Body>, floor: &Floor) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, floor.body_limit).await;
        body.map(Self).map_err(Problem::from)
    }
}
