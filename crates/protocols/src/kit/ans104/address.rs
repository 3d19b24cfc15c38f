//! Ids of items and addresses of their signers.

use std::fmt;

use sha2::{Digest, Sha256};
use sha3::Keccak256;

use super::signature_type::SignatureType;
use crate::kit::base64url;

/// The id of an item or a process: 32 bytes, written in 43 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub [u8; 32]);

impl ItemId {
    /// The id of the item with this signature.
    pub fn address_of_key(signature: &[u8]) -> Self {
        Self(Sha256::digest(signature).into())
    }

    /// Reads an id.
    pub fn read(text: &str) -> Option<Self> {
        base64url::decode(text).ok()?.try_into().ok().map(Self)
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64url::encode(&self.0))
    }
}

/// The address of a key.
pub(super) fn of(kind: SignatureType, owner: &[u8]) -> String {
    match kind {
        SignatureType::Ethereum => ethereum(owner.get(1..).unwrap_or_default()),
        SignatureType::Arweave | SignatureType::Ed25519 | SignatureType::Solana => {
            base64url::encode(&Sha256::digest(owner))
        }
    }
}

/// The last twenty bytes of the key's hash in hexadecimal; the case of the letters is a checksum
/// (EIP-55).
fn ethereum(point: &[u8]) -> String {
    let hash = Keccak256::digest(point);
    let digits: String = hash[12..].iter().map(|byte| format!("{byte:02x}")).collect();
    let check = Keccak256::digest(digits.as_bytes());
    let cased = digits.chars().enumerate().map(|(at, digit)| {
        let nibble = check[at / 2] >> (4 * (1 - at % 2)) & 0x0f;
        if nibble >= 8 { digit.to_ascii_uppercase() } else { digit }
    });
    format!("0x{}", cased.collect::<String>())
}
