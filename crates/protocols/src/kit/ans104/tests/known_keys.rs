//! Tests of known keys: which are kept, and that they verify no more than the full check.

use super::super::known_keys::KEPT_MAX;
use super::wallets::{ethereum_item, rsa_item, salted};
use super::*;
use aws_lc_rs::signature::RsaSignatureEncoding;

/// Whether the item is valid by the full check, and whether its key was kept and verifies it.
fn judge(keys: &KnownKeys, raw: &[u8]) -> (bool, bool) {
    let item = Item::read(raw).expect("an item");
    (keys.verify_and_keep(&item).is_ok(), keys.verify(&item))
}

#[test]
fn the_key_of_a_valid_item_verifies_the_next_one() {
    let keys = KnownKeys::default();
    for vector in &vectors("valid") {
        let raw = bytes(text(vector, "hex"));
        let item = Item::read(&raw).expect("an item");
        let is_kept = item.signature_type != SignatureType::Ethereum;
        assert_eq!(judge(&keys, &raw), (true, is_kept), "{}", text(vector, "name"));
    }
    for kind in [SignatureType::Ed25519, SignatureType::Solana] {
        let keys = KnownKeys::default();
        let next = signed(kind, &UnsignedItem { data: b"[1]", ..DRAFT });
        let next = Item::read(&next).expect("an item");
        assert!(!keys.verify(&next), "not known yet");
        assert_eq!(judge(&keys, &signed(kind, &DRAFT)), (true, true));
        assert!(keys.verify(&next));
    }
}

#[test]
fn a_known_key_verifies_nothing_that_it_has_not_signed() {
    for kind in [SignatureType::Ed25519, SignatureType::Solana] {
        let (keys, good) = (KnownKeys::default(), signed(kind, &DRAFT));
        assert_eq!(judge(&keys, &good), (true, true));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(!Item::read(&bad).is_ok_and(|item| keys.verify(&item)), "byte {at}");
        }
    }
    let (keys, good) = (KnownKeys::default(), bytes(text(&vectors("valid")[0], "hex")));
    assert_eq!(judge(&keys, &good), (true, true));
    for at in (0..good.len()).step_by(97).chain([2, 513, 1_026, good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(!Item::read(&bad).is_ok_and(|item| keys.verify(&item)), "byte {at}");
    }
    let item = Item::read(&good).expect("an item");
    let same = Item { signature: item.owner, ..item.clone() };
    assert!(!keys.verify(&same), "a signature is below the modulus");
}

#[test]
fn a_key_is_known_for_one_signature_type() {
    let keys = KnownKeys::default();
    assert_eq!(judge(&keys, &signed(SignatureType::Ed25519, &DRAFT)), (true, true));
    let other = signed(SignatureType::Solana, &DRAFT);
    assert!(!keys.verify(&Item::read(&other).expect("an item")));
    assert_eq!(judge(&keys, &other), (true, true));
}

#[test]
fn the_key_of_an_invalid_item_is_not_kept() {
    let keys = KnownKeys::default();
    let good = signed(SignatureType::Ed25519, &DRAFT);
    let mut bad = good.clone();
    *bad.last_mut().expect("data") ^= 1;
    assert_eq!(judge(&keys, &bad), (false, false));
    assert!(!keys.verify(&Item::read(&good).expect("an item")));
}

#[test]
fn a_wallet_is_known_by_the_salt_it_used_and_may_use_others() {
    static NONE: RsaSignatureEncoding = salted(0);
    static USUAL: RsaSignatureEncoding = salted(32);
    static LONGEST: RsaSignatureEncoding = salted(478);
    let keys = KnownKeys::default();
    assert_eq!(judge(&keys, &rsa_item(&NONE)), (true, false), "an unusual length is not kept");
    for how in [&USUAL, &LONGEST, &USUAL] {
        let raw = rsa_item(how);
        assert!(!keys.verify(&Item::read(&raw).expect("an item")), "{how:?}");
        assert_eq!(judge(&keys, &raw), (true, true), "{how:?}");
    }
    assert_eq!(judge(&keys, &rsa_item(&NONE)), (true, false));
    assert!(keys.verify(&Item::read(&rsa_item(&USUAL)).expect("an item")), "still known");
    assert_eq!(judge(&keys, &ethereum_item(|_| {})), (true, false));
}

#[test]
fn the_table_of_known_keys_has_an_end() {
    let keys = KnownKeys::default();
    let first = signed_by(0, SignatureType::Ed25519, &DRAFT);
    let is_known = || keys.verify(&Item::read(&first).expect("an item"));
    for number in 0..KEPT_MAX as u64 {
        let raw = signed_by(number, SignatureType::Ed25519, &DRAFT);
        assert_eq!(keys.verify_and_keep(&Item::read(&raw).expect("an item")), Ok(()));
    }
    assert!(is_known());
    assert_eq!(
        judge(&keys, &signed_by(KEPT_MAX as u64, SignatureType::Ed25519, &DRAFT)),
        (true, true)
    );
    assert!(!is_known());
}
