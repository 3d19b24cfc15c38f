//! ANS-104 data items: signed messages of name/value tags and data, as AO clients make them.
//!
//! Reading is bounded by the item's own length and never copies its data. Nothing is hashed or
//! checked before all lengths are known to fit. An [`Item`] that was read is not yet proven:
//! [`Item::verify`] checks its signature.

mod known_keys;
mod signature;
mod tags;
#[cfg(test)]
mod tests;

use sha2::{Digest, Sha384};

pub use known_keys::KnownKeys;
pub use signature::{ItemId, SignatureType};
pub use tags::Tag;

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
        signature::address_of(self.signature_type, self.owner)
    }

    /// The first tag with that name.
    pub fn tag(&self, name: &str) -> Option<&'a str> {
        self.tags.iter().find(|tag| tag.name == name).map(|tag| tag.value)
    }

    /// The 48 bytes that are signed.
    pub fn deep_hash(&self) -> [u8; 48] {
        self.deep_hash_with_key(hash_of_key(self.signature_type, self.owner))
    }

    /// The same, from the part that depends on the key alone ([`hash_of_key`]).
    fn deep_hash_with_key(&self, hash: [u8; 48]) -> [u8; 48] {
        let (target, anchor) = (self.target.unwrap_or_default(), self.anchor.unwrap_or_default());
        add_blobs(hash, &[target, anchor, self.raw_tags, self.data])
    }

    /// Whether its owner has signed it, in any form that the signature may have. That can take a
    /// millisecond, so it must not run on the request loop; [`KnownKeys`] is for that.
    pub fn verify(&self) -> Result<(), ItemSignatureError> {
        signature::verify(self)
    }
}

/// The bytes are not a valid item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadItem {
    #[error("a data item has at least 80 bytes")]
    TooShort,
    #[error("a data item has at most 1048576 bytes")]
    TooLong,
    #[error("the data item is cut short")]
    CutShort,
    #[error("signature type {0} is not supported: 1, 2, 3 and 4 are")]
    UnknownKind(u16),
    #[error("the byte before the {0} must be 0 or 1")]
    Presence(&'static str),
    #[error("the tags have more than 4096 bytes")]
    TagsTooLong,
    #[error("the tags are not a valid Avro list of names and values")]
    BadTags,
    #[error("the number of tags differs from the one the item declares")]
    TagCount,
    #[error("a tag is not UTF-8")]
    TagText,
}

/// The item's signature does not prove its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemSignatureError {
    #[error("the owner is not a valid signing key")]
    BadKey,
    #[error("the signature does not verify")]
    BadSignature,
    #[error("the signature is valid, but not in canonical form")]
    Malleable,
}

/// The bytes that remain.
pub struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], BadItem> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(BadItem::CutShort)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u16(&mut self) -> Result<u16, BadItem> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes(bytes.try_into().map_err(|_| BadItem::CutShort)?))
    }

    pub fn u64(&mut self) -> Result<u64, BadItem> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| BadItem::CutShort)?))
    }

    /// An optional part. The byte before it says whether it is present.
    pub fn optional(
        &mut self,
        length: usize,
        name: &'static str,
    ) -> Result<Option<&'a [u8]>, BadItem> {
        match self.take(1)? {
            [0] => Ok(None),
            [1] => self.take(length).map(Some),
            _ => Err(BadItem::Presence(name)),
        }
    }

    pub fn remaining(&self) -> usize {
        self.0.len()
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}

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
        let target = self.target.as_ref().map_or(empty, |target| target);
        let anchor = self.anchor.as_ref().map_or(empty, |anchor| anchor);
        let tags = tags::write(self.tags);
        add_blobs(hash_of_key(kind, owner), &[target, anchor, &tags, self.data])
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

/// The hash of an item's first four blobs, which all items of a key have in common. The deep hash
/// is a hash of a list of eight blobs, in which every boundary counts.
fn hash_of_key(kind: SignatureType, owner: &[u8]) -> [u8; 48] {
    let list = Sha384::digest(b"list8").into();
    add_blobs(list, &[b"dataitem", b"1", kind.number().to_string().as_bytes(), owner])
}

fn add_blobs(hash: [u8; 48], blobs: &[&[u8]]) -> [u8; 48] {
    blobs.iter().fold(hash, |hash, blob| {
        let pair = Sha384::new_with_prefix(hash).chain_update(hash_blob(blob));
        pair.finalize().into()
    })
}

fn hash_blob(blob: &[u8]) -> [u8; 48] {
    let tag = Sha384::digest(format!("blob{}", blob.len()));
    let pair = Sha384::new_with_prefix(tag).chain_update(Sha384::digest(blob));
    pair.finalize().into()
}
