//! ANS-104 data items: signed messages of name/value tags and data, as AO clients make them.
//!
//! Reading is bounded by the item's own length and never copies its data. Nothing is hashed or
//! checked before all lengths are known to fit. An [`Item`] that was read is not yet proven:
//! [`Item::verify`] checks its signature.

mod address;
mod byte_reader;
mod deep_hash;
mod error;
mod signature;
mod signature_type;
mod tags;
mod unsigned_item;

#[cfg(test)]
mod tests;

pub use address::ItemId;
pub use error::{BadItem, ItemSignatureError};
pub use signature_type::SignatureType;
pub use tags::Tag;
pub use unsigned_item::UnsignedItem;

use byte_reader::ByteReader;

/// The shortest and the longest item (clara R73).
pub const ITEM_MIN: usize = 80;
pub const ITEM_MAX: usize = 1_048_576;
/// The maximum size of all tags of an item together, in bytes.
pub const TAG_BYTES_MAX: usize = 4_096;

/// A data item as it was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// How it is signed.
    pub signature_type: SignatureType,
    /// The signature.
    pub signature: &'a [u8],
    /// The signer's public key.
    pub owner: &'a [u8],
    /// The receiver: the bytes of a process id.
    pub target: Option<&'a [u8]>,
    /// Any value the signer chose to make the item unique.
    pub anchor: Option<&'a [u8]>,
    /// Its tags, in order.
    pub tags: Vec<Tag<'a>>,
    /// The bytes the tags were read from; these are signed.
    pub raw_tags: &'a [u8],
    /// The payload: the remaining bytes.
    pub data: &'a [u8],
}

impl<'a> Item<'a> {
    /// Reads an item without checking its signature.
    pub fn read(bytes: &'a [u8]) -> Result<Self, BadItem> {
        if bytes.len() < ITEM_MIN {
            return Err(BadItem::TooShort);
        }
        if bytes.len() > ITEM_MAX {
            return Err(BadItem::TooLong);
        }
        let mut rest = ByteReader::new(bytes);
        let kind = SignatureType::from_number(rest.u16()?)?;
        let signature = rest.take(kind.signature_len())?;
        let owner = rest.take(kind.owner_len())?;
        let target = rest.optional(32, "target")?;
        let anchor = rest.optional(32, "anchor")?;
        let (count, length) = (rest.u64()?, rest.u64()?);
        let length = usize::try_from(length).ok().filter(|length| *length <= TAG_BYTES_MAX);
        let raw_tags = rest.take(length.ok_or(BadItem::TagsTooLong)?)?;
        let tags = tags::read(raw_tags, count)?;
        Ok(Self {
            signature_type: kind,
            signature,
            owner,
            target,
            anchor,
            tags,
            raw_tags,
            data: rest.rest(),
        })
    }

    /// The item's id.
    pub fn id(&self) -> ItemId {
        ItemId::address_of_key(self.signature)
    }

    /// The signer's address.
    pub fn signer_address(&self) -> String {
        address::of(self.signature_type, self.owner)
    }

    /// The first tag with that name.
    pub fn tag(&self, name: &str) -> Option<&'a str> {
        self.tags.iter().find(|tag| tag.name == name).map(|tag| tag.value)
    }

    /// The 48 bytes that are signed.
    pub fn deep_hash(&self) -> [u8; 48] {
        deep_hash::deep_hash(&[
            b"dataitem",
            b"1",
            self.signature_type.number().to_string().as_bytes(),
            self.owner,
            self.target.unwrap_or_default(),
            self.anchor.unwrap_or_default(),
            self.raw_tags,
            self.data,
        ])
    }

    /// Whether its owner has signed it. Costs a full signature check, so it must not run on the
    /// request loop.
    pub fn verify(&self) -> Result<(), ItemSignatureError> {
        signature::verify(self)
    }
}
