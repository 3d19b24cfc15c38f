//! A key one can sign with. It is never printed, and wiped from memory when it goes.

use std::fmt;

use ed25519_dalek::{Signer as _, SigningKey};

use super::{KEY_LEN, PublicKey, SIGNATURE_LEN};

/// The secret half of a key.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// The key that grows from a seed; the same seed gives the same key.
    pub fn from_seed(seed: &[u8; KEY_LEN]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// The half that may be known.
    pub fn public(&self) -> PublicKey {
        PublicKey::from_bytes(self.0.verifying_key().to_bytes())
    }

    /// A signature of `message`; always the same one.
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        self.0.sign(message).to_bytes()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}
