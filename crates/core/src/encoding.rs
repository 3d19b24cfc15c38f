//! The binary encoding of what is appended to the log and of what travels between nodes: envelopes
//! to the node that decides, and the batches that it decided.
//!
//! A version byte, then [postcard](https://docs.rs/postcard). Postcard has no field names, so every
//! field is always written. Rows that omit empty fields are MessagePack with field names inside, and
//! may get optional fields within one version.

#[cfg(test)]
mod random_value;
#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use serde::{Serialize, de};

use crate::answer::Answer;
use crate::changes::{Changes, ExpiredRows};
use crate::command::Command;
use crate::envelope::Envelope;
use crate::refusal::Refusal;

/// The version that is written, and the only one that is read.
pub const VERSION: u8 = 2;

/// The most bytes of one value: far more than one command holds or changes.
pub const ENCODED_BYTES_MAX: usize = 256 << 20;

/// Why a value cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    #[error("the encoded value is empty")]
    Empty,
    #[error("encoding version {found} is not known; this program knows version {VERSION}")]
    UnknownVersion { found: u8 },
    #[error("an encoded value has at most {ENCODED_BYTES_MAX} bytes")]
    TooLong,
    #[error("{extra} bytes follow the encoded value")]
    TrailingBytes { extra: usize },
    #[error("not a valid encoding: {0}")]
    Malformed(String),
}

/// What can travel between nodes.
pub trait Encodable: Serialize + DeserializeOwned {}

impl Encodable for Envelope {}
impl Encodable for Command {}
impl Encodable for Answer {}
impl Encodable for Refusal {}
impl Encodable for Changes {}
/// A batch, as `encode_batch` writes it.
impl Encodable for (Changes, ExpiredRows) {}

/// Encodes a value.
pub fn encode<T: Encodable>(value: &T) -> Result<Vec<u8>, EncodingError> {
    let bytes = postcard::to_extend(value, vec![VERSION])
        .map_err(|error| EncodingError::Malformed(error.to_string()))?;
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(EncodingError::TooLong);
    }
    Ok(bytes)
}

/// Encodes a batch, the content of one record of the log, into an empty buffer.
pub fn encode_batch(
    changes: &Changes,
    expired: &ExpiredRows,
    buffer: Vec<u8>,
) -> Result<Vec<u8>, EncodingError> {
    let mut buffer = buffer;
    buffer.push(VERSION);
    let bytes = postcard::to_extend(&(changes, expired), buffer)
        .map_err(|error| EncodingError::Malformed(error.to_string()))?;
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(EncodingError::TooLong);
    }
    Ok(bytes)
}

/// Decodes a value. The bytes may come from anywhere; only a whole valid value is accepted.
pub fn decode<T: Encodable>(bytes: &[u8]) -> Result<T, EncodingError> {
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(EncodingError::TooLong);
    }
    let (version, body) = bytes.split_first().ok_or(EncodingError::Empty)?;
    if *version != VERSION {
        return Err(EncodingError::UnknownVersion { found: *version });
    }
    let (value, rest) = postcard::take_from_bytes(body)
        .map_err(|error| EncodingError::Malformed(error.to_string()))?;
    if !rest.is_empty() {
        return Err(EncodingError::TrailingBytes { extra: rest.len() });
    }
    Ok(value)
}

/// A field whose rows omit what is empty: MessagePack with field names in the encoding, so that rows
/// may get optional fields within one version. In JSON it is written as it is.
pub(crate) mod named_fields {
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{DeserializeOwned, Serialize, de::Error as _};

    pub fn serialize<T: Serialize, S: Serializer>(value: &T, out: S) -> Result<S::Ok, S::Error> {
        if out.is_human_readable() {
            return value.serialize(out);
        }
        let bytes = rmp_serde::to_vec_named(value).map_err(S::Error::custom)?;
        out.serialize_bytes(&bytes)
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        input: D,
    ) -> Result<T, D::Error> {
        if input.is_human_readable() {
            return T::deserialize(input);
        }
        let bytes = <&[u8]>::deserialize(input)?;
        rmp_serde::from_slice(bytes).map_err(D::Error::custom)
    }
}
