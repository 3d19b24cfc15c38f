//! Verifies that an item's owner has signed it, in the only form each signature may have (clara
//! R71).
//!
//! An item's id is the hash of its signature. If a signature could be rewritten into another valid
//! one for the same content, the same message would count twice.

mod ethereum;
mod rsa;

use super::Item;
use super::error::Unproven;
use super::signature_type::Kind;
use crate::kit::ed25519::{PublicKey, Verifier};

pub(super) fn verify(item: &Item<'_>) -> Result<(), Unproven> {
    let hash = item.deep_hash();
    match item.kind {
        Kind::Arweave => rsa::verify(item.owner, &hash, item.signature),
        Kind::Ethereum => ethereum::verify(item.owner, &hash, item.signature),
        Kind::Ed25519 => ed25519(item.owner, &hash, item.signature),
        Kind::Solana => ed25519(item.owner, digits(&hash).as_bytes(), item.signature),
    }
}

/// Strict: only canonical numbers and points, and no key of small order.
fn ed25519(owner: &[u8], message: &[u8], signature: &[u8]) -> Result<(), Unproven> {
    let key = owner.try_into().map(PublicKey::from_bytes).map_err(|_| Unproven::BadKey)?;
    let verifier = Verifier::of(key).map_err(|_| Unproven::BadKey)?;
    let signature = signature.try_into().map_err(|_| Unproven::BadSignature)?;
    verifier.verify(message, signature).map_err(|_| Unproven::BadSignature)
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
