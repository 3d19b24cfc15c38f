//! Keys: credentials of agents and operators. Core only sees their hashes.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, KeyId};
use crate::time::Timestamp;

/// SHA-256 of a key.
pub type KeyHash = [u8; 32];

/// One credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub id: KeyId,
    #[serde(with = "crate::hex")]
    pub hash: KeyHash,
    pub holder: Holder,
    /// When it expires: set at rotation and revocation.
    #[serde(rename = "until")]
    pub valid_until: Option<Timestamp>,
}

/// The holder of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    Agent(AgentId),
    Operator,
}

impl Key {
    /// Whether the key is still valid.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.valid_until.is_none_or(|until| now < until)
    }
}
