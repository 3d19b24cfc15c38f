//! The sender of a message: the signature of its item, and addresses, owners and wallets. An address
//! owns agents; a wallet without an agent is registered as one.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use rialto_core::agent::Agent;
use rialto_core::draft::Draft;
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::owner::Owner;
use rialto_core::world::World;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::errors::from_edge;
use super::{ClaraContext, ClaraState};
use super::{Failure, ID, PROTOCOLS};
use crate::adapter::Signer;
use crate::kit::ans104::Item;
use crate::kit::{base64url, confusables};

/// The prefix of the id of a wallet without an agent. No agent may have such an id.
pub const WALLET_PREFIX: &str = "wallet/";
/// The longest item that is verified where it arrived.
const IN_PLACE_MAX: usize = 64 << 10;
/// The most items verified on the blocking pool at the same time; more wait, without blocking the
/// request loop (R75).
static PROVING: Semaphore = Semaphore::const_new(4);

/// Verifies the signature of an item.
///
/// An item of a known key is verified at once. That takes one signature check, about 50 µs, and the
/// hash of at most 64 KiB, so no other request waits for long. The pool would add two wake-ups and a
/// second read of the item. An unknown key, a long item, and a signature that a known key has not made in its
/// usual form are left to the pool, where strangers cannot take more than four threads (ADR 44).
pub async fn verify_item(
    state: &Arc<ClaraState>,
    item: &Item<'_>,
    body: &Bytes,
) -> Result<(), Failure> {
    if body.len() <= IN_PLACE_MAX && state.known_keys.verify(item) {
        return Ok(());
    }
    let Ok(_turn) = PROVING.acquire().await else { return Err(Failure::internal("proof")) };
    let (state, body) = (state.clone(), body.clone());
    let run = move || Item::read(&body).map(|item| state.known_keys.verify_and_keep(&item));
    match tokio::task::spawn_blocking(run).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(unproven))) => Err(unproven.into()),
        Ok(Err(bad)) => Err(bad.into()),
        Err(_) => Err(Failure::internal("proof")),
    }
}

/// Counts known senders by their address, others by their network address.
pub fn count_message(
    context: &ClaraContext,
    address: &str,
    from: Option<SocketAddr>,
) -> Result<(), Failure> {
    let name = owner_name(address);
    let known = context.engine.with_world(|world| world.owner_by_name(&name).is_some());
    let counted = if known {
        context.write_limiter.count_write(Signer::Unregistered(name.as_bytes()))
    } else {
        context.write_limiter.count_new_sender(from)
    };
    counted.map_err(from_edge)
}

/// The owner name of an address.
pub fn owner_name(address: &str) -> String {
    format!("{ID}:{address}")
}

/// The hub's id for a wallet that requests work without an agent.
pub fn wallet_name(address: &str) -> String {
    format!("{WALLET_PREFIX}{address}")
}

/// The confusable forms of an agent's id. A wallet has none: its address cannot be chosen.
pub fn id_skeletons(native: &str) -> Vec<String> {
    if native.starts_with(WALLET_PREFIX) { Vec::new() } else { confusables::skeletons(native) }
}

/// The reserved prefix that an id imitates, judged by confusable characters.
pub fn imitated_prefix(id: &str) -> Option<&'static str> {
    let looks = confusables::skeletons(id);
    let begins = |first: &&str| {
        let begins = confusables::skeletons(&format!("{first}/"));
        looks.iter().any(|look| begins.iter().any(|begins| look.starts_with(begins)))
    };
    PROTOCOLS.into_iter().chain(["wallet"]).find(begins)
}

/// A source of agents and owners: the committed state, or a step that is being decided.
pub trait AgentLookup {
    fn agent(&self, id: AgentId) -> Option<&Agent>;
    fn owner(&self, id: OwnerId) -> Option<&Owner>;
    /// The name of a bridged agent in this market.
    fn alias(&self, id: AgentId) -> Option<&str>;
}

impl AgentLookup for World {
    fn agent(&self, id: AgentId) -> Option<&Agent> {
        World::agent(self, id).map(|agent| &**agent)
    }

    fn owner(&self, id: OwnerId) -> Option<&Owner> {
        World::owner(self, id).map(|owner| &**owner)
    }

    fn alias(&self, id: AgentId) -> Option<&str> {
        self.alias_of(id, ID)
    }
}

impl AgentLookup for Draft<'_> {
    fn agent(&self, id: AgentId) -> Option<&Agent> {
        Draft::agent(self, id)
    }

    fn owner(&self, id: OwnerId) -> Option<&Owner> {
        Draft::owner(self, id)
    }

    fn alias(&self, id: AgentId) -> Option<&str> {
        self.world.alias_of(id, ID)
    }
}

/// The address of an agent: its owner's, or one that the hub made up, for which no key exists
/// (docs/requirements.md, section 4).
pub fn agent_address(lookup: &impl AgentLookup, id: AgentId) -> String {
    let Some(agent) = lookup.agent(id) else { return String::new() };
    if agent.home == ID {
        let owner = lookup.owner(agent.owner).map(|owner| owner.name.as_str());
        let own = owner.and_then(|name| name.strip_prefix(ID.as_str())?.strip_prefix(':'));
        return own.unwrap_or_default().to_owned();
    }
    let name = format!("rialto:{}:{}", agent.home, agent.native_id);
    base64url::encode(&Sha256::digest(name.as_bytes()))
}

/// An agent's id in the directory; `None` for a wallet.
pub fn agent_id(lookup: &impl AgentLookup, id: AgentId) -> Option<String> {
    let agent = lookup.agent(id)?;
    if agent.home != ID {
        return lookup.alias(id).map(str::to_owned);
    }
    (!agent.native_id.starts_with(WALLET_PREFIX)).then(|| agent.native_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_worked_address() {
        // docs/requirements.md, section 9.
        let name = "rialto:registry:a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
        let address = base64url::encode(&Sha256::digest(name.as_bytes()));
        assert_eq!(address, "rImQ3O6EqiZEOUjMfkrF0cP36q9fMAVSg_hjx0ipdWY");
    }
}
