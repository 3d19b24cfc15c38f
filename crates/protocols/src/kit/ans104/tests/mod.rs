//! Tests: the published items, tampering, and bytes that are not items.

mod known_keys;
mod wallets;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::kit::ed25519::SecretKey;

const VECTORS: &str = include_str!("../fixtures/ans104.json");

fn vectors(list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(VECTORS).expect("JSON");
    all[list].as_array().expect("a list").clone()
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16);
    pairs.map(|pair| byte(pair).expect("hexadecimal digits")).collect()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn every_valid_item_comes_out_as_printed_and_verifies() {
    let all = vectors("valid");
    assert_eq!(all.len(), 9);
    for vector in &all {
        let name = text(vector, "name");
        let raw = bytes(text(vector, "hex"));
        assert_eq!(raw.len() as u64, vector["length"], "{name}");
        let item = Item::read(&raw).expect(name);
        assert_eq!(u64::from(item.signature_type.number()), vector["signature_type"], "{name}");
        assert_eq!(item.id().to_string(), text(vector, "id"), "{name}");
        assert_eq!(item.signer_address(), text(vector, "ao_owner_address"), "{name}");
        let encode = crate::kit::base64url::encode;
        assert_eq!(encode(item.owner), text(vector, "owner_b64url"), "{name}");
        assert_eq!(encode(item.target.unwrap_or_default()), text(vector, "target_b64url"));
        assert_eq!(encode(item.anchor.unwrap_or_default()), text(vector, "anchor_b64url"));
        let tags: Vec<_> = item.tags.iter().map(|tag| (tag.name, tag.value)).collect();
        let printed = vector["tags"].as_array().expect("a list").iter();
        let printed: Vec<_> = printed.map(|tag| (text(tag, "name"), text(tag, "value"))).collect();
        assert_eq!(tags, printed, "{name}");
        assert_eq!(item.raw_tags, bytes(text(vector, "raw_tags_hex")), "{name}");
        assert_eq!((raw.len() - item.data.len()) as u64, vector["data_offset"], "{name}");
        assert_eq!(item.data, bytes(text(vector, "data_hex")), "{name}");
        let hash: String = item.deep_hash().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, text(vector, "deep_hash_sha384_hex"), "{name}");
        assert_eq!(item.verify(), Ok(()), "{name}");
    }
}

#[test]
fn every_invalid_item_is_refused() {
    let all = vectors("invalid");
    assert_eq!(all.len(), 6);
    for vector in &all {
        let raw = bytes(text(vector, "hex"));
        let proven = Item::read(&raw).map(|item| item.verify());
        assert!(!matches!(proven, Ok(Ok(()))), "{}: {}", text(vector, "name"), text(vector, "why"));
    }
}

/// A small item signed by a test key.
fn signed(kind: SignatureType, draft: &UnsignedItem<'_>) -> Vec<u8> {
    signed_by(7, kind, draft)
}

/// A small item signed by one of many test keys.
fn signed_by(number: u64, kind: SignatureType, draft: &UnsignedItem<'_>) -> Vec<u8> {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    let key = SecretKey::from_seed(&seed);
    let owner = *key.public().as_bytes();
    let hash = draft.deep_hash(kind, &owner);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let signature = match kind {
        SignatureType::Solana => key.sign(digits.as_bytes()),
        _ => key.sign(&hash),
    };
    draft.with_signature(kind, &owner, &signature)
}

const DRAFT: UnsignedItem<'_> = UnsignedItem {
    target: Some([9; 32]),
    anchor: None,
    tags: &[("Action", "Register-Task"), ("Empty", "")],
    data: b"{}",
};

#[test]
fn a_tampered_byte_anywhere_is_refused() {
    for kind in [SignatureType::Ed25519, SignatureType::Solana] {
        let good = signed(kind, &DRAFT);
        assert_eq!(Item::read(&good).expect("an item").verify(), Ok(()));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            let proven = Item::read(&bad).map(|item| item.verify());
            assert!(!matches!(proven, Ok(Ok(()))), "byte {at}");
        }
    }
}

#[test]
fn a_tampered_byte_of_an_rsa_item_is_refused() {
    let first = &vectors("valid")[0];
    let good = bytes(text(first, "hex"));
    // Every part is covered. Trying every byte would take too long.
    for at in (0..good.len()).step_by(97).chain([0, 2, 513, 514, 1_025, 1_026, good.len() - 1]) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let proven = Item::read(&bad).map(|item| item.verify());
        assert!(!matches!(proven, Ok(Ok(()))), "byte {at}");
    }
}

#[test]
fn bytes_that_are_no_items_are_told_why() {
    let good = signed(SignatureType::Ed25519, &DRAFT);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bad = good.clone();
        change(&mut bad);
        Item::read(&bad).map(|item| item.tags.len())
    };
    // 2 + 64 + 32 bytes, then flags, target, counts and tags.
    const TARGET_FLAG: usize = 98;
    const ANCHOR_FLAG: usize = 131;
    const COUNT: usize = 132;
    const LENGTH: usize = 140;
    const TAGS: usize = 148;
    assert_eq!(changed(&|_| {}), Ok(2));
    assert_eq!(changed(&|bad| bad.truncate(79)), Err(BadItem::TooShort));
    assert_eq!(changed(&|bad| bad.resize(ITEM_MAX + 1, 0)), Err(BadItem::TooLong));
    assert_eq!(changed(&|bad| bad.truncate(TAGS + 3)), Err(BadItem::CutShort));
    assert_eq!(changed(&|bad| bad[0] = 5), Err(BadItem::UnknownKind(5)));
    assert_eq!(changed(&|bad| bad[TARGET_FLAG] = 2), Err(BadItem::Presence("target")));
    assert_eq!(changed(&|bad| bad[ANCHOR_FLAG] = 9), Err(BadItem::Presence("anchor")));
    assert_eq!(changed(&|bad| bad[LENGTH + 2] = 1), Err(BadItem::TagsTooLong));
    assert_eq!(changed(&|bad| bad[LENGTH + 7] = 0xff), Err(BadItem::TagsTooLong));
    assert_eq!(changed(&|bad| bad[COUNT] = 3), Err(BadItem::TagCount));
    assert_eq!(changed(&|bad| bad[TAGS] = 0x06), Err(BadItem::BadTags));
    assert_eq!(changed(&|bad| bad[TAGS + 1] = 0xff), Err(BadItem::BadTags));
    assert_eq!(changed(&|bad| bad[TAGS + 2] = 0xff), Err(BadItem::TagText));
}

#[test]
fn many_tags_and_empty_values_are_fine() {
    let tags = vec![("a", ""); 200];
    let raw = signed(SignatureType::Ed25519, &UnsignedItem { tags: &tags, ..DRAFT });
    let item = Item::read(&raw).expect("an item");
    assert_eq!((item.tags.len(), item.tag("a"), item.tag("A")), (200, Some(""), None));
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_back(
        target in any::<Option<[u8; 32]>>(),
        anchor in any::<Option<[u8; 32]>>(),
        tags in prop::collection::vec(("\\PC{0,20}", "\\PC{0,20}"), 0..20),
        data in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let tags: Vec<(&str, &str)> = tags.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let draft = UnsignedItem { target, anchor, tags: &tags, data: &data };
        let raw = signed(SignatureType::Ed25519, &draft);
        let item = Item::read(&raw).expect("an item");
        prop_assert_eq!(item.target, target.as_ref().map(|id| &id[..]));
        prop_assert_eq!(item.anchor, anchor.as_ref().map(|id| &id[..]));
        let read: Vec<_> = item.tags.iter().map(|tag| (tag.name, tag.value)).collect();
        prop_assert_eq!(read, tags);
        prop_assert_eq!(item.data, &data[..]);
        prop_assert_eq!(item.verify(), Ok(()));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(mut raw in prop::collection::vec(any::<u8>(), 0..2_000), kind in 0_u8..6) {
        if let Some(first) = raw.first_mut() {
            *first = kind;
        }
        if let Some(second) = raw.get_mut(1) {
            *second = 0;
        }
        let _ = Item::read(&raw).map(|item| (item.id(), item.signer_address()));
    }

    #[test]
    fn no_tags_make_the_reader_panic(raw in prop::collection::vec(any::<u8>(), 0..300), count in 0_u64..20) {
        let _ = tags::read(&raw, count);
    }
}
