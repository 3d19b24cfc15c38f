//! Authentication: the keys of callers, and the callback tokens of jobs.
//!
//! The key proves the identity; an open hub also accepts the identity a body claims, but only for
//! agents native to this protocol.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::command::Actor;
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::job::Job;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::Idempotency;
use rialto_engine::secret::HubSecret;
use sha2::Sha256;
use uuid::Uuid;

use super::ID;
use super::RegistryContext;
use super::errors::{self, Failure, RequestKind};
use super::wire::reserved_prefix;
use crate::adapter::body;
use crate::adapter::caller::{Caller, KeyRejection};
use crate::adapter::idempotency::RequestIdempotency;

/// The length in bytes of the truncated MAC of a callback token: 128 bits.
const MAC_LEN: usize = 16;

/// Any caller, with a valid key or none; a bad key is refused before the body is read.
#[derive(Clone, Copy, Debug)]
pub struct OptionalCaller {
    pub caller: Caller,
    open: bool,
    pub idempotency: Option<Idempotency>,
}

/// A caller with a key, or one whose claimed identity is accepted.
#[derive(Clone, Copy, Debug)]
pub struct KnownCaller(pub OptionalCaller);

/// The request body.
pub struct BodyBytes(pub Bytes);

/// The path parameter.
pub struct PathParam(pub String);

impl FromRequestParts<RegistryContext> for PathParam {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RegistryContext,
    ) -> Result<Self, Failure> {
        // A path that is not valid UTF-8 names nothing.
        let name = Path::<String>::from_request_parts(parts, context).await;
        name.map(|Path(name)| Self(name)).map_err(|_| Failure::not_found())
    }
}

impl FromRequestParts<RegistryContext> for OptionalCaller {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RegistryContext,
    ) -> Result<Self, Failure> {
        let caller = Caller::authenticate(&context.engine, &parts.headers, &parts.extensions);
        let caller = caller.map_err(|bad| match bad {
            KeyRejection::Unknown => Failure::unauthorized(),
            KeyRejection::Suspended => {
                errors::from_refusal(&Refusal::Suspended, RequestKind::Other)
            }
        })?;
        let once = parts.extensions.get::<RequestIdempotency>().map(|once| once.0);
        Ok(Self { caller, open: context.state.settings.is_open(), idempotency: once })
    }
}

impl FromRequestParts<RegistryContext> for KnownCaller {
    type Rejection = Failure;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &RegistryContext,
    ) -> Result<Self, Failure> {
        let anyone = OptionalCaller::from_request_parts(parts, context).await?;
        match anyone.caller {
            Caller::Anonymous if !anyone.open => Err(Failure::unauthorized()),
            Caller::FormerAgent(_) => Err(Failure::unauthorized()),
            _ => Ok(Self(anyone)),
        }
    }
}

impl FromRequest<RegistryContext> for BodyBytes {
    type Rejection = Failure;

    async fn from_request(
        request: Request<Body>,
        context: &RegistryContext,
    ) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let body = body::read_body(&parts.headers, body, context.body_limit).await;
        body.map(Self).map_err(errors::from_edge)
    }
}

impl OptionalCaller {
    /// The caller of a registration.
    pub fn actor(&self) -> Actor {
        match self.caller {
            Caller::Anonymous if self.open => Actor::OpenRegistration,
            Caller::Anonymous => Actor::Anonymous,
            Caller::Agent(id) | Caller::FormerAgent(id) => Actor::Agent(id),
            Caller::Operator => Actor::Operator,
        }
    }

    /// Whether the identity in the body is accepted without proof.
    pub fn is_open(&self) -> bool {
        self.open && self.caller == Caller::Anonymous
    }

    pub fn is_operator(&self) -> bool {
        self.caller == Caller::Operator
    }
}

impl KnownCaller {
    /// The acting agent: the key's own. A name in the request must not contradict it.
    pub fn acting_agent(&self, world: &World, named: Option<&str>) -> Result<AgentId, Failure> {
        match self.0.caller {
            Caller::Agent(id) => match named {
                Some(name) if world.agent_by_alias(ID, name) != Some(id) => {
                    Err(identity_mismatch())
                }
                _ => Ok(id),
            },
            Caller::Operator => Err(Failure::forbidden("an operator key cannot act for an agent")),
            Caller::Anonymous | Caller::FormerAgent(_) => {
                let missing = || Failure::field("/agent_id", "agent_id is required");
                native_agent(world, named.ok_or_else(missing)?).ok_or_else(Failure::not_found)
            }
        }
    }

    /// The agent in the path. Only its own key is accepted; for others it does not exist.
    pub fn agent_in_path(&self, world: &World, named: &str) -> Result<AgentId, Failure> {
        match self.0.caller {
            Caller::Agent(id) if world.agent_by_alias(ID, named) == Some(id) => Ok(id),
            Caller::Agent(_) => Err(Failure::not_found()),
            Caller::Operator => Err(Failure::forbidden("an operator key cannot act for an agent")),
            Caller::Anonymous | Caller::FormerAgent(_) => {
                native_agent(world, named).ok_or_else(Failure::not_found)
            }
        }
    }

    /// Whether the caller may act for this owner.
    pub fn speaks_for(&self, world: &World, owner: &str) -> bool {
        match self.0.caller {
            Caller::Agent(id) => self.owner(world, id).is_some_and(|name| name == owner),
            Caller::Operator | Caller::FormerAgent(_) => false,
            Caller::Anonymous => self.0.open && reserved_prefix(owner).is_none(),
        }
    }

    /// The caller's own owner.
    pub fn own_owner(&self, world: &World) -> Option<OwnerId> {
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
pub fn native_agent(world: &World, name: &str) -> Option<AgentId> {
    let id = world.agent_by_alias(ID, name)?;
    world.agent(id).filter(|agent| agent.home == ID && agent.active).map(|agent| agent.id)
}

pub fn identity_mismatch() -> Failure {
    Failure::forbidden("the body names an agent or owner that this key does not belong to")
}

/// The content of a callback token: a URL for late results, valid for one job and one assignment.
///
/// A token is the job's public id, the assignment's epoch, and a MAC over both. Nothing about it is
/// stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackToken {
    pub job: Uuid,
    pub epoch: u32,
}

/// The token of a job's current assignment.
pub fn callback_token(secret: &HubSecret, job: &Job) -> String {
    let token = CallbackToken { job: job.uuid, epoch: job.epoch };
    let mut bytes = token.bytes();
    bytes.extend(token.mac(secret).finalize().into_bytes().iter().take(MAC_LEN));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The content of a token, if this hub made it.
pub fn read_callback_token(secret: &HubSecret, text: &str) -> Option<CallbackToken> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (job, rest) = bytes.split_first_chunk::<16>()?;
    let (epoch, mac) = rest.split_first_chunk::<4>()?;
    let token = CallbackToken { job: Uuid::from_bytes(*job), epoch: u32::from_be_bytes(*epoch) };
    if mac.len() != MAC_LEN {
        return None;
    }
    token.mac(secret).verify_truncated_left(mac).ok()?;
    Some(token)
}

impl CallbackToken {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = self.job.as_bytes().to_vec();
        bytes.extend(self.epoch.to_be_bytes());
        bytes
    }

    fn mac(self, secret: &HubSecret) -> Hmac<Sha256> {
        let key = secret.derive("rialto registry callback v1", "token");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
        mac.update(&self.bytes());
        mac
    }
}
