//! Keys that have signed a valid item, prepared for the next one.
//!
//! Besides the signature check itself, much of what an item costs is the same for every item of a
//! key: parsing the key, and the first half of the hash.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::signature::{self, KeyVerifier};
use super::{Item, ItemSignatureError, SignatureType, hash_of_key};

/// The most keys that are kept. A key of 4096 bits takes about 4 KB.
pub(super) const KEPT_MAX: usize = 2_048;

/// The known keys, by their bytes.
#[derive(Default)]
pub struct KnownKeys(RwLock<HashMap<Box<[u8]>, Arc<KnownKey>>>);

/// A key, prepared for the items of one signature type.
struct KnownKey {
    signature_type: SignatureType,
    hash: [u8; 48],
    verifier: KeyVerifier,
}

impl KnownKeys {
    /// Whether the item's key is known and has signed it. If not, the item may still be valid:
    /// only [`Self::verify_and_keep`] tells.
    pub fn verify(&self, item: &Item<'_>) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(item.owner).cloned();
        known.filter(|known| known.signature_type == item.signature_type).is_some_and(|known| {
            known.verifier.verify(item, &item.deep_hash_with_key(known.hash)).is_ok()
        })
    }

    /// Verifies an item in every form that its signature may have. Keeps the key of a valid item, so
    /// that only owners of keys can fill the table.
    pub fn verify_and_keep(&self, item: &Item<'_>) -> Result<(), ItemSignatureError> {
        item.verify()?;
        let Some(verifier) = signature::prepare(item) else { return Ok(()) };
        let signature_type = item.signature_type;
        let hash = hash_of_key(signature_type, item.owner);
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Clearing the table when it is full is cheaper than tracking recency.
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(item.owner.into(), Arc::new(KnownKey { signature_type, hash, verifier }));
        Ok(())
    }
}

impl fmt::Debug for KnownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownKeys")
    }
}
