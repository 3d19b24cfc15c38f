//! Authenticates a caller by the key in its header, looked up by its hash.

use axum::http::header::AUTHORIZATION;
use axum::http::{Extensions, HeaderMap};
use rialto_core::agent::key::Holder;
use rialto_core::id::AgentId;
use rialto_engine::Engine;
use rialto_engine::keys::{Key, hashes_equal, parse_bearer};

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

/// The result of the key lookup, stored in the request's extensions so that it runs once.
#[derive(Clone, Copy, Debug)]
struct LookedUp(Result<Caller, KeyRejection>);

impl Caller {
    /// Reads the header and records activity of the agent whose key it is. Every bad key takes the
    /// same path to the same answer.
    pub fn authenticate(
        engine: &Engine,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Self, KeyRejection> {
        let known = extensions.get::<LookedUp>().map(|known| known.0);
        let caller = known.unwrap_or_else(|| Self::authenticate_quietly(engine, headers))?;
        if let Self::Agent(agent) = caller {
            engine.record_seen(agent);
        }
        Ok(caller)
    }

    /// Looks up the key and stores the result with the request. Does not record activity.
    pub fn identify(
        engine: &Engine,
        headers: &HeaderMap,
        extensions: &mut Extensions,
    ) -> Result<Self, KeyRejection> {
        let caller = Self::authenticate_quietly(engine, headers);
        extensions.insert(LookedUp(caller));
        caller
    }

    fn authenticate_quietly(engine: &Engine, headers: &HeaderMap) -> Result<Self, KeyRejection> {
        let Some(header) = headers.get(AUTHORIZATION) else { return Ok(Self::Anonymous) };
        let key = header
            .to_str()
            .ok()
            .and_then(parse_bearer)
            .and_then(Key::parse)
            .ok_or(KeyRejection::Unknown)?;
        let hash = key.hash();
        let now = engine.now();
        let caller = engine.with_world(|world| {
            let found = world
                .key(&hash)
                .filter(|key| hashes_equal(&key.hash, &hash) && key.is_valid(now))?;
            match found.holder {
                Holder::Operator => Some(Ok(Self::Operator)),
                Holder::Agent(id) => Some(match world.agent(id) {
                    Some(agent) if world.is_agent_suspended(agent) => Err(KeyRejection::Suspended),
                    Some(agent) if agent.active => Ok(Self::Agent(id)),
                    _ => Ok(Self::FormerAgent(id)),
                }),
            }
        });
        caller.ok_or(KeyRejection::Unknown)?
    }
}
