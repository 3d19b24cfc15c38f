//! A key prepared for verifying signatures. Worth caching: preparing it costs a square root.

use ed25519_dalek::{Signature, VerifyingKey};

use super::{BadKey, KEY_LEN, PublicKey, SIGNATURE_LEN};

/// The signature is not one of this key over this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a valid signature")]
pub struct BadSignature;

/// A key that is a canonically encoded point of large order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verifier(VerifyingKey);

impl Verifier {
    /// The verifier of `key`. Refuses keys for which a signature would prove nothing.
    pub fn new(key: PublicKey) -> Result<Self, BadKey> {
        if !is_canonical(key.as_bytes()) {
            return Err(BadKey::Weak);
        }
        let verifying = VerifyingKey::from_bytes(key.as_bytes()).map_err(|_| BadKey::Weak)?;
        if verifying.is_weak() { Err(BadKey::Weak) } else { Ok(Self(verifying)) }
    }

    /// The key it verifies for.
    pub fn key(&self) -> PublicKey {
        PublicKey::from_bytes(self.0.to_bytes())
    }

    /// Verifies strictly: S reduced, R canonical and not of small order.
    pub fn verify(
        &self,
        message: &[u8],
        signature: &[u8; SIGNATURE_LEN],
    ) -> Result<(), BadSignature> {
        let signature = Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).map_err(|_| BadSignature)
    }
}

/// Whether the y coordinate is below 2^255 − 19. The decoder reduces larger ones, so that one point
/// would have two encodings. (A redundant sign bit is possible only on points of small order.)
fn is_canonical(bytes: &[u8; KEY_LEN]) -> bool {
    let [low, middle @ .., high] = bytes;
    !(*low >= 0xed && middle.iter().all(|b| *b == 0xff) && high & 0x7f == 0x7f)
}
