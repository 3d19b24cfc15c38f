//! The directory: who is here and what they can do (section 2.6).

use rialto_core::money::Credits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::DECIMALS;
use crate::kit::{jcs, write};

/// One agent, of this protocol or bridged into it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Its key as did:key; for a bridged agent, the key the hub holds for it.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// What it can do.
    pub capabilities: Vec<Listed>,
    /// How it is doing: `idle`, `busy`, `error`, `maintenance` or `offline`.
    pub status: String,
    /// The protocol it speaks itself.
    pub protocol: String,
    /// The hub that holds its key, as did:key; `null` for an agent with a key of its own.
    pub held_by: Option<String>,
    /// What a bridged agent is called in its own protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
}

/// One capability.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Box<RawValue>>,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl Listed {
    /// A capability as the hub shows it.
    pub fn new(resource: String, price: Option<Credits>, description: Option<String>) -> Self {
        Self { resource, price: price.map(|price| write::amount(price, 0)), description }
    }

    /// What it costs; `None` if it has no price, or one that is no amount.
    pub fn price(&self) -> Option<Credits> {
        let price = self.price.as_ref()?;
        Credits::parse(&jcs::token(price.get()).ok()?, DECIMALS).ok()
    }
}

/// `GET /agents`: one page of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page {
    /// The agents.
    pub agents: Vec<Entry>,
    /// Leads to the next page; `null` on the last.
    pub next_cursor: Option<String>,
}
