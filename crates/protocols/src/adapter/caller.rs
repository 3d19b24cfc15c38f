//! Authenticates a caller by the key in its header, looked up by its hash.

use std::convert::Infallible;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::response::Response;
use rialto_core::agent::key::{Holder, KeyHash};
use rialto_core::agent::key_limits::KeyUse;
use rialto_core::command::Actor;
use rialto_core::id::{AgentId, KeyId};
use rialto_core::idempotency::Principal;
use rialto_engine::keys::{Key, KeyPrefix, hashes_equal, parse_bearer};
use rialto_engine::{Engine, Idempotency};

use super::idempotency::{self, RequestIdempotency};
use super::request::MatchedOperation;
use super::{HubContext, OperationInfo};

/// The caller, as far as a key proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The request has no key.
    Anonymous,
    Agent(AgentId),
    /// The key of an agent that has unregistered. It may only register again.
    FormerAgent(AgentId),
    Operator,
}

/// Why a key is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRejection {
    /// The request has no key, but needs one.
    Missing,
    /// Malformed, unknown and revoked keys get the same answer.
    Unknown,
    /// The key is valid, but the operator suspended its agent or the agent's owner.
    Suspended,
}

/// The key of a caller.
#[derive(Clone, Copy, Debug)]
pub struct CallerKey {
    /// The hub's id of the key, if it is known.
    pub id: Option<KeyId>,
    pub hash: KeyHash,
    pub prefix: KeyPrefix,
}

/// The result of the key lookup. It is kept in the request's extensions, so that rate limits,
/// idempotency and handler share one lookup.
#[derive(Clone, Copy, Debug)]
pub struct Credential {
    pub caller: Result<Caller, KeyRejection>,
    /// The key as it was sent, if it has the form of one.
    pub key: Option<CallerKey>,
}

impl Credential {
    /// Looks up the key of a request, once per request. Every bad key takes the same path to the
    /// same answer.
    pub fn of(engine: &Engine, parts: &mut Parts) -> Self {
        *parts.extensions.get_or_insert_with(|| Self::look_up(engine, &parts.headers))
    }

    fn look_up(engine: &Engine, headers: &HeaderMap) -> Self {
        if !headers.contains_key(AUTHORIZATION) {
            return Self { caller: Ok(Caller::Anonymous), key: None };
        }
        let PresentedKey(key) = PresentedKey::of(headers);
        let Some(key) = key else {
            return Self { caller: Err(KeyRejection::Unknown), key: None };
        };
        let (hash, prefix, now) = (key.hash(), key.prefix(), engine.now());
        let (caller, id) = engine.with_world(|world| {
            let stored = world
                .key(&hash)
                .filter(|stored| hashes_equal(&stored.hash, &hash) && stored.is_valid(now));
            let Some(stored) = stored else { return (Err(KeyRejection::Unknown), None) };
            let caller = match stored.holder {
                Holder::Operator => Ok(Caller::Operator),
                Holder::Agent(id) => match world.agent(id) {
                    Some(agent) if world.is_agent_suspended(agent) => Err(KeyRejection::Suspended),
                    Some(agent) if agent.active => Ok(Caller::Agent(id)),
                    _ => Ok(Caller::FormerAgent(id)),
                },
            };
            (caller, Some(stored.id))
        });
        if let (Ok(Caller::Agent(agent)), Some(id)) = (caller, id) {
            engine.record_key_use(agent, id);
        }
        Self { caller, key: Some(CallerKey { id, hash, prefix }) }
    }

    /// The key of an agent, whose limits bind what the request spends.
    pub fn key_use(&self) -> Option<KeyUse> {
        match (self.caller, self.key?.id) {
            (Ok(Caller::Agent(agent) | Caller::FormerAgent(agent)), Some(key)) => {
                Some(KeyUse { agent, key, by_default: false })
            }
            _ => None,
        }
    }
}

impl Caller {
    /// The caller of a request. Records activity of the agent whose key it is.
    pub fn authenticate(engine: &Engine, parts: &mut Parts) -> Result<Self, KeyRejection> {
        let caller = Credential::of(engine, parts).caller?;
        if let Self::Agent(agent) = caller {
            engine.record_seen(agent);
        }
        Ok(caller)
    }
}

/// The presented key, for streams that end with it and for answers that repeat it.
pub struct PresentedKey(pub Option<Key>);

impl PresentedKey {
    fn of(headers: &HeaderMap) -> Self {
        let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        Self(header.and_then(parse_bearer).and_then(Key::parse))
    }
}

impl<S: Sync> FromRequestParts<S> for PresentedKey {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// The state of a protocol whose callers authenticate with keys.
pub trait AcceptsKeys {
    /// The response to a key that is rejected, or missing where one is needed.
    fn key_error(&self, rejection: KeyRejection, operation: &OperationInfo) -> Response;

    /// Whether the identity that a request without a key claims is accepted.
    fn is_open(&self) -> bool {
        false
    }
}

/// Any caller, with a valid key or none. A bad key is refused before the body is read.
#[derive(Clone, Copy, Debug)]
pub struct OptionalCaller {
    pub caller: Caller,
    open: bool,
    pub idempotency: Option<Idempotency>,
    /// Where the caller's idempotency records are counted.
    pub principal: Principal,
}

impl OptionalCaller {
    /// Whether the identity in the request is accepted without proof.
    pub fn is_open(&self) -> bool {
        self.open && self.caller == Caller::Anonymous
    }

    pub fn is_operator(&self) -> bool {
        self.caller == Caller::Operator
    }

    /// The actor of a registration.
    pub fn actor(&self) -> Actor {
        match self.caller {
            Caller::Anonymous if self.open => Actor::OpenRegistration,
            Caller::Anonymous => Actor::Anonymous,
            Caller::Agent(id) | Caller::FormerAgent(id) => Actor::Agent(id),
            Caller::Operator => Actor::Operator,
        }
    }

    /// The caller, if it has a key or the protocol is open.
    pub fn known(self) -> Result<KnownCaller, KeyRejection> {
        match self.caller {
            Caller::Anonymous if !self.open => Err(KeyRejection::Missing),
            Caller::FormerAgent(_) => Err(KeyRejection::Unknown),
            _ => Ok(KnownCaller(self)),
        }
    }
}

/// A caller with a key, or one whose claimed identity is accepted.
#[derive(Clone, Copy, Debug)]
pub struct KnownCaller(pub OptionalCaller);

impl<S: AcceptsKeys + Sync> FromRequestParts<S> for OptionalCaller
where
    HubContext: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let caller = Caller::authenticate(&HubContext::from_ref(state).engine, parts);
        let caller = caller.map_err(|rejection| key_error(state, parts, rejection))?;
        let idempotency = parts.extensions.get::<RequestIdempotency>().map(|once| once.0);
        let principal = idempotency::principal(caller, &parts.extensions);
        Ok(Self { caller, open: state.is_open(), idempotency, principal })
    }
}

impl<S: AcceptsKeys + Sync> FromRequestParts<S> for KnownCaller
where
    HubContext: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let caller = OptionalCaller::from_request_parts(parts, state).await?;
        caller.known().map_err(|rejection| key_error(state, parts, rejection))
    }
}

fn key_error(state: &impl AcceptsKeys, parts: &Parts, rejection: KeyRejection) -> Response {
    state.key_error(rejection, &MatchedOperation::of(&parts.extensions).operation.info)
}
