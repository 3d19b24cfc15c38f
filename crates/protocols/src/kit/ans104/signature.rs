//! Verifies that an item's owner has signed it, in the only form each signature may have (clara
//! R71).
//!
//! An item's id is the hash of its signature. If a signature could be rewritten into another valid
//! one for the same content, the same message would count twice.

mod ethereum;
mod rsa;

use super::Item;
use super::error::ItemSignatureError;
use super::signature_type::SignatureType;
use crate::kit::ed25519::{PublicKey, Verifier};

pub(super) fn verify(item: &Item<'_>) -> Result<(), ItemSignatureError> {
    let hash = item.deep_hash();
    match item.signature_type {
        SignatureType::Arweave => rsa::verify(item.owner, &hash, item.signature),
        SignatureType::Ethereum => ethereum::verify(item.owner, &hash, item.signature),
        SignatureType::Ed25519 => ed25519(item.owner, &hash, item.signature),
        SignatureType::Solana => ed25519(item.owner, digits(&hash).as_bytes(), item.signature),
    }
}

/// Strict: only canonical numbers and points, and no key of small order.
fn ed25519(owner: &[u8], message: &[u8], signature: &[u8]) -> Result<(), ItemSignatureError> {
    let key =
        owner.try_into().map(PublicKey::from_bytes).map_err(|_| ItemSignatureError::BadKey)?;
    let verifier = Verifier::new(key).map_err(|_| ItemSignatureError::BadKey)?;
    let signature = signature.try_into().map_err(|_| ItemSignatureError::BadSignature)?;
    verifier.verify(message, signature).map_err(|_| ItemSignatureError::BadSignature)
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
