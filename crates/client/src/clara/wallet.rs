//! A wallet: a key that signs items. Whoever has it is the address.

use std::fmt;
use std::io;
use std::path::Path;

use rialto_protocols::kit::ans104::{BadItem, Draft, Id, Item, Kind};
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::SecretKey;
use sha2::{Digest, Sha256};

use super::rsa::RsaKey;
use super::signed::Signed;
use crate::agora::Seed;
use crate::call::CallError;

/// Somebody who can sign items.
#[derive(Clone)]
pub struct Wallet {
    key: Key,
    address: String,
}

#[derive(Clone)]
enum Key {
    Ed25519(SecretKey),
    Rsa(RsaKey),
}

/// Why a text or a file is no wallet.
#[derive(Debug, thiserror::Error)]
pub enum NotAWallet {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is neither of the two.
    #[error("not a wallet: expected `ed25519-seed:…` or the JWK of an RSA key")]
    Unknown,
    /// A member of the JWK is missing or is not written as it must be.
    #[error("the JWK member {0:?} is missing or invalid")]
    BadMember(&'static str),
    /// The numbers are no key of 4096 bits.
    #[error("the JWK is no RSA key of 4096 bits with the exponent 65537")]
    BadKey,
}

impl Wallet {
    /// The wallet with an Ed25519 key that grows from this seed.
    pub fn new(seed: &Seed) -> Self {
        Self::of(Key::Ed25519(seed.key()))
    }

    /// A new wallet with an RSA key of 4096 bits, as Arweave's are. Takes seconds.
    pub fn rsa() -> Result<Self, CallError> {
        RsaKey::generate().map(|key| Self::of(Key::Rsa(key)))
    }

    /// Reads a key file: a seed as [`Seed::read`] takes it, or an Arweave wallet's JWK.
    pub fn read(text: &str) -> Result<Self, NotAWallet> {
        if let Some(seed) = Seed::read(text) {
            return Ok(Self::new(&seed));
        }
        RsaKey::from_jwk(text).map(|key| Self::of(Key::Rsa(key)))
    }

    /// Reads the key file at a path.
    pub fn open(path: &Path) -> Result<Self, NotAWallet> {
        Self::read(&std::fs::read_to_string(path)?)
    }

    /// What the market calls whoever signs with it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Signs a message to a process. Two messages of the same content are two messages.
    pub fn sign(
        &self,
        process: Id,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<Signed, CallError> {
        let mut anchor = [0; 32];
        let random = getrandom::fill(&mut anchor);
        random.map_err(|error| {
            CallError::Unreadable(format!("the system's random number generator failed: {error}"))
        })?;
        self.sign_as(anchor, process, tags, data)
    }

    /// The same with an anchor of the caller's.
    pub fn sign_as(
        &self,
        anchor: [u8; 32],
        process: Id,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<Signed, CallError> {
        let draft =
            Draft { target: Some(process.0), anchor: Some(anchor), tags, data: data.as_bytes() };
        let bytes = self.key.sign(&draft)?;
        let unfit = |bad: BadItem| CallError::invalid(bad.to_string(), None);
        let id = Item::read(&bytes).map_err(unfit)?.id();
        Ok(Signed { id: id.to_string(), bytes: bytes.into() })
    }

    fn of(key: Key) -> Self {
        let address = match &key {
            Key::Ed25519(key) => Sha256::digest(key.public().as_bytes()),
            Key::Rsa(key) => Sha256::digest(key.owner()),
        };
        Self { key, address: base64url::encode(&address) }
    }
}

impl Key {
    fn sign(&self, draft: &Draft<'_>) -> Result<Vec<u8>, CallError> {
        Ok(match self {
            Self::Ed25519(key) => {
                let public = key.public();
                let owner = public.as_bytes();
                let signature = key.sign(&draft.deep_hash(Kind::Ed25519, owner));
                draft.signed(Kind::Ed25519, owner, &signature)
            }
            Self::Rsa(key) => {
                let signature = key.sign(&draft.deep_hash(Kind::Arweave, key.owner()))?;
                draft.signed(Kind::Arweave, key.owner(), &signature)
            }
        })
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wallet({})", self.address)
    }
}
