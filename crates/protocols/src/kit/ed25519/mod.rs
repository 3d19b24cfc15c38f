//! Ed25519 (RFC 8032) in its strict form: a key has one encoding, and so has a signature.
//!
//! A [`PublicKey`] is an identity: 32 bytes that were spelled correctly. Whether it is usable for
//! signatures is known once it has become a [`Verifier`].

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};

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

    /// The key as `did:key:z6Mk…`, given the text it was read from. A did:key has one spelling, so
    /// a text in that form is the answer.
    pub fn did_from<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.starts_with(PREFIX) { Cow::Borrowed(text) } else { Cow::Owned(self.did()) }
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
    ///
    /// Accepts exactly what the library's `verify_strict` accepts, in four fifths of its time. The
    /// library's plain check refuses an S that is not reduced and compares R, byte by byte, with the
    /// canonical text of the expected point. So R need not be decoded to know its order: its bytes
    /// tell. The order of the key was checked when the verifier was made.
    pub fn verify(
        &self,
        message: &[u8],
        signature: &[u8; SIGNATURE_LEN],
    ) -> Result<(), BadSignature> {
        let signature = Signature::from_bytes(signature);
        if is_small_order(signature.r_bytes()) {
            return Err(BadSignature);
        }
        self.0.verify(message, &signature).map_err(|_| BadSignature)
    }
}

/// The y coordinates of the eight points of small order.
const SMALL_ORDER: [[u8; KEY_LEN]; 5] = [
    [0; KEY_LEN],
    [
        1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0,
    ],
    [
        0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x7f,
    ],
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ],
];

/// Whether these bytes are the canonical text of a point of small order, with either sign.
fn is_small_order(point: &[u8; KEY_LEN]) -> bool {
    let mut y = *point;
    y[KEY_LEN - 1] &= 0x7f;
    SMALL_ORDER.contains(&y)
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

/// The number of digits of every Ed25519 key: with the prefix ed 01, the number has 47.
const KEY_DIGITS: usize = 47;

/// The key of a did:key. The text must be exactly what [`format_did_key`] returns for it.
pub(super) fn parse_did_key(text: &str) -> Result<[u8; KEY_LEN], BadKey> {
    let digits = text.strip_prefix(PREFIX).ok_or(BadKey::Malformed)?;
    match digits.as_bytes().try_into().ok().and_then(decode_key) {
        Some(key) => Ok(key),
        None => Err(judge_other_text(digits)),
    }
}

/// The key of 47 digits, five at a time. A number of 47 digits has no second spelling, so it need
/// not be written again for comparison.
fn decode_key(digits: &[u8; KEY_DIGITS]) -> Option<[u8; KEY_LEN]> {
    // 58^47 is below 2^288, so nothing is carried out of the nine limbs.
    let mut limbs = [0_u32; 1 + KEY_LEN / 4];
    let (first, rest) = digits.split_at(KEY_DIGITS % 5);
    for part in std::iter::once(first).chain(rest.chunks(5)) {
        let (mut step, mut carry) = (1, 0);
        for digit in part {
            let value = *VALUES.get(usize::from(*digit)).filter(|value| **value < 58)?;
            (step, carry) = (step * 58, carry * 58 + u64::from(value));
        }
        for limb in limbs.iter_mut().rev() {
            let value = u64::from(*limb) * step + carry;
            (*limb, carry) = (value as u32, value >> 32);
        }
    }
    if limbs[0] != u32::from(u16::from_be_bytes(ED25519)) {
        return None;
    }
    let mut key = [0; KEY_LEN];
    let (words, _) = key.as_chunks_mut();
    for (word, limb) in words.iter_mut().zip(&limbs[1..]) {
        *word = limb.to_be_bytes();
    }
    Some(key)
}

/// The value of each digit by its ASCII code, and a larger number for what is not a digit.
const VALUES: [u8; 128] = {
    let mut values = [u8::MAX; 128];
    let mut value = 0;
    while value < ALPHABET.len() {
        values[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    values
};

/// What is wrong with digits that are not those of an Ed25519 key.
fn judge_other_text(digits: &str) -> BadKey {
    if digits.len() > DECODED_MAX {
        return if is_rsa(digits) { BadKey::OtherType } else { BadKey::Malformed };
    }
    let mut decoded = [0; DECODED_MAX];
    let length = bs58::decode(digits).onto(&mut decoded).unwrap_or(0);
    let other = decoded[..length]
        .split_first_chunk()
        .is_some_and(|(codec, key)| OTHERS.contains(&(*codec, key.len())));
    if other { BadKey::OtherType } else { BadKey::Malformed }
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
    let mut digits = [0; KEY_DIGITS + 3];
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
    let mut did = String::with_capacity(PREFIX.len() + KEY_DIGITS);
    did.push_str(PREFIX);
    did.extend(digits[3..].iter().copied().map(char::from));
    did
}

fn is_rsa(digits: &str) -> bool {
    digits.len() <= RSA_MAX
        && RSA.iter().any(|start| digits.starts_with(start))
        && digits.bytes().all(|digit| ALPHABET.contains(&digit))
}
