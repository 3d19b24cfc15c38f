//! Ed25519 (RFC 8032) in its strict form: a key has one encoding, and so has a signature.
//!
//! A [`PublicKey`] is an identity: 32 bytes that were spelled correctly. Whether it is usable for
//! signatures is known once it has become a [`Verifier`].

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use ed25519_dalek::{Signature, VerifyingKey};

use super::base64url;

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
        parse_did_key(text).map(Self)
    }

    /// The key as `did:key:z6Mk…`.
    pub fn did(&self) -> String {
        format_did_key(&self.0)
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

/// The secret half of a key. It is never printed, and is wiped from memory when dropped.
///
/// aws-lc signs. The TLS of every build includes it anyway, it takes half the time of the library
/// that verifies signatures here, and it gives the same bytes.
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

/// The prefix of every did:key in base58btc.
const PREFIX: &str = "did:key:z";
/// The digits of base58btc.
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// The multicodec of an Ed25519 public key, as a varint.
const ED25519: [u8; 2] = [0xed, 0x01];
/// Multicodecs of other public keys, each with the size of such a key in bytes: X25519, secp256k1,
/// BLS12-381 G1 and G2, P-256, P-384, P-521, Ed448 and X448.
const OTHERS: [([u8; 2], usize); 9] = [
    ([0xec, 0x01], 32),
    ([0xe7, 0x01], 33),
    ([0xea, 0x01], 48),
    ([0xeb, 0x01], 96),
    ([0x80, 0x24], 33),
    ([0x81, 0x24], 49),
    ([0x82, 0x24], 67),
    ([0x83, 0x24], 57),
    ([0x84, 0x24], 56),
];
/// Decoding base58 takes quadratic time, so longer texts are not decoded. Only RSA keys are longer.
const DECODED_MAX: usize = 136;
/// How RSA keys of 2048 and 4096 bits begin, and their maximum length.
const RSA: [&str; 2] = ["4MX", "gg"];
const RSA_MAX: usize = 1_024;

/// The key of a did:key. The text must be exactly what [`write`] returns for it.
pub(super) fn parse_did_key(text: &str) -> Result<[u8; KEY_LEN], BadKey> {
    let digits = text.strip_prefix(PREFIX).ok_or(BadKey::Malformed)?;
    if digits.len() > DECODED_MAX {
        return Err(if is_rsa(digits) { BadKey::OtherType } else { BadKey::Malformed });
    }
    let mut decoded = [0; DECODED_MAX];
    let length = bs58::decode(digits).onto(&mut decoded).map_err(|_| BadKey::Malformed)?;
    let (codec, key) = decoded[..length].split_first_chunk().ok_or(BadKey::Malformed)?;
    if *codec != ED25519 {
        let known = OTHERS.contains(&(*codec, key.len()));
        return Err(if known { BadKey::OtherType } else { BadKey::Malformed });
    }
    let key = key.try_into().map_err(|_| BadKey::Malformed)?;
    if format_did_key(&key) == text { Ok(key) } else { Err(BadKey::Malformed) }
}

/// The did:key of an Ed25519 key. Every envelope and receipt has a did, so this takes five digits
/// at a time from the 272 bits of multicodec and key.
pub(super) fn format_did_key(key: &[u8; KEY_LEN]) -> String {
    const STEP: u64 = 58_u64.pow(5);
    let mut limbs = [0; 1 + KEY_LEN / 4];
    limbs[0] = u32::from(u16::from_be_bytes(ED25519));
    let (words, _) = key.as_chunks();
    for (limb, word) in limbs[1..].iter_mut().zip(words) {
        *limb = u32::from_be_bytes(*word);
    }
    let mut digits = [0; 50];
    for five in digits.rchunks_exact_mut(5) {
        let mut rest = 0;
        for limb in &mut limbs {
            let value = rest << 32 | u64::from(*limb);
            // The remainder is below STEP, so the quotient is below 2^32.
            (*limb, rest) = ((value / STEP) as u32, value % STEP);
        }
        for digit in five.iter_mut().rev() {
            *digit = ALPHABET[(rest % 58) as usize];
            rest /= 58;
        }
    }
    // With the prefix ed 01, the number has 47 digits for any key.
    PREFIX.chars().chain(digits[3..].iter().copied().map(char::from)).collect()
}

fn is_rsa(digits: &str) -> bool {
    digits.len() <= RSA_MAX
        && RSA.iter().any(|start| digits.starts_with(start))
        && digits.bytes().all(|digit| ALPHABET.contains(&digit))
}
