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
use crate::changes::{Batch, Changes, ExpiredRows};
use crate::command::Command;
use crate::envelope::Envelope;
use crate::refusal::Refusal;

/// The version of everything but batches, and the only one that is read.
pub const VERSION: u8 = 2;

/// The version of batches that is written. Records of the log and rows of the log of a cluster have
/// it.
pub const BATCH_VERSION: u8 = 3;

/// The oldest version of batches that is read. It lacks what is for other nodes.
pub const OLDEST_BATCH_VERSION: u8 = 2;

/// The most bytes of one value: far more than one command holds or changes.
pub const ENCODED_BYTES_MAX: usize = 256 << 20;

/// Why a value cannot be encoded or decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    #[error("the encoded value is empty")]
    Empty,
    #[error("encoding version {found} is not known; this program knows version {VERSION}")]
    UnknownVersion { found: u8 },
    #[error(
        "version {found} of a batch is not known; this program knows versions \
         {OLDEST_BATCH_VERSION} to {BATCH_VERSION}"
    )]
    UnknownBatchVersion { found: u8 },
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

/// Encodes a value.
pub fn encode<T: Encodable>(value: &T) -> Result<Vec<u8>, EncodingError> {
    encode_to(value, Vec::new())
}

/// Encodes a value at the end of a buffer.
pub fn encode_to<T: Encodable>(value: &T, mut buffer: Vec<u8>) -> Result<Vec<u8>, EncodingError> {
    buffer.push(VERSION);
    let bytes = postcard::to_extend(value, buffer)
        .map_err(|error| EncodingError::Malformed(error.to_string()))?;
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(EncodingError::TooLong);
    }
    Ok(bytes)
}

/// Encodes a batch, the content of one record of the log, at the end of a buffer.
pub fn encode_batch(batch: &Batch, mut buffer: Vec<u8>) -> Result<Vec<u8>, EncodingError> {
    buffer.push(BATCH_VERSION);
    let bytes = postcard::to_extend(batch, buffer)
        .map_err(|error| EncodingError::Malformed(error.to_string()))?;
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(EncodingError::TooLong);
    }
    Ok(bytes)
}

/// Decodes a batch of any version from the oldest to the current one.
pub fn decode_batch(bytes: &[u8]) -> Result<Batch, EncodingError> {
    let (version, body) = split_version(bytes)?;
    match version {
        BATCH_VERSION => decode_body(body),
        OLDEST_BATCH_VERSION => {
            let (changes, expired): (Changes, ExpiredRows) = decode_body(body)?;
            Ok(Batch::new(changes, expired))
        }
        found => Err(EncodingError::UnknownBatchVersion { found }),
    }
}

/// Decodes a value. The bytes may come from anywhere; only a whole valid value is accepted.
pub fn decode<T: Encodable>(bytes: &[u8]) -> Result<T, EncodingError> {
    match split_version(bytes)? {
        (VERSION, body) => decode_body(body),
        (found, _) => Err(EncodingError::UnknownVersion { found }),
    }
}

fn split_version(bytes: &[u8]) -> Result<(u8, &[u8]), EncodingError> {
    if bytes.len() > ENCODED_BYTES_MAX {
        return Err(EncodingError::TooLong);
    }
    let (version, body) = bytes.split_first().ok_or(EncodingError::Empty)?;
    Ok((*version, body))
}

fn decode_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, EncodingError> {
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
