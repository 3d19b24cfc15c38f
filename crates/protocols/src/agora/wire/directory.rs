//! The JSON of the directory: agents and their capabilities (section 2.6).

use rialto_core::money::Credits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::DECIMALS;
use crate::kit::{jcs, raw_json};

/// One agent, native or bridged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentEntry {
    /// Its key as did:key; for a bridged agent, the key that the hub holds for it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its capabilities.
    pub capabilities: Vec<CapabilityEntry>,
    /// Its status: `idle`, `busy`, `error`, `maintenance` or `offline`.
    pub status: String,
    /// Its home protocol.
    pub protocol: String,
    /// The hub that holds its key, as did:key; `null` for an agent with its own key.
    pub held_by: Option<String>,
    /// For a bridged agent: its id in its home protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
}

/// One capability.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CapabilityEntry {
    /// Its name.
    pub resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Box<RawValue>>,
    /// Its description, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl CapabilityEntry {
    /// A capability as the hub shows it.
    pub fn new(resource: String, price: Option<Credits>, description: Option<String>) -> Self {
        Self { resource, price: price.map(|price| raw_json::amount(price, 0)), description }
    }

    /// Its price; `None` if it has none, or if the price is not a valid amount.
    pub fn price(&self) -> Option<Credits> {
        let price = self.price.as_ref()?;
        Credits::parse(&jcs::canonical_number(price.get()).ok()?, DECIMALS).ok()
    }
}

/// `GET /agents`: one page of agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DirectoryPage {
    /// The agents.
    pub agents: Vec<AgentEntry>,
    /// The cursor of the next page; `null` on the last.
    pub next_cursor: Option<String>,
}
