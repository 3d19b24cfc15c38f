//! Authentication. The caller's identity comes from the key alone, never from a body or path.

use axum::extract::FromRequestParts;
use http::request::Parts;
use rialto_core::agent::key::KeyHash;
use rialto_core::id::AgentId;
use rialto_core::refusal::Refusal;
use rialto_core::world::World;
use rialto_engine::keys::KeyPrefix;
use rialto_engine::{Engine, Idempotency};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::caller::{Caller, Credential, KeyRejection};
use rialto_protocols::adapter::idempotency::RequestIdempotency;

use super::problem::Problem;

/// The holder of a valid key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticatedCaller {
    Agent(AgentId),
    Operator,
}

/// A key that was sent and is valid.
#[derive(Clone, Copy, Debug)]
pub struct VerifiedKey {
    pub caller: AuthenticatedCaller,
    pub key: KeyHash,
    pub prefix: KeyPrefix,
}

impl VerifiedKey {
    /// The key of a request. `None` without a key, or with a key that can only be used to register
    /// again. An invalid key is an error even where no key is needed.
    pub fn of(engine: &Engine, parts: &mut Parts) -> Result<Option<Self>, Problem> {
        let caller = Caller::authenticate(engine, parts).map_err(|rejection| match rejection {
            KeyRejection::Missing | KeyRejection::Unknown => Problem::unauthorized(),
            KeyRejection::Suspended => Refusal::Suspended.into(),
        });
        let caller = match caller? {
            Caller::Agent(id) => AuthenticatedCaller::Agent(id),
            Caller::Operator => AuthenticatedCaller::Operator,
            Caller::Anonymous | Caller::FormerAgent(_) => return Ok(None),
        };
        let key = Credential::of(engine, parts).key;
        Ok(key.map(|key| Self { caller, key: key.hash, prefix: key.prefix }))
    }

    /// Whether the key is still valid and its agent still registered, for open streams.
    pub fn is_still_valid(&self, engine: &Engine) -> bool {
        let now = engine.now();
        engine.with_world(|world| {
            let works = world.key(&self.key).is_some_and(|key| key.is_valid(now));
            works && self.agent().is_none_or(|id| world.may_act(id))
        })
    }

    fn agent(&self) -> Option<AgentId> {
        match self.caller {
            AuthenticatedCaller::Agent(id) => Some(id),
            AuthenticatedCaller::Operator => None,
        }
    }
}

/// Whether the agent is registered.
pub fn is_registered(world: &World, id: AgentId) -> bool {
    world.agent(id).is_some_and(|agent| agent.active)
}

/// A caller with a valid key.
#[derive(Clone, Copy, Debug)]
pub struct KeyHolder {
    pub key: VerifiedKey,
    pub idempotency: Option<Idempotency>,
}

/// An agent, acting for itself.
#[derive(Clone, Copy, Debug)]
pub struct AgentCaller {
    pub id: AgentId,
    pub prefix: KeyPrefix,
    pub once: Option<Idempotency>,
}

/// The operator.
#[derive(Clone, Copy, Debug)]
pub struct OperatorCaller {
    pub once: Option<Idempotency>,
}

impl FromRequestParts<HubContext> for KeyHolder {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &HubContext) -> Result<Self, Problem> {
        // `V1Api` has inserted it.
        let proven = parts.extensions.get::<VerifiedKey>().ok_or_else(Problem::unauthorized)?;
        let once = parts.extensions.get::<RequestIdempotency>().map(|once| once.0);
        Ok(Self { key: *proven, idempotency: once })
    }
}

impl FromRequestParts<HubContext> for AgentCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &HubContext) -> Result<Self, Problem> {
        let KeyHolder { key: proven, idempotency: once } =
            KeyHolder::from_request_parts(parts, context).await?;
        match proven.caller {
            AuthenticatedCaller::Agent(id) => Ok(Self { id, prefix: proven.prefix, once }),
            AuthenticatedCaller::Operator => {
                Err(Problem::forbidden("an operator key cannot act for an agent"))
            }
        }
    }
}

impl FromRequestParts<HubContext> for OperatorCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, context: &HubContext) -> Result<Self, Problem> {
        let KeyHolder { key: proven, idempotency: once } =
            KeyHolder::from_request_parts(parts, context).await?;
        match proven.caller {
            AuthenticatedCaller::Operator => Ok(Self { once }),
            AuthenticatedCaller::Agent(_) => {
                Err(Problem::forbidden("the operator key is required"))
            }
        }
    }
}

/// A caller that may only read, authenticated by a key or by a read-only credential.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnlyCaller(pub AuthenticatedCaller);

impl FromRequestParts<HubContext> for ReadOnlyCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &HubContext) -> Result<Self, Problem> {
        // `V1Api` has inserted one of them.
        let by_key = parts.extensions.get::<VerifiedKey>().map(|proven| Self(proven.caller));
        let reads = parts.extensions.get::<Self>().copied();
        by_key.or(reads).ok_or_else(Problem::unauthorized)
    }
}
