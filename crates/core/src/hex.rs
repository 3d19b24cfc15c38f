//! Bytes as hex text in rows: half the size of a list of numbers, and a person can compare them.
//! Binary encodings get the bytes themselves.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub fn serialize<const N: usize, S: Serializer>(
    bytes: &[u8; N],
    out: S,
) -> Result<S::Ok, S::Error> {
    if !out.is_human_readable() {
        return out.serialize_bytes(bytes);
    }
    let mut text = String::with_capacity(2 * N);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out.serialize_str(&text)
}

pub fn deserialize<'de, const N: usize, D: Deserializer<'de>>(
    input: D,
) -> Result<[u8; N], D::Error> {
    if !input.is_human_readable() {
        return input.deserialize_bytes(RawBytes);
    }
    let text = std::borrow::Cow::<str>::deserialize(input)?;
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return Err(D::Error::custom(format!("expected {} hex digits", 2 * N)));
    }
    for (byte, at) in bytes.iter_mut().zip((0..2 * N).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(D::Error::custom)?;
    }
    Ok(bytes)
}

/// Reads exactly `N` bytes.
struct RawBytes<const N: usize>;

impl<const N: usize> Visitor<'_> for RawBytes<N> {
    type Value = [u8; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{N} bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        bytes.try_into().map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}
