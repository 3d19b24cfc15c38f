//! Tests with generated wallets: RSA with salts of any length, and Ethereum.

use std::sync::LazyLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{
    KeyPair as _, RSA_PSS_SHA256, RsaEncoding, RsaPssSaltLength, RsaSignatureEncoding,
};
use k256::ecdsa::SigningKey;
use num_bigint::BigUint;
use sha3::{Digest, Keccak256};

use super::{DRAFT, Item, ItemSignatureError, SignatureType};

/// Generated once, since a key of 4096 bits takes a while.
static RSA: LazyLock<KeyPair> =
    LazyLock::new(|| KeyPair::generate(KeySize::Rsa4096).expect("a key"));

/// The modulus: the largest number in the public key.
fn modulus(key: &KeyPair) -> Vec<u8> {
    let der = key.public_key().as_ref();
    // SEQUENCE { INTEGER 00 n, INTEGER e }: the integer's 513 bytes begin where its length ends.
    let start = der.windows(3).position(|part| part == [0x82, 0x02, 0x01]).expect("the modulus");
    der[start + 4..start + 4 + 512].to_vec()
}

pub(super) fn rsa_item(how: &'static dyn RsaEncoding) -> Vec<u8> {
    let owner = modulus(&RSA);
    let hash = DRAFT.deep_hash(SignatureType::Arweave, &owner);
    let mut signature = vec![0; 512];
    RSA.sign(how, &SystemRandom::new(), &hash, &mut signature).expect("a signature");
    DRAFT.with_signature(SignatureType::Arweave, &owner, &signature)
}

pub(super) const fn salted(length: u16) -> RsaSignatureEncoding {
    RSA_PSS_SHA256.with_pss_salt_length(RsaPssSaltLength::Custom(length))
}

#[test]
fn salts_of_any_length_are_fine() {
    static NONE: RsaSignatureEncoding = salted(0);
    static SHORT: RsaSignatureEncoding = salted(17);
    static USUAL: RsaSignatureEncoding = salted(32);
    static LONG: RsaSignatureEncoding = salted(300);
    static LONGEST: RsaSignatureEncoding = salted(478);
    for how in [&NONE, &SHORT, &USUAL, &LONG, &LONGEST] {
        let raw = rsa_item(how);
        let item = Item::read(&raw).expect("an item");
        assert_eq!(item.verify(), Ok(()), "{how:?}");
    }
}

#[test]
fn a_signature_has_one_number_and_a_key_4096_bits() {
    let good = rsa_item(&RSA_PSS_SHA256);
    let item = Item::read(&good).expect("an item");
    let (signature, owner) = (item.signature, item.owner);
    // Adding the modulus would give the same signature, if the sum fits.
    let more = BigUint::from_bytes_be(signature) + BigUint::from_bytes_be(owner);
    let more = more.to_bytes_be();
    if more.len() == 512 {
        let raw = DRAFT.with_signature(SignatureType::Arweave, owner, &more);
        let item = Item::read(&raw).expect("an item");
        assert_eq!(item.verify(), Err(ItemSignatureError::BadSignature));
    }
    let same = DRAFT.with_signature(SignatureType::Arweave, owner, owner);
    assert_eq!(Item::read(&same).expect("an item").verify(), Err(ItemSignatureError::BadSignature));
    for (at, bit) in [(0, 0x80), (511, 0x01)] {
        let mut weak = owner.to_vec();
        weak[at] &= !bit;
        let raw = DRAFT.with_signature(SignatureType::Arweave, &weak, signature);
        assert_eq!(Item::read(&raw).expect("an item").verify(), Err(ItemSignatureError::BadKey));
    }
}

/// An item signed by a test Ethereum key, with a changed signature.
pub(super) fn ethereum_item(change: impl Fn(&mut [u8; 65])) -> Vec<u8> {
    let key = SigningKey::from_slice(&[0x42; 32]).expect("a key");
    let owner = key.verifying_key().to_sec1_point(false);
    let hash = DRAFT.deep_hash(SignatureType::Ethereum, owner.as_bytes());
    let digest = Keccak256::new_with_prefix(b"\x19Ethereum Signed Message:\n48")
        .chain_update(hash)
        .finalize();
    let (signature, recovery) = key.sign_prehash_recoverable(&digest);
    let mut bytes = [0; 65];
    bytes[..64].copy_from_slice(&signature.to_bytes());
    bytes[64] = 27 + recovery.to_byte();
    change(&mut bytes);
    DRAFT.with_signature(SignatureType::Ethereum, owner.as_bytes(), &bytes)
}

#[test]
fn a_text_signed_by_an_ethereum_wallet_is_proven_in_one_form_only() {
    let verify = |raw: Vec<u8>| Item::read(&raw).expect("an item").verify();
    assert_eq!(verify(ethereum_item(|_| {})), Ok(()));
    assert_eq!(verify(ethereum_item(|bytes| bytes[64] -= 27)), Err(ItemSignatureError::Malleable));
    assert_eq!(
        verify(ethereum_item(|bytes| bytes[64] ^= 0x07)),
        Err(ItemSignatureError::BadSignature)
    );
    assert_eq!(
        verify(ethereum_item(|bytes| bytes[10] ^= 1)),
        Err(ItemSignatureError::BadSignature)
    );
    // The other s of the same signature: the order of the curve minus this one.
    let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    let order = BigUint::parse_bytes(order.as_bytes(), 16).expect("a number");
    let high = ethereum_item(|bytes| {
        let high = (&order - BigUint::from_bytes_be(&bytes[32..64])).to_bytes_be();
        bytes[32..64].fill(0);
        bytes[64 - high.len()..64].copy_from_slice(&high);
        bytes[64] ^= 0x07;
    });
    assert_eq!(verify(high), Err(ItemSignatureError::Malleable));
}

#[test]
fn an_ethereum_address_has_its_checksum_in_its_case() {
    // The private key 1, whose address is well known.
    let mut one = [0; 32];
    one[31] = 1;
    let key = SigningKey::from_slice(&one).expect("a key");
    let owner = key.verifying_key().to_sec1_point(false);
    let address = super::signature::address_of(SignatureType::Ethereum, owner.as_bytes());
    assert_eq!(address, "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf");
}
