//! The source of fresh ids and keys: the operating system, or a seed in tests.

use uuid::Uuid;

/// A source of randomness.
pub trait RandomSource: Send + Sync {
    /// Fills the bytes.
    fn fill_bytes(&self, bytes: &mut [u8]);

    /// A fresh version 4 UUID.
    fn new_uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill_bytes(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// The 160 random bits of a key.
    fn new_key_bytes(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        self.fill_bytes(&mut bytes);
        bytes
    }
}

/// The operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl RandomSource for OsRandom {
    fn fill_bytes(&self, bytes: &mut [u8]) {
        // Without randomness no safe key can be made, so the hub must stop.
        getrandom::fill(bytes).expect("the operating system provides randomness");
    }
}
