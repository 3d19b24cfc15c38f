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
    #[serde(with = "hash_text")]
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

mod hash_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(hash: &[u8; 32], out: S) -> Result<S::Ok, S::Error> {
        let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        out.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<[u8; 32], D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(input)?;
        let mut hash = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(D::Error::custom("a key hash has 64 hex digits"));
        }
        for (byte, at) in hash.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(D::Error::custom)?;
        }
        Ok(hash)
    }
}
