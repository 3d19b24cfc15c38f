//! Authenticates callers. The key proves the identity; an open hub also accepts the identity a body
//! claims, but only for agents native to this protocol.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use rialto_core::command::Actor;
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::Idempotency;

use super::ID;
use super::codes::{self, Context, Failure};
use super::wire::reserved_prefix;
use crate::adapter::caller::{BadKey, Caller};
use crate::adapter::idempotency::Once;
use crate::adapter::{Floor, body};

/// Any caller, with a valid key or none; a bad key is refused before the body is read.
#[derive(Clone, Copy, Debug)]
pub struct Anyone {
    pub caller: Caller,
    open: bool,
    pub once: Option<Idempotency>,
}

/// A caller with a key, or one whose claimed identity is accepted.
#[derive(Clone, Copy, Debug)]
pub struct Known(pub Anyone);

/// The request body.
pub struct Sent(pub Bytes);

/// The path parameter.
pub struct Named(pub String);

impl FromRequestParts<Floor> for Named {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Failure> {
        // A path that is not valid UTF-8 names nothing.
        let name = Path::<String>::from_request_parts(parts, floor).await;
        name.map(|Path(name)| Self(name)).map_err(|_| Failure::not_found())
    }
}

impl FromRequestParts<Floor> for Anyone {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Failure> {
        let caller = Caller::read(&floor.engine, &parts.headers, &parts.extensions);
        let caller = caller.map_err(|bad| match bad {
            BadKey::Unknown => Failure::unauthorized(),
            BadKey::Suspended => codes::refused(&Refusal::Suspended, Context::Other),
        })?;
        let once = parts.extensions.get::<Once>().map(|once| once.0);
        Ok(Self { caller, open: floor.settings.registry.open, once })
    }
}

impl FromRequestParts<Floor> for Known {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Failure> {
        let anyone = Anyone::from_request_parts(parts, floor).await?;
        match anyone.caller {
            Caller::Nobody if !anyone.open => Err(Failure::unauthorized()),
            Caller::Former(_) => Err(Failure::unauthorized()),
            _ => Ok(Self(anyone)),
        }
    }
}

impl FromRequest<Floor> for Sent {
    type Rejection = Failure;

    async fn from_request(request: Request<Body>, floor: &Floor) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, floor.body_limit).await;
        body.map(Self).map_err(codes::trouble)
    }
}

impl Anyone {
    /// The caller of a registration.
    pub fn actor(&self) -> Actor {
        match self.caller {
            Caller::Nobody if self.open => Actor::Open,
            Caller::Nobody => Actor::Nobody,
            Caller::Agent(id) | Caller::Former(id) => Actor::Agent(id),
            Caller::Operator => Actor::Operator,
        }
    }

    /// Whether the identity in the body is accepted without proof.
    pub fn is_open(&self) -> bool {
        self.open && self.caller == Caller::Nobody
    }

    pub fn is_operator(&self) -> bool {
        self.caller == Caller::Operator
    }
}

impl Known {
    /// The acting agent: the key's own. A name in the request must not contradict it.
    pub fn agent(&self, world: &World, named: Option<&str>) -> Result<AgentId, Failure> {
        match self.0.caller {
            Caller::Agent(id) => match named {
                Some(name) if world.agent_named(ID, name) != Some(id) => Err(differs()),
                _ => Ok(id),
            },
            Caller::Operator => Err(Failure::forbidden("an operator key cannot act for an agent")),
            Caller::Nobody | Caller::Former(_) => {
                let missing = || Failure::field("/agent_id", "agent_id is required");
                native(world, named.ok_or_else(missing)?).ok_or_else(Failure::not_found)
            }
        }
    }

    /// The agent in the path. Only its own key is accepted; for others it does not exist.
    pub fn agent_of_path(&self, world: &World, named: &str) -> Result<AgentId, Failure> {
        match self.0.caller {
            Caller::Agent(id) if world.agent_named(ID, named) == Some(id) => Ok(id),
            Caller::Agent(_) => Err(Failure::not_found()),
            Caller::Operator => Err(Failure::forbidden("an operator key cannot act for an agent")),
            Caller::Nobody | Caller::Former(_) => {
                native(world, named).ok_or_else(Failure::not_found)
            }
        }
    }

    /// Whether the caller may act for this owner.
    pub fn speaks_for(&self, world: &World, owner: &str) -> bool {
        match self.0.caller {
            Caller::Agent(id) => self.owner(world, id).is_some_and(|name| name == owner),
            Caller::Operator | Caller::Former(_) => false,
            Caller::Nobody => self.0.open && reserved_prefix(owner).is_none(),
        }
    }

    /// The caller's own owner.
    pub fn own(&self, world: &World) -> Option<OwnerId> {
        match self.0.caller {
            Caller::Agent(id) => world.agent(id).map(|agent| agent.owner),
            _ => None,
        }
    }

    fn owner<'w>(&self, world: &'w World, id: AgentId) -> Option<&'w str> {
        let agent = world.agent(id)?;
        world.owner(agent.owner).map(|owner| owner.name.as_str())
    }
}

/// A registered agent whose home is this protocol.
pub fn native(world: &World, name: &str) -> Option<AgentId> {
    let id = world.agent_named(ID, name)?;
    world.agent(id).filter(|agent| agent.home == ID && agent.active).map(|agent| agent.id)
}

pub fn differs() -> Failure {
    Failure::forbidden("the body names an agent or owner that this key does not belong to")
}
