//! Canonical bytes of JSON, for digests that tell whether two requests mean the same. They are
//! independent of spacing, member order and escapes.

use rialto_core::alias::Digest;
use rialto_core::money::Credits;

use super::ijson::{self, Json, JsonValue};

/// Writes the canonical bytes of a value.
pub fn write_canonical(json: &Json<'_>, out: &mut Vec<u8>) {
    let mut text = |tag: u8, text: &str| {
        out.push(tag);
        out.extend((text.len() as u64).to_be_bytes());
        out.extend(text.as_bytes());
    };
    match json.value() {
        JsonValue::Null => text(b'n', ""),
        JsonValue::Bool(flag) => text(b'b', if *flag { "1" } else { "" }),
        JsonValue::Number(digits) => text(b'd', digits),
        JsonValue::String(words) => text(b't', words),
        JsonValue::Array(items) => {
            text(b'l', &items.len().to_string());
            items.iter().for_each(|item| write_canonical(item, out));
        }
        JsonValue::Object(members) => {
            text(b'o', &members.len().to_string());
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            for (name, value) in sorted {
                out.extend((name.len() as u64).to_be_bytes());
                out.extend(name.as_bytes());
                write_canonical(value, out);
            }
        }
    }
}

/// The canonical bytes of JSON text; text that is not JSON is its own bytes.
pub fn canonical_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match ijson::read(text.as_bytes()) {
        Ok(json) => write_canonical(&json, &mut bytes),
        Err(_) => bytes.extend(text.as_bytes()),
    }
    bytes
}

/// The digest of a request for work, without its worker. `other` is anything else that
/// distinguishes it from other requests.
pub fn job_digest(
    skill: &str,
    input: Option<&Json<'_>>,
    budget: Credits,
    callback: Option<&str>,
    other: &[u8],
) -> Digest {
    let mut bytes = Vec::new();
    if let Some(input) = input {
        write_canonical(input, &mut bytes);
    }
    Digest::of(&[
        skill.as_bytes(),
        &bytes,
        other,
        &budget.micros().to_be_bytes(),
        callback.unwrap_or_default().as_bytes(),
    ])
}
