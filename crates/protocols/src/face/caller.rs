//! Who is calling: a key in the header, looked up by its hash.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use rialto_core::agent::key::Holder;
use rialto_core::id::AgentId;
use rialto_engine::Engine;
use rialto_engine::keys::{Key, bearer, same};

/// The caller, as far as a key proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// No key was shown.
    Nobody,
    Agent(AgentId),
    /// The key of an agent that has unregistered; good for coming back and nothing else.
    Former(AgentId),
    Operator,
}

/// A key was shown and it does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadKey {
    /// Malformed, unknown and revoked are one answer.
    Unknown,
    /// The key is good; its agent, or the agent's owner, is suspended by the operator.
    Suspended,
}

impl Caller {
    /// Reads the header, which is a sign of life of the agent whose key it is. Every bad key takes the
    /// same path to the same answer.
    pub fn read(engine: &Engine, headers: &HeaderMap) -> Result<Self, BadKey> {
        let caller = Self::look_up(engine, headers)?;
        if let Self::Agent(agent) = caller {
            engine.seen(agent);
        }
        Ok(caller)
    }

    /// The same, and nothing is noted.
    pub fn look_up(engine: &Engine, headers: &HeaderMap) -> Result<Self, BadKey> {
        let Some(header) = headers.get(AUTHORIZATION) else { return Ok(Self::Nobody) };
        let key =
            header.to_str().ok().and_then(bearer).and_then(Key::read).ok_or(BadKey::Unknown)?;
        let hash = key.hash();
        let now = engine.now();
        let caller = engine.look(|world| {
            let found = world.key(&hash).filter(|key| same(&key.hash, &hash) && key.works(now))?;
            match found.holder {
                Holder::Operator => Some(Ok(Self::Operator)),
                Holder::Agent(id) if world.is_suspended(id) => Some(Err(BadKey::Suspended)),
                Holder::Agent(id) => {
                    let active = world.agent(id).is_some_and(|agent| agent.active);
                    Some(Ok(if active { Self::Agent(id) } else { Self::Former(id) }))
                }
            }
        });
        caller.ok_or(BadKey::Unknown)?
    }
}
