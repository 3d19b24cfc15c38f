//! Builds items: what is to be signed, and the item with its signature.

use super::signature_type::SignatureType;
use super::{deep_hash, tags};

/// An item before it is signed.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnsignedItem<'a> {
    /// The receiver.
    pub target: Option<[u8; 32]>,
    /// A value that makes the item unique.
    pub anchor: Option<[u8; 32]>,
    /// Names and values, in order.
    pub tags: &'a [(&'a str, &'a str)],
    /// The payload.
    pub data: &'a [u8],
}

impl UnsignedItem<'_> {
    /// The 48 bytes that `owner` signs.
    pub fn deep_hash(&self, kind: SignatureType, owner: &[u8]) -> [u8; 48] {
        let empty: &[u8] = &[];
        deep_hash::deep_hash(&[
            b"dataitem",
            b"1",
            kind.number().to_string().as_bytes(),
            owner,
            self.target.as_ref().map_or(empty, |target| target),
            self.anchor.as_ref().map_or(empty, |anchor| anchor),
            &tags::write(self.tags),
            self.data,
        ])
    }

    /// The item with its signature.
    pub fn with_signature(&self, kind: SignatureType, owner: &[u8], signature: &[u8]) -> Vec<u8> {
        let raw_tags = tags::write(self.tags);
        let mut out = kind.number().to_le_bytes().to_vec();
        out.extend_from_slice(signature);
        out.extend_from_slice(owner);
        for part in [self.target, self.anchor] {
            out.push(u8::from(part.is_some()));
            out.extend(part.iter().flatten());
        }
        out.extend_from_slice(&(self.tags.len() as u64).to_le_bytes());
        out.extend_from_slice(&(raw_tags.len() as u64).to_le_bytes());
        out.extend_from_slice(&raw_tags);
        out.extend_from_slice(self.data);
        out
    }
}
