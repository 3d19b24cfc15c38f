//! Owners: each has one account and is responsible for its agents.

use serde::{Deserialize, Serialize};

use crate::id::{EntryId, OwnerId};
use crate::money::Credits;
use crate::time::Timestamp;

/// An owner and its account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub id: OwnerId,
    /// Its name in the ledger.
    pub name: String,
    /// What can be spent. Only the issue account goes below zero.
    pub available: Credits,
    /// What is held for open jobs.
    pub held: Credits,
    /// Whether it got the welcome grant, which is given once.
    pub welcomed: bool,
    pub opened_at: Timestamp,
    /// The newest ledger entry of this account. Each entry names the one before.
    #[serde(rename = "newest")]
    pub newest_entry: Option<EntryId>,
    /// Number of payments between owners that touched this account.
    #[serde(rename = "movements")]
    pub payment_count: u64,
    /// Suspended with all its agents, by the operator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
}

impl Owner {
    /// The account from which all credits are issued.
    pub const ISSUANCE: OwnerId = OwnerId(0);
    /// The issue account's name.
    pub const ISSUANCE_NAME: &str = "hub:issuance";
}
