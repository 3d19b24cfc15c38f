//! The four signature types of an item.

use super::error::BadItem;

/// How an item is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureType {
    /// RSA-PSS with 4096 bits, as Arweave wallets sign.
    Arweave,
    /// Ed25519 over the hash.
    Ed25519,
    /// secp256k1 over the hash as a text message.
    Ethereum,
    /// Ed25519 over the hash in hexadecimal digits.
    Solana,
}

impl SignatureType {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Arweave, Self::Ed25519, Self::Ethereum, Self::Solana];

    /// The signature type with this number.
    pub(super) fn from_number(number: u16) -> Result<Self, BadItem> {
        let known = Self::ALL.into_iter().find(|kind| kind.number() == number);
        known.ok_or(BadItem::UnknownKind(number))
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        match self {
            Self::Arweave => 1,
            Self::Ed25519 => 2,
            Self::Ethereum => 3,
            Self::Solana => 4,
        }
    }

    /// Bytes of a signature.
    pub const fn signature_len(self) -> usize {
        match self {
            Self::Arweave => 512,
            Self::Ed25519 | Self::Solana => 64,
            Self::Ethereum => 65,
        }
    }

    /// Bytes of a public key.
    pub const fn owner_len(self) -> usize {
        match self {
            Self::Arweave => 512,
            Self::Ed25519 | Self::Solana => 32,
            Self::Ethereum => 65,
        }
    }
}
