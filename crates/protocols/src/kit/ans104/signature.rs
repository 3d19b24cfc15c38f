//! Verifies that an item's owner has signed it, in the only form each signature may have (clara
//! R71).
//!
//! An item's id is the hash of its signature. If a signature could be rewritten into another valid
//! one for the same content, the same message would count twice.

use std::fmt;

use aws_lc_rs::signature::{
    ParsedPublicKey, RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPssSaltLength,
    RsaPublicKeyComponents,
};
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};
use num_bigint::BigUint;
use sha2::{Digest, Sha256};
use sha3::Keccak256;

use super::{BadItem, Item, ItemSignatureError};
use crate::kit::base64url;
use crate::kit::ed25519::{PublicKey, Verifier};

pub(super) fn verify(item: &Item<'_>) -> Result<(), ItemSignatureError> {
    let hash = item.deep_hash();
    match item.signature_type {
        SignatureType::Arweave => verify_rsa(item.owner, &hash, item.signature),
        SignatureType::Ethereum => verify_ethereum(item.owner, &hash, item.signature),
        SignatureType::Ed25519 => ed25519(item.owner, &hash, item.signature),
        SignatureType::Solana => ed25519(item.owner, digits(&hash).as_bytes(), item.signature),
    }
}

/// A key that is ready to verify, for signatures in the form in which it signed before.
pub(super) enum KeyVerifier {
    /// With the length of the salt that its wallet uses.
    Rsa(ParsedPublicKey),
    Ed25519(Verifier),
}

/// The verifier of the key of a valid item. There is none for salts of unusual length, nor for
/// Ethereum, where the key is recovered from each signature.
pub(super) fn prepare(item: &Item<'_>) -> Option<KeyVerifier> {
    match item.signature_type {
        SignatureType::Arweave => {
            let hash = item.deep_hash();
            let components = RsaPublicKeyComponents { n: item.owner, e: &EXPONENT_BYTES };
            let with = |salt| components.to_parsed_public_key(salt).map(KeyVerifier::Rsa).ok();
            let mut usual = [&LONGEST, &USUAL].into_iter().filter_map(with);
            usual.find(|verifier| verifier.verify(item, &hash).is_ok())
        }
        SignatureType::Ed25519 | SignatureType::Solana => {
            ed25519_verifier(item.owner).map(KeyVerifier::Ed25519).ok()
        }
        SignatureType::Ethereum => None,
    }
}

impl KeyVerifier {
    /// Verifies an item of this key with its deep hash.
    pub(super) fn verify(
        &self,
        item: &Item<'_>,
        hash: &[u8; 48],
    ) -> Result<(), ItemSignatureError> {
        match (self, item.signature_type) {
            (Self::Rsa(key), _) if is_below_modulus(item.owner, item.signature) => {
                key.verify_sig(hash, item.signature).map_err(|_| ItemSignatureError::BadSignature)
            }
            (Self::Rsa(_), _) => Err(ItemSignatureError::BadSignature),
            (Self::Ed25519(key), SignatureType::Solana) => {
                verify_ed25519(key, digits(hash).as_bytes(), item.signature)
            }
            (Self::Ed25519(key), _) => verify_ed25519(key, hash, item.signature),
        }
    }
}

/// Strict: only canonical numbers and points, and no key of small order.
fn ed25519(owner: &[u8], message: &[u8], signature: &[u8]) -> Result<(), ItemSignatureError> {
    verify_ed25519(&ed25519_verifier(owner)?, message, signature)
}

fn ed25519_verifier(owner: &[u8]) -> Result<Verifier, ItemSignatureError> {
    let key = owner.try_into().map(PublicKey::from_bytes);
    let key = key.map_err(|_| ItemSignatureError::BadKey)?;
    Verifier::new(key).map_err(|_| ItemSignatureError::BadKey)
}

fn verify_ed25519(
    verifier: &Verifier,
    message: &[u8],
    signature: &[u8],
) -> Result<(), ItemSignatureError> {
    let signature = signature.try_into().map_err(|_| ItemSignatureError::BadSignature)?;
    verifier.verify(message, signature).map_err(|_| ItemSignatureError::BadSignature)
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

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

/// The id of an item or a process: 32 bytes, written in 43 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId(pub [u8; 32]);

impl ItemId {
    /// The id of the item with this signature.
    pub fn address_of_key(signature: &[u8]) -> Self {
        Self(Sha256::digest(signature).into())
    }

    /// Reads an id.
    pub fn read(text: &str) -> Option<Self> {
        base64url::decode(text).ok()?.try_into().ok().map(Self)
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64url::encode(&self.0))
    }
}

/// The address of a key.
pub(super) fn address_of(kind: SignatureType, owner: &[u8]) -> String {
    match kind {
        SignatureType::Ethereum => ethereum_address(owner.get(1..).unwrap_or_default()),
        SignatureType::Arweave | SignatureType::Ed25519 | SignatureType::Solana => {
            base64url::encode(&Sha256::digest(owner))
        }
    }
}

/// The last twenty bytes of the key's hash in hexadecimal; the case of the letters is a checksum
/// (EIP-55).
fn ethereum_address(point: &[u8]) -> String {
    let hash = Keccak256::digest(point);
    let digits: String = hash[12..].iter().map(|byte| format!("{byte:02x}")).collect();
    let check = Keccak256::digest(digits.as_bytes());
    let cased = digits.chars().enumerate().map(|(at, digit)| {
        let nibble = check[at / 2] >> (4 * (1 - at % 2)) & 0x0f;
        if nibble >= 8 { digit.to_ascii_uppercase() } else { digit }
    });
    format!("0x{}", cased.collect::<String>())
}

/// The only allowed exponent.
const EXPONENT: u32 = 65_537;
/// The size of a key, a signature and a padded message, in bytes.
const LENGTH: usize = 512;
/// The size of a SHA-256 hash, in bytes.
const HASH: usize = 32;
/// The exponent as the library takes it: without leading zeros.
const EXPONENT_BYTES: [u8; 3] = [1, 0, 1];
/// The longest salt, which Node wallets use.
static LONGEST: RsaParameters =
    RSA_PSS_2048_8192_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);
/// A salt as long as the hash, which all other wallets use.
static USUAL: RsaParameters = RSA_PSS_2048_8192_SHA256;

/// RSA-PSS with SHA-256 and a salt of any length. Wallets use two lengths, and those are checked at full
/// speed. Any other length is first recovered from the signature, which the library cannot do, and
/// then checked like the others.
fn verify_rsa(owner: &[u8], message: &[u8], signature: &[u8]) -> Result<(), ItemSignatureError> {
    // Exactly 4096 bits, and odd, as every product of primes is.
    let whole = owner.len() == LENGTH && owner[0] & 0x80 != 0 && owner[LENGTH - 1] & 1 == 1;
    if !whole {
        return Err(ItemSignatureError::BadKey);
    }
    if !is_below_modulus(owner, signature) {
        return Err(ItemSignatureError::BadSignature);
    }
    let key = RsaPublicKeyComponents { n: owner, e: &EXPONENT_BYTES };
    let holds = |with: &RsaParameters| key.verify(with, message, signature).is_ok();
    if holds(&LONGEST) || holds(&USUAL) {
        return Ok(());
    }
    let salt = salt_length(owner, signature).ok_or(ItemSignatureError::BadSignature)?;
    let other = RSA_PSS_2048_8192_SHA256.with_pss_salt_length(RsaPssSaltLength::Custom(salt));
    if holds(&other) { Ok(()) } else { Err(ItemSignatureError::BadSignature) }
}

/// Whether the signature is a number below the modulus. Both have the same length, so comparing
/// bytes compares the numbers.
fn is_below_modulus(owner: &[u8], signature: &[u8]) -> bool {
    signature.len() == LENGTH && signature < owner
}

/// The length of the salt: the bytes after the zeros and the one of the unmasked block (RFC 8017,
/// section 9.1.2).
fn salt_length(owner: &[u8], signature: &[u8]) -> Option<u16> {
    let (modulus, number) = (BigUint::from_bytes_be(owner), BigUint::from_bytes_be(signature));
    let padded = number.modpow(&BigUint::from(EXPONENT), &modulus).to_bytes_be();
    let mut block = vec![0; LENGTH.checked_sub(padded.len())?];
    block.extend(padded);
    let (masked, rest) = block.split_at(LENGTH - HASH - 1);
    let (hash, trailer) = rest.split_at(HASH);
    if trailer != [0xbc] {
        return None;
    }
    let mut plain: Vec<u8> =
        masked.iter().zip(mask(hash, masked.len())).map(|(byte, mask)| byte ^ mask).collect();
    // One of the 4096 bits is not used.
    plain[0] &= 0x7f;
    let one = plain.iter().position(|byte| *byte != 0)?;
    (plain[one] == 1).then(|| u16::try_from(plain.len() - one - 1).ok())?
}

/// MGF1 with SHA-256.
fn mask(seed: &[u8], length: usize) -> impl Iterator<Item = u8> {
    let blocks = u32::try_from(length.div_ceil(HASH)).unwrap_or(0);
    let block = move |counter: u32| -> [u8; HASH] {
        Sha256::new_with_prefix(seed).chain_update(counter.to_be_bytes()).finalize().into()
    };
    (0..blocks).flat_map(block)
}

/// What wallets put before a text of 48 bytes.
const PREFIX: &[u8] = b"\x19Ethereum Signed Message:\n48";

/// secp256k1 over the hash, signed as a text message by Ethereum wallets.
fn verify_ethereum(
    owner: &[u8],
    hash: &[u8; 48],
    signature: &[u8],
) -> Result<(), ItemSignatureError> {
    let key = VerifyingKey::from_sec1_bytes(owner).map_err(|_| ItemSignatureError::BadKey)?;
    let [numbers @ .., v] = signature else { return Err(ItemSignatureError::BadSignature) };
    let signature = Signature::from_slice(numbers).map_err(|_| ItemSignatureError::BadSignature)?;
    let digest = Keccak256::new_with_prefix(PREFIX).chain_update(hash).finalize();
    // The other value of s would be a second signature of the same content.
    if signature.normalize_s() != signature {
        return Err(ItemSignatureError::Malleable);
    }
    let recovery = v.checked_sub(27).filter(|id| *id < 2).and_then(RecoveryId::from_byte);
    let recovery = recovery.ok_or(ItemSignatureError::Malleable)?;
    let recovered = VerifyingKey::recover_from_prehash(&digest, &signature, recovery);
    match recovered {
        Ok(recovered) if recovered == key => Ok(()),
        _ => Err(ItemSignatureError::BadSignature),
    }
}
