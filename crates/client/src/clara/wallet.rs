//! A wallet: a key that signs items. The address is derived from the key.

use std::fmt;
use std::io;
use std::path::Path;

use rialto_protocols::kit::ans104::{BadItem, Item, ItemId, SignatureType, UnsignedItem};
use rialto_protocols::kit::base64url;
use rialto_protocols::kit::ed25519::SecretKey;
use sha2::{Digest, Sha256};

use super::rsa::RsaKey;
use super::signed_item::SignedItem;
use crate::agora::Seed;
use crate::call::CallError;

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
        let mut anchor = [0; 32];
        let random = getrandom::fill(&mut anchor);
        random.map_err(|error| {
            CallError::Unreadable(format!("the system's random number generator failed: {error}"))
        })?;
        self.sign_with_anchor(anchor, process, tags, data)
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
        let unfit = |bad: BadItem| CallError::invalid(bad.to_string(), None);
        let id = Item::read(&bytes).map_err(unfit)?.id();
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
