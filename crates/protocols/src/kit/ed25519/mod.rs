//! Ed25519 (RFC 8032) in its strict form: a key has one encoding, and so has a signature.
//!
//! A [`PublicKey`] is an identity: 32 bytes that were spelled correctly. Whether it is usable for
//! signatures is known once it has become a [`Verifier`].

mod did;
mod secret;
mod verifier;

use std::fmt;

use super::base64url;

pub use secret::SecretKey;
pub use verifier::{BadSignature, Verifier};

/// The size of a key in bytes.
pub const KEY_LEN: usize = 32;
/// The size of a signature in bytes.
pub const SIGNATURE_LEN: usize = 64;

/// Why a text or bytes are not a usable key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The text is not in any accepted form of a key.
    #[error("must be an Ed25519 did:key, or the raw key in 43 Base64Url or 64 hex digits")]
    Malformed,
    /// The text is a did:key of another algorithm.
    #[error("is a did:key of an unsupported key type; only Ed25519 (did:key:z6Mk…) is supported")]
    OtherType,
    /// A point for which signatures prove nothing, or that has a second encoding.
    #[error("is a weak or non-canonical Ed25519 key")]
    Weak,
}

/// A correctly spelled public key. Its text form is always the did:key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; KEY_LEN]);

impl PublicKey {
    /// A key from its bytes.
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// Reads a did:key, 43 digits of Base64Url or 64 hex digits: three forms of one identity.
    pub fn parse(text: &str) -> Result<Self, BadKey> {
        const BASE64URL_LEN: usize = 43;
        if text.starts_with("did:") {
            return Self::from_did(text);
        }
        let bytes = match text.len() {
            BASE64URL_LEN => base64url::decode_array(text).ok(),
            64 => from_hex(text),
            _ => None,
        };
        bytes.map(Self).ok_or(BadKey::Malformed)
    }

    /// Reads `did:key:z6Mk…` and no other form.
    pub fn from_did(text: &str) -> Result<Self, BadKey> {
        did::parse_did_key(text).map(Self)
    }

    /// The key as `did:key:z6Mk…`.
    pub fn did(&self) -> String {
        did::format_did_key(&self.0)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.did())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

fn from_hex(text: &str) -> Option<[u8; KEY_LEN]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; KEY_LEN];
    let (pairs, _) = text.as_bytes().as_chunks();
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
