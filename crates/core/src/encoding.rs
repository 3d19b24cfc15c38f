//! The binary encoding of what travels between nodes: envelopes to the node that decides, and what
//! it decided back.
//!
//! A version byte, then [postcard](https://docs.rs/postcard). Postcard has no field names, so every
//! field is always written. Rows omit fields that are empty; they stay JSON inside, as the store
//! keeps them, and may get optional fields within one version.

#[cfg(test)]
mod random_value;
#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use serde::{Serialize, de};

use crate::answer::Answer;
use crate::changes::Changes;
use crate::command::Command;
use crate::envelope::Envelope;
use crate::refusal::Refusal;

/// The version that is written, and the only one that is read.
pub const VERSION: u8 = 1;

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

/// Encodes a value.
pub fn encode<T: Encodable>(value: &T) -> Result<Vec<u8>, EncodingError> {
    let bytes = postcard::to_extend(value, vec![VERSION])
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

/// A field that is JSON text in the encoding. In JSON itself it is written as it is.
pub(crate) mod json_text {
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{DeserializeOwned, Serialize, de::Error as _};

    pub fn serialize<T: Serialize, S: Serializer>(value: &T, out: S) -> Result<S::Ok, S::Error> {
        if out.is_human_readable() {
            return value.serialize(out);
        }
        let text = serde_json::to_string(value).map_err(S::Error::custom)?;
        out.serialize_str(&text)
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        input: D,
    ) -> Result<T, D::Error> {
        if input.is_human_readable() {
            return T::deserialize(input);
        }
        let text = <&str>::deserialize(input)?;
        serde_json::from_str(text).map_err(D::Error::custom)
    }
}
