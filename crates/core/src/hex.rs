//! Bytes as hex text in rows: half the size of a list of numbers, and a person can compare them.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub fn serialize<const N: usize, S: Serializer>(
    bytes: &[u8; N],
    out: S,
) -> Result<S::Ok, S::Error> {
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
