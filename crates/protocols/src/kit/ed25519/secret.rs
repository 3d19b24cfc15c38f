//! A secret key for signing. It is never printed, and is wiped from memory when dropped.
//!
//! aws-lc signs. The TLS of every build includes it anyway, it takes half the time of the library
//! that verifies signatures here, and it gives the same bytes.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};

use super::{KEY_LEN, PublicKey, SIGNATURE_LEN};

/// The secret half of a key.
#[derive(Clone)]
pub struct SecretKey(Arc<Ed25519KeyPair>);

impl SecretKey {
    /// The key of a seed; the same seed gives the same key.
    pub fn from_seed(seed: &[u8; KEY_LEN]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        Self(Arc::new(pair.expect("any 32 bytes are a seed")))
    }

    /// The public key.
    pub fn public(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref().try_into();
        PublicKey::from_bytes(bytes.expect("a public key has 32 bytes"))
    }

    /// A signature of `message`; it is deterministic.
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        let signature = self.0.sign(message);
        signature.as_ref().try_into().expect("a signature has 64 bytes")
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}
