//! Data items: parsing keeps every byte, and no signature survives a flipped bit.

use rialto_protocols::kit::ans104::{Item, UnsignedItem};

/// Checks the item parser, and the signatures of signed items.
pub fn ans104(bytes: &[u8]) {
    let Ok(item) = Item::read(bytes) else { return };
    assert_eq!(written(&item), bytes, "bytes were lost or added");
    let again = rewritten(&item);
    let other = Item::read(&again).expect("what we write we read");
    assert_eq!((&other.tags, other.data), (&item.tags, item.data));
    assert_eq!((other.target, other.anchor), (item.target, item.anchor));
    assert_eq!(other.deep_hash() == item.deep_hash(), other.raw_tags == item.raw_tags);
    if item.verify().is_ok() {
        flipped(bytes);
    }
}

fn written(item: &Item<'_>) -> Vec<u8> {
    let mut out = item.signature_type.number().to_le_bytes().to_vec();
    out.extend_from_slice(item.signature);
    out.extend_from_slice(item.owner);
    for part in [item.target, item.anchor] {
        out.push(u8::from(part.is_some()));
        out.extend_from_slice(part.unwrap_or_default());
    }
    out.extend_from_slice(&(item.tags.len() as u64).to_le_bytes());
    out.extend_from_slice(&(item.raw_tags.len() as u64).to_le_bytes());
    out.extend_from_slice(item.raw_tags);
    out.extend_from_slice(item.data);
    out
}

fn rewritten(item: &Item<'_>) -> Vec<u8> {
    let tags: Vec<(&str, &str)> = item.tags.iter().map(|tag| (tag.name, tag.value)).collect();
    let whole = |part: Option<&[u8]>| part.and_then(|part| part.try_into().ok());
    let draft = UnsignedItem {
        target: whole(item.target),
        anchor: whole(item.anchor),
        tags: &tags,
        data: item.data,
    };
    draft.with_signature(item.signature_type, item.owner, item.signature)
}

/// One flipped bit in any part of the item invalidates the signature.
fn flipped(bytes: &[u8]) {
    let places = [2, bytes.len() / 3, bytes.len() / 2, bytes.len() - 1];
    for (bit, at) in places.into_iter().enumerate() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << bit;
        let proven = Item::read(&changed).is_ok_and(|item| item.verify().is_ok());
        assert!(!proven, "it still verifies with a bit of byte {at} flipped");
    }
}
