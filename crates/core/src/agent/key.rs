//! Keys: credentials of agents and operators. Only hashes ever come here.

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
    /// The moment it stops working: set at rotation and revocation.
    pub until: Option<Timestamp>,
}

/// Who a key speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    Agent(AgentId),
    Operator,
}

impl Key {
    /// Whether the key still works.
    pub fn works(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}
