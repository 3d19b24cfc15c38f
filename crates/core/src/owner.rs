//! Owners: whoever holds an account and answers for agents.

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
    /// What can be spent. Below zero for the issue account only.
    pub available: Credits,
    /// What is set aside for jobs under way.
    pub held: Credits,
    /// The welcome grant is given once.
    pub welcomed: bool,
    pub opened_at: Timestamp,
    /// The newest ledger line that touches this account; each line names the one before.
    pub newest: Option<EntryId>,
    /// Payments between owners that touched this account.
    pub movements: u64,
    /// Suspended with all its agents, by the operator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
}

impl Owner {
    /// The account all credits come from.
    pub const ISSUANCE: OwnerId = OwnerId(0);
    /// Its name.
    pub const ISSUANCE_NAME: &str = "hub:issuance";
}
