//! RFC 8785: the canonical text of a JSON value, the same for every signer and verifier.
//!
//! It is written from a strictly read tree whose numbers are still text. So an oversized integer
//! can be told from an oversized double, an error can say where the number is, and one member can
//! be left out without copying the rest. The crate that does this for serde values offers none of
//! that and keeps a buffer per member; the tests use it as a second implementation.

mod number;
mod order;
mod string;

use super::fields::Malformed;
use super::ijson::{Json, JsonValue};

pub use number::{BadNumber, SAFE_MAX, canonical_number, format_double};
pub use string::push_string;

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
            number::push_number(out, digits).map_err(|why| ErrorPath { why, names: Vec::new() })?;
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
            if members.is_sorted_by(|a, b| order::compare_utf16(&a.0, &b.0).is_lt()) {
                object(out, members.iter(), edit)?;
            } else {
                let mut sorted: Vec<_> = members.iter().collect();
                sorted.sort_unstable_by(|a, b| order::compare_utf16(&a.0, &b.0));
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

#[cfg(test)]
mod tests;
