//! Authenticates a caller by the key in its header, looked up by its hash.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use rialto_core::agent::key::{Holder, KeyHash};
use rialto_core::id::AgentId;
use rialto_engine::Engine;
use rialto_engine::keys::{Key, KeyPrefix, hashes_equal, parse_bearer};

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
    /// Malformed, unknown and revoked keys get the same answer.
    Unknown,
    /// The key is valid, but the operator suspended its agent or the agent's owner.
    Suspended,
}

/// The key of a caller.
#[derive(Clone, Copy, Debug)]
pub struct CallerKey {
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
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Self { caller: Ok(Caller::Anonymous), key: None };
        };
        let key = header.to_str().ok().and_then(parse_bearer).and_then(Key::parse);
        let Some(key) = key.map(|key| CallerKey { hash: key.hash(), prefix: key.prefix() }) else {
            return Self { caller: Err(KeyRejection::Unknown), key: None };
        };
        let now = engine.now();
        let caller = engine.with_world(|world| {
            let stored = world
                .key(&key.hash)
                .filter(|stored| hashes_equal(&stored.hash, &key.hash) && stored.is_valid(now));
            match stored.ok_or(KeyRejection::Unknown)?.holder {
                Holder::Operator => Ok(Caller::Operator),
                Holder::Agent(id) => match world.agent(id) {
                    Some(agent) if world.is_agent_suspended(agent) => Err(KeyRejection::Suspended),
                    Some(agent) if agent.active => Ok(Caller::Agent(id)),
                    _ => Ok(Caller::FormerAgent(id)),
                },
            }
        });
        Self { caller, key: Some(key) }
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
