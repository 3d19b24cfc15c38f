//! Addresses, owners and wallets: an address owns agents; a wallet without agent is registered as one.

use rialto_core::agent::Agent;
use rialto_core::draft::Draft;
use rialto_core::id::{AgentId, OwnerId};
use rialto_core::owner::Owner;
use rialto_core::world::World;
use sha2::{Digest, Sha256};

use super::{ID, PROTOCOLS};
use crate::kit::{base64url, looks};

/// What stands before the address of a wallet that has no agent of its own name. No agent can be
/// called so.
pub const WALLET: &str = "wallet/";

/// The ledger's name for an address.
pub fn owner_name(address: &str) -> String {
    format!("{ID}:{address}")
}

/// The hub's own name for a wallet that asks for work without an agent.
pub fn wallet(address: &str) -> String {
    format!("{WALLET}{address}")
}

/// What an agent's id looks like. A wallet is known by its address, which nobody chooses.
pub fn looks(native: &str) -> Vec<String> {
    match native.starts_with(WALLET) {
        true => Vec::new(),
        false => looks::of(native),
    }
}

/// What an id seems to begin with that no agent's may, to a reader who does not look closely.
pub fn imitated(id: &str) -> Option<&'static str> {
    let looks = looks::of(id);
    let begins = |first: &&str| {
        let begins = looks::of(&format!("{first}/"));
        looks.iter().any(|look| begins.iter().any(|begins| look.starts_with(begins)))
    };
    PROTOCOLS.into_iter().chain(["wallet"]).find(begins)
}

/// Where people are looked up: in what is committed, or in a step that is being decided.
pub trait People {
    fn agent(&self, id: AgentId) -> Option<&Agent>;
    fn owner(&self, id: OwnerId) -> Option<&Owner>;
    /// What an agent of another protocol is called here.
    fn alias(&self, id: AgentId) -> Option<&str>;
}

impl People for World {
    fn agent(&self, id: AgentId) -> Option<&Agent> {
        World::agent(self, id).map(|agent| &**agent)
    }

    fn owner(&self, id: OwnerId) -> Option<&Owner> {
        World::owner(self, id).map(|owner| &**owner)
    }

    fn alias(&self, id: AgentId) -> Option<&str> {
        self.name_of(id, ID)
    }
}

impl People for Draft<'_> {
    fn agent(&self, id: AgentId) -> Option<&Agent> {
        Draft::agent(self, id)
    }

    fn owner(&self, id: OwnerId) -> Option<&Owner> {
        Draft::owner(self, id)
    }

    fn alias(&self, id: AgentId) -> Option<&str> {
        self.world.name_of(id, ID)
    }
}

/// The address of an agent: its owner's, or one the hub made, for which no key exists
/// (docs/requirements.md, section 4).
pub fn address(people: &impl People, id: AgentId) -> String {
    let Some(agent) = people.agent(id) else { return String::new() };
    if agent.home == ID {
        let owner = people.owner(agent.owner).map(|owner| owner.name.as_str());
        let own = owner.and_then(|name| name.strip_prefix(ID.as_str())?.strip_prefix(':'));
        return own.unwrap_or_default().to_owned();
    }
    let name = format!("rialto:{}:{}", agent.home, agent.native);
    base64url::encode(&Sha256::digest(name.as_bytes()))
}

/// What an agent is called on the board; a wallet is no agent there.
pub fn agent_id(people: &impl People, id: AgentId) -> Option<String> {
    let agent = people.agent(id)?;
    match agent.home == ID {
        true => (!agent.native.starts_with(WALLET)).then(|| agent.native.clone()),
        false => people.alias(id).map(str::to_owned),
    }
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
