//! Errors of data items.

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
