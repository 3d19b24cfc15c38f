//! Authentication: the keys of callers, and the callback tokens of jobs.
//!
//! The key proves the identity; an open hub also accepts the identity a body claims, but only for
//! agents native to this protocol.

use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::job::Job;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::secret::HubSecret;
use sha2::Sha256;
use uuid::Uuid;

use super::ID;
use super::RegistryContext;
use super::errors::{self, Failure, RequestKind};
use super::wire::reserved_prefix;
use crate::adapter::OperationInfo;
use crate::adapter::caller::{AcceptsKeys, Caller, KeyRejection, KnownCaller};

/// The length in bytes of the truncated MAC of a callback token: 128 bits.
const MAC_LEN: usize = 16;

impl AcceptsKeys for RegistryContext {
    fn key_error(&self, rejection: KeyRejection, _: &OperationInfo) -> Response {
        let failure = match rejection {
            KeyRejection::Missing | KeyRejection::Unknown => Failure::unauthorized(),
            KeyRejection::Suspended => {
                errors::from_refusal(&Refusal::Suspended, RequestKind::Other)
            }
        };
        failure.into_response()
    }

    fn is_open(&self) -> bool {
        self.state.settings.is_open()
    }
}

/// The acting agent: the key's own. A name in the request must not contradict it.
pub fn acting_agent(
    known: KnownCaller,
    world: &World,
    named: Option<&str>,
) -> Result<AgentId, Failure> {
    match known.0.caller {
        Caller::Agent(id) => match named {
            Some(name) if world.agent_by_alias(ID, name) != Some(id) => Err(identity_mismatch()),
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
pub fn agent_in_path(known: KnownCaller, world: &World, named: &str) -> Result<AgentId, Failure> {
    match known.0.caller {
        Caller::Agent(id) if world.agent_by_alias(ID, named) == Some(id) => Ok(id),
        Caller::Agent(_) => Err(Failure::not_found()),
        Caller::Operator => Err(Failure::forbidden("an operator key cannot act for an agent")),
        Caller::Anonymous | Caller::FormerAgent(_) => {
            native_agent(world, named).ok_or_else(Failure::not_found)
        }
    }
}

/// Whether the caller may act for this owner.
pub fn speaks_for(known: KnownCaller, world: &World, owner: &str) -> bool {
    match known.0.caller {
        Caller::Agent(id) => owner_name(world, id).is_some_and(|name| name == owner),
        Caller::Operator | Caller::FormerAgent(_) => false,
        Caller::Anonymous => known.0.is_open() && reserved_prefix(owner).is_none(),
    }
}

/// The caller's own owner.
pub fn own_owner(known: KnownCaller, world: &World) -> Option<OwnerId> {
    match known.0.caller {
        Caller::Agent(id) => world.agent(id).map(|agent| agent.owner),
        _ => None,
    }
}

fn owner_name(world: &World, id: AgentId) -> Option<&str> {
    let agent = world.agent(id)?;
    world.owner(agent.owner).map(|owner| owner.name.as_str())
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
