//! A wallet: a key that signs items. The address is derived from the key, which is an Ed25519 seed
//! or the 4096-bit RSA key of an Arweave wallet (a JWK).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PSS_SHA256, RsaPssSaltLength, RsaSignatureEncoding};
use bytes::Bytes;
use rialto_protocols::kit::ans104::{BadItem, Item, ItemId, SignatureType, UnsignedItem};
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::SecretKey;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::agora::Seed;
use crate::call::CallError;
use crate::ids;

/// Length of a modulus and of a signature, in bytes.
const LENGTH: usize = 512;
/// Length of the DER prefix of a public key of this size: the sequence header. The header of the
/// modulus follows, and a zero byte.
const HEAD: usize = 4;
const MODULUS: [u8; 5] = [0x02, 0x82, 0x02, 0x01, 0x00];
/// The longest possible salt, as wallets on Node use it.
static SALTED: RsaSignatureEncoding = RSA_PSS_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);
/// The only supported exponent of a key.
const EXPONENT: [u8; 3] = [1, 0, 1];

/// A key that can sign items.
#[derive(Clone)]
pub struct Wallet {
    key: WalletKey,
    address: String,
}

#[derive(Clone)]
enum WalletKey {
    Ed25519(SecretKey),
    Rsa(RsaKey),
}

/// Why a text or a file is not a valid wallet.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is neither a seed nor a JWK.
    #[error("not a wallet: expected `ed25519-seed:…` or the JWK of an RSA key")]
    UnknownFormat,
    /// A member of the JWK is missing or malformed.
    #[error("the JWK member {0:?} is missing or invalid")]
    BadMember(&'static str),
    /// The numbers are not a 4096-bit key.
    #[error("the JWK is not a 4096-bit RSA key with the exponent 65537")]
    BadKey,
}

impl Wallet {
    /// The wallet with the Ed25519 key of this seed.
    pub fn new(seed: &Seed) -> Self {
        Self::of(WalletKey::Ed25519(seed.key()))
    }

    /// A new wallet with a 4096-bit RSA key, as Arweave uses. Takes seconds.
    pub fn generate_rsa() -> Result<Self, CallError> {
        RsaKey::generate().map(|key| Self::of(WalletKey::Rsa(key)))
    }

    /// Parses a key file: a seed in the form of [`Seed::read`], or an Arweave wallet's JWK.
    pub fn read(text: &str) -> Result<Self, WalletError> {
        if let Some(seed) = Seed::read(text) {
            return Ok(Self::new(&seed));
        }
        RsaKey::from_jwk(text).map(|key| Self::of(WalletKey::Rsa(key)))
    }

    /// Reads the key file at a path.
    pub fn open(path: &Path) -> Result<Self, WalletError> {
        Self::read(&std::fs::read_to_string(path)?)
    }

    /// The wallet's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Signs a message to a process. Two calls with the same content give two messages.
    pub fn sign(
        &self,
        process: ItemId,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<SignedItem, CallError> {
        self.sign_with_anchor(ids::random_bytes()?, process, tags, data)
    }

    /// Like `sign`, with an anchor of your own.
    pub fn sign_with_anchor(
        &self,
        anchor: [u8; 32],
        process: ItemId,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<SignedItem, CallError> {
        let draft = UnsignedItem {
            target: Some(process.0),
            anchor: Some(anchor),
            tags,
            data: data.as_bytes(),
        };
        let bytes = self.key.sign(&draft)?;
        let invalid = |bad: BadItem| CallError::invalid(bad.to_string(), None);
        let id = Item::read(&bytes).map_err(invalid)?.id();
        Ok(SignedItem { id: id.to_string(), bytes: bytes.into() })
    }

    fn of(key: WalletKey) -> Self {
        let address = match &key {
            WalletKey::Ed25519(key) => Sha256::digest(key.public().as_bytes()),
            WalletKey::Rsa(key) => Sha256::digest(key.owner()),
        };
        Self { key, address: base64url::encode(&address) }
    }
}

impl WalletKey {
    fn sign(&self, draft: &UnsignedItem<'_>) -> Result<Vec<u8>, CallError> {
        Ok(match self {
            Self::Ed25519(key) => {
                let public = key.public();
                let owner = public.as_bytes();
                let signature = key.sign(&draft.deep_hash(SignatureType::Ed25519, owner));
                draft.with_signature(SignatureType::Ed25519, owner, &signature)
            }
            Self::Rsa(key) => {
                let signature = key.sign(&draft.deep_hash(SignatureType::Arweave, key.owner()))?;
                draft.with_signature(SignatureType::Arweave, key.owner(), &signature)
            }
        })
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wallet({})", self.address)
    }
}

/// A signed message. Sent again, it is still the same message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedItem {
    /// Its id.
    pub id: String,
    pub(super) bytes: Bytes,
}

impl SignedItem {
    /// The item's bytes, as sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A key and its public half.
#[derive(Clone)]
struct RsaKey {
    pair: Arc<KeyPair>,
    owner: Arc<[u8]>,
}

impl RsaKey {
    fn generate() -> Result<Self, CallError> {
        let broken = || CallError::unreadable("the RSA key could not be generated");
        let pair = KeyPair::generate(KeySize::Rsa4096).map_err(|_| broken())?;
        Self::of(pair).ok_or_else(broken)
    }

    fn from_jwk(text: &str) -> Result<Self, WalletError> {
        let der = Jwk::read(text)?.der()?;
        let pair = KeyPair::from_der(&der).map_err(|_| WalletError::BadKey)?;
        Self::of(pair).ok_or(WalletError::BadKey)
    }

    /// `None` for keys of another length.
    fn of(pair: KeyPair) -> Option<Self> {
        let number = pair.public_key().as_ref().get(HEAD..)?.strip_prefix(&MODULUS)?;
        let owner = number.get(..LENGTH)?.into();
        Some(Self { pair: Arc::new(pair), owner })
    }

    /// The modulus.
    fn owner(&self) -> &[u8] {
        &self.owner
    }

    /// A signature; a different one each time.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CallError> {
        let mut signature = vec![0; LENGTH];
        let signed = self.pair.sign(&SALTED, &SystemRandom::new(), message, &mut signature);
        signed.map_err(|_| CallError::unreadable("signing with the RSA key failed"))?;
        Ok(signature)
    }
}

/// The numbers of a key, each in Base64Url.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    n: Option<String>,
    e: Option<String>,
    d: Option<String>,
    p: Option<String>,
    q: Option<String>,
    dp: Option<String>,
    dq: Option<String>,
    qi: Option<String>,
}

impl Jwk {
    fn read(text: &str) -> Result<Self, WalletError> {
        let jwk: Self = serde_json::from_str(text).map_err(|_| WalletError::UnknownFormat)?;
        if jwk.kty == "RSA" { Ok(jwk) } else { Err(WalletError::UnknownFormat) }
    }

    /// An `RSAPrivateKey` of RFC 8017: the version, which is 0, and the numbers.
    fn der(&self) -> Result<Vec<u8>, WalletError> {
        let named = [
            ("n", &self.n),
            ("e", &self.e),
            ("d", &self.d),
            ("p", &self.p),
            ("q", &self.q),
            ("dp", &self.dp),
            ("dq", &self.dq),
            ("qi", &self.qi),
        ];
        let mut numbers = integer(&[0]);
        for (name, text) in named {
            let bytes = text.as_ref().and_then(|text| base64url::decode(text).ok());
            let bytes = bytes.filter(|bytes| !bytes.is_empty());
            let bytes = bytes.ok_or(WalletError::BadMember(name))?;
            if name == "e" && bytes != EXPONENT {
                return Err(WalletError::BadKey);
            }
            numbers.extend(integer(&bytes));
        }
        Ok(tagged(0x30, &numbers))
    }
}

/// A non-negative DER integer. If the first bit is set, a zero byte goes first.
fn integer(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let digits = &bytes[start..];
    let sign = (digits[0] & 0x80 != 0).then_some(0);
    let content: Vec<u8> = sign.into_iter().chain(digits.iter().copied()).collect();
    tagged(0x02, &content)
}

/// A DER element: tag, length, content. A length up to 127 takes one byte.
fn tagged(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let bytes = length.to_be_bytes();
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1);
    let mut out = vec![kind];
    if length > 127 {
        // At most eight bytes, so the count always fits.
        out.push(0x80 | (bytes.len() - start) as u8);
    }
    out.extend_from_slice(&bytes[start..]);
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_der_wants_them() {
        assert_eq!(integer(&[0]), [2, 1, 0]);
        assert_eq!(integer(&[0, 0, 7]), [2, 1, 7]);
        assert_eq!(integer(&[0x80]), [2, 2, 0, 0x80]);
        assert_eq!(tagged(4, &[1; 127])[..2], [4, 127]);
        assert_eq!(tagged(4, &[1; 128])[..3], [4, 0x81, 128]);
        assert_eq!(tagged(4, &[1; 300])[..4], [4, 0x82, 1, 44]);
    }
}
