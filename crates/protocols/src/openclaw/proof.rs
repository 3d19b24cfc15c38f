//! Authentication: which agent a caller may act for. The key decides. An open hub also trusts the
//! agent id in the message, but only for agents native to this protocol.

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use rialto_core::command::Actor;
use rialto_core::id::AgentId;
use rialto_core::job::Requester;
use rialto_core::idempotency::Principal;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::Idempotency;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::codes::Code;
use super::failure::Failure;
use super::say::Refused;
use super::{BODY_MAX, ID, refusals};
use crate::adapter::caller::{BadKey, Caller};
use crate::adapter::idempotency::{Once, principal};
use crate::adapter::{Floor, body};

/// Any caller, with a valid key or with none. An invalid key is refused before the body is read.
#[derive(Clone, Copy, Debug)]
pub struct Anyone {
    pub caller: Caller,
    open: bool,
    pub once: Option<Idempotency>,
    /// Where the caller's idempotency records are counted.
    pub principal: Principal,
}

/// A caller with a key, or on an open hub without one.
#[derive(Clone, Copy, Debug)]
pub struct Known(pub Anyone);

impl FromRequestParts<Floor> for Anyone {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Refused> {
        let caller = Caller::read(&floor.engine, &parts.headers, &parts.extensions);
        let caller = caller.map_err(|bad| {
            let failure = match bad {
                BadKey::Unknown => unauthorized(),
                BadKey::Suspended => refusals::refused(&Refusal::Suspended),
            };
            Refused::new(floor, failure)
        })?;
        let once = parts.extensions.get::<Once>().map(|once| once.0);
        let principal = principal(caller, &parts.extensions);
        Ok(Self { caller, open: floor.openclaw.settings.open, once, principal })
    }
}

impl FromRequestParts<Floor> for Known {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Refused> {
        let anyone = Anyone::from_request_parts(parts, floor).await?;
        anyone.known().map_err(|failure| Refused::new(floor, failure))
    }
}

impl Anyone {
    /// The caller, if it has a key or the hub is open.
    pub fn known(self) -> Result<Known, Failure> {
        match self.caller {
            Caller::Nobody if !self.open => Err(unauthorized()),
            Caller::Former(_) => Err(unauthorized()),
            _ => Ok(Known(self)),
        }
    }

    /// The actor that publishes an identity.
    pub fn actor(&self) -> Actor {
        match self.caller {
            Caller::Nobody if self.open => Actor::Open,
            Caller::Nobody => Actor::Nobody,
            Caller::Agent(id) | Caller::Former(id) => Actor::Agent(id),
            Caller::Operator => Actor::Operator,
        }
    }
}

impl Known {
    /// The agent that acts: the key's agent, which the message must not contradict (R85).
    pub fn agent(&self, world: &World, named: Uuid) -> Result<AgentId, Failure> {
        let name = named.to_string();
        match self.0.caller {
            Caller::Agent(id) if world.name_of(id, ID) == Some(&name) => Ok(id),
            Caller::Agent(_) => Err(differs()),
            Caller::Operator => Err(no_operator()),
            Caller::Nobody | Caller::Former(_) => {
                native(world, named).ok_or_else(|| Failure::not_found("agent"))
            }
        }
    }

    /// The requester: the key's agent, or on an open hub the one that the request names.
    pub fn requester(&self, world: &World, named: Uuid) -> Result<Requester, Failure> {
        match (self.0.caller, native(world, named)) {
            (Caller::Nobody | Caller::Former(_), Some(agent)) => Ok(Requester::Agent(agent)),
            // An agent of another protocol, or one that was unregistered, needs its own key.
            (Caller::Nobody | Caller::Former(_), None) => {
                match world.agent_named(ID, &named.to_string()) {
                    None => Ok(Requester::Guest(named.to_string())),
                    Some(_) => Err(differs()),
                }
            }
            _ => self.agent(world, named).map(Requester::Agent),
        }
    }

    /// The caller's own agent, where the message names none. An open hub requires `agent_id`.
    pub fn own(&self, world: &World, named: Option<&str>) -> Result<AgentId, Failure> {
        let named = match named {
            Some(text) => Some(uuid(text, "agent_id")?),
            None => None,
        };
        match (self.0.caller, named) {
            (Caller::Agent(id), None) => Ok(id),
            (Caller::Operator, None) => Err(no_operator()),
            (Caller::Nobody | Caller::Former(_), None) => {
                let text = "agent_id is required on a hub that runs without keys";
                Err(Failure::violated(vec![text.to_owned()]))
            }
            (_, Some(named)) => self.agent(world, named),
        }
    }
}

/// A registered agent whose home is this protocol.
pub fn native(world: &World, named: Uuid) -> Option<AgentId> {
    let id = world.agent_named(ID, &named.to_string())?;
    world.agent(id).filter(|agent| agent.home == ID && agent.active).map(|agent| agent.id)
}

/// A listed agent of any protocol.
pub fn listed(world: &World, named: Uuid) -> Option<AgentId> {
    let id = world.agent_named(ID, &named.to_string())?;
    world.agent(id).filter(|agent| agent.active).map(|agent| agent.id)
}

/// Reads an id from a path or a query.
pub fn uuid(text: &str, name: &str) -> Result<Uuid, Failure> {
    let wrong = || format!("{name} must be a UUID like 550e8400-e29b-41d4-a716-446655440000");
    let id = text.parse::<Hyphenated>().map(Hyphenated::into_uuid);
    id.map_err(|_| Failure::violated(vec![wrong()]))
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
pub struct Sent(pub Bytes);

impl FromRequest<Floor> for Sent {
    type Rejection = Refused;

    async fn from_request(request: Request, floor: &Floor) -> Result<Self, Refused> {
        let (parts, body) = request.into_parts();
        let limit = floor.body_limit.min(BODY_MAX);
        let body = body::read(&parts.headers, body, limit).await;
        body.map(Self).map_err(|trouble| Refused::new(floor, refusals::trouble(&trouble)))
    }
}

/// The id in the path; `None` if it is not a UUID.
pub struct Named(pub Option<Uuid>);

impl FromRequestParts<Floor> for Named {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, floor: &Floor) -> Result<Self, Self::Rejection> {
        let name = Path::<String>::from_request_parts(parts, floor).await.ok();
        let id = name.and_then(|Path(name)| name.parse::<Hyphenated>().ok());
        Ok(Self(id.map(Hyphenated::into_uuid)))
    }
}
