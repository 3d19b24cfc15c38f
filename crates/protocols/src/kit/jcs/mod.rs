//! RFC 8785: the canonical text of a JSON value, the same for every signer and verifier.
//!
//! It is written from a strictly read tree whose numbers are still text. So an oversized integer
//! can be told from an oversized double, an error can say where the number is, and one member can
//! be left out without copying the rest. The crate that does this for serde values offers none of
//! that and keeps a buffer per member; the tests use it as a second implementation.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use super::fields::Malformed;
use super::ijson::{Json, JsonValue};

/// A number in the tree has no canonical text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct CanonicalError {
    /// JSON pointer to the number; long names in it are truncated.
    pub field: String,
    /// What is wrong with it.
    pub reason: BadNumber,
}

impl From<CanonicalError> for Malformed {
    fn from(bad: CanonicalError) -> Self {
        let name = match bad.field.rsplit_once('/') {
            Some((_, name)) => name.replace("~1", "/").replace("~0", "~"),
            None => "body".to_owned(),
        };
        Self { message: format!("{name} {}", bad.reason), field: bad.field }
    }
}

/// One member that is written differently from the tree.
#[derive(Clone, Copy, Debug)]
pub struct Edit<'e> {
    /// Names from the outermost object down to the member.
    pub path: &'e [&'e str],
    /// Canonical JSON text to write instead; `None` leaves the member out. A missing member is not
    /// added.
    pub replacement: Option<&'e str>,
}

/// The canonical text of `json`. It has the same meaning, but a strict reader may refuse it: a
/// double from 2^53 up to 1e21 is printed as an integer that is too large for strict reading.
pub fn canonicalize(json: &Json<'_>) -> Result<String, CanonicalError> {
    written(json, None)
}

/// The canonical text of `json` with one member changed.
pub fn canonicalize_with(json: &Json<'_>, edit: Edit<'_>) -> Result<String, CanonicalError> {
    written(json, Some(edit))
}

fn written(json: &Json<'_>, edit: Option<Edit<'_>>) -> Result<String, CanonicalError> {
    // Usually enough: little besides numbers makes the canonical text longer than the given one.
    let mut out = String::with_capacity(json.raw().len());
    value(&mut out, json, edit).map_err(ErrorPath::into_error)?;
    Ok(out)
}

/// The path to a bad number, collected from the inside out.
struct ErrorPath {
    why: BadNumber,
    names: Vec<String>,
}

impl ErrorPath {
    fn inside(mut self, name: &str) -> Self {
        /// How many characters of a name are shown, so that an error stays short.
        const SHOWN_MAX: usize = 64;
        let shown: String = name.chars().take(SHOWN_MAX).collect();
        self.names.push(shown.replace('~', "~0").replace('/', "~1"));
        self
    }

    fn into_error(self) -> CanonicalError {
        let field = self.names.iter().rev().flat_map(|name| ["/", name]).collect();
        CanonicalError { field, reason: self.why }
    }
}

fn value(out: &mut String, json: &Json<'_>, edit: Option<Edit<'_>>) -> Result<(), ErrorPath> {
    match json.value() {
        JsonValue::Null => out.push_str("null"),
        JsonValue::Bool(true) => out.push_str("true"),
        JsonValue::Bool(false) => out.push_str("false"),
        JsonValue::Number(digits) => {
            push_number(out, digits).map_err(|why| ErrorPath { why, names: Vec::new() })?;
        }
        JsonValue::String(text) => push_string(out, text),
        JsonValue::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                value(out, item, None).map_err(|trail| trail.inside(&at.to_string()))?;
            }
            out.push(']');
        }
        JsonValue::Object(members) => {
            out.push('{');
            // Machine-written members are often in order already.
            if members.is_sorted_by(|a, b| compare_utf16(&a.0, &b.0).is_lt()) {
                object(out, members.iter(), edit)?;
            } else {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_unstable_by(|a, b| compare_utf16(&a.0, &b.0));
                object(out, sorted.into_iter(), edit)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn object<'t>(
    out: &mut String,
    members: impl Iterator<Item = &'t (std::borrow::Cow<'t, str>, Json<'t>)>,
    edit: Option<Edit<'_>>,
) -> Result<(), ErrorPath> {
    let mut first = true;
    for (name, member) in members {
        // The rest of the edit, if it concerns this member or something inside it.
        let below = edit.and_then(|edit| match edit.path {
            [head, rest @ ..] if head == name => {
                Some(Edit { path: rest, replacement: edit.replacement })
            }
            _ => None,
        });
        let here = below.filter(|edit| edit.path.is_empty());
        if matches!(here, Some(Edit { replacement: None, .. })) {
            continue;
        }
        if !first {
            out.push(',');
        }
        first = false;
        push_string(out, name);
        out.push(':');
        match here.and_then(|edit| edit.replacement) {
            Some(text) => out.push_str(text),
            None => value(out, member, below).map_err(|trail| trail.inside(name))?,
        }
    }
    Ok(())
}

/// The largest integer whose double stands for no other integer: 2^53 − 1.
pub const SAFE_MAX: i64 = 9_007_199_254_740_991;

/// Why a number has no canonical text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNumber {
    /// Written as an integer, but its double stands for other integers as well: two texts would
    /// have one signature.
    #[error("is an integer beyond 9007199254740991")]
    UnsafeInteger,
    /// It has no finite double.
    #[error("is not a finite double")]
    NotFinite,
}

/// The canonical text of a double. A double that is not finite becomes `null`, as in ECMAScript's
/// own JSON.
pub fn format_double(value: f64) -> String {
    if value.is_finite() {
        ryu_js::Buffer::new().format_finite(value).to_owned()
    } else {
        "null".to_owned()
    }
}

/// The canonical text of a JSON number, given as written.
pub fn canonical_number(digits: &str) -> Result<String, BadNumber> {
    let mut out = String::with_capacity(digits.len());
    push_number(&mut out, digits)?;
    Ok(out)
}

pub(super) fn push_number(out: &mut String, digits: &str) -> Result<(), BadNumber> {
    if !digits.contains(['.', 'e', 'E']) {
        let safe = digits.parse::<i64>().ok().filter(|n| n.unsigned_abs() <= SAFE_MAX as u64);
        // JSON has no leading zeros, so a safe integer other than -0 is canonical as written.
        match safe {
            Some(0) => out.push('0'),
            Some(_) => out.push_str(digits),
            None => return Err(BadNumber::UnsafeInteger),
        }
        return Ok(());
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() => {
            out.push_str(ryu_js::Buffer::new().format_finite(value));
            Ok(())
        }
        _ => Err(BadNumber::NotFinite),
    }
}

/// Compares two texts as their UTF-16 forms would compare.
pub(super) fn compare_utf16(a: &str, b: &str) -> Ordering {
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((a, b)) => utf16_rank(a).cmp(&utf16_rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// UTF-8 sorts by code point, and so does UTF-16 with one exception: characters above U+FFFF are
/// written with surrogates (D800 to DFFF) and so come before U+E000 to U+FFFF, whose first byte in
/// UTF-8 is EE or EF. Those two bytes are ranked above every other first byte.
fn utf16_rank(byte: u8) -> u8 {
    if matches!(byte, 0xee | 0xef) { byte + 0x10 } else { byte }
}

/// Appends `text` as a canonical JSON string.
pub fn push_string(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| matches!(b, b'"' | b'\\' | 0..=0x1f)) {
        // Only ASCII is escaped, so the cuts before and after it are on character boundaries.
        let byte = rest.as_bytes()[at];
        out.push_str(&rest[..at]);
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            other => {
                out.push_str("\\u00");
                out.push(char::from(HEX[usize::from(other >> 4)]));
                out.push(char::from(HEX[usize::from(other & 15)]));
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}
