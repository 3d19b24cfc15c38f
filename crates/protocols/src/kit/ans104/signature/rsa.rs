//! RSA-PSS with SHA-256 and a salt of any length.
//!
//! Wallets use two lengths, and those are checked at full speed. Any other length is first
//! recovered from the signature, which the library cannot do, and then checked like the others.

use aws_lc_rs::signature::{
    RSA_PSS_2048_8192_SHA256, RsaParameters, RsaPssSaltLength, RsaPublicKeyComponents,
};
use num_bigint::BigUint;
use sha2::{Digest, Sha256};

use crate::kit::ans104::error::ItemSignatureError;

/// The only allowed exponent.
const EXPONENT: u32 = 65_537;
/// The size of a key, a signature and a padded message, in bytes.
const LENGTH: usize = 512;
const HASH: usize = 32;
/// The longest salt, which Node wallets use.
const LONGEST: RsaParameters = RSA_PSS_2048_8192_SHA256.with_pss_salt_length(RsaPssSaltLength::Max);

pub fn verify(owner: &[u8], message: &[u8], signature: &[u8]) -> Result<(), ItemSignatureError> {
    // Exactly 4096 bits, and odd, as every product of primes is.
    let whole = owner.len() == LENGTH && owner[0] & 0x80 != 0 && owner[LENGTH - 1] & 1 == 1;
    if !whole {
        return Err(ItemSignatureError::BadKey);
    }
    // Both have the same length, so comparing bytes compares the numbers: the signature must be
    // below the modulus.
    if signature.len() != LENGTH || signature >= owner {
        return Err(ItemSignatureError::BadSignature);
    }
    let exponent = EXPONENT.to_be_bytes();
    let key = RsaPublicKeyComponents { n: owner, e: &exponent[1..] };
    let holds = |with: &RsaParameters| key.verify(with, message, signature).is_ok();
    if holds(&LONGEST) || holds(&RSA_PSS_2048_8192_SHA256) {
        return Ok(());
    }
    let salt = salt_length(owner, signature).ok_or(ItemSignatureError::BadSignature)?;
    let other = RSA_PSS_2048_8192_SHA256.with_pss_salt_length(RsaPssSaltLength::Custom(salt));
    match holds(&other) {
        true => Ok(()),
        false => Err(ItemSignatureError::BadSignature),
    }
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
