//! Reads JSON as the hub accepts it: strict, bounded, and with its original text kept.
//!
//! Requirement C1: two correct readers must never read the same bytes differently, so everything
//! JSON leaves open (duplicate names, lone surrogates, bytes around the value) is refused. Numbers
//! stay text, since each field decides which numbers it accepts. Noncharacters are accepted,
//! although RFC 7493 refuses them: all readers agree on them.

mod error;
mod scan;
mod string;

use std::borrow::Cow;

pub use error::{JsonError, JsonErrorKind};

/// How deeply arrays and objects may be nested.
pub const DEPTH_MAX: usize = 64;
/// How many members and array items one text may have, over all levels.
pub const ELEMENTS_MAX: usize = 10_000;

/// One JSON value and the text it was read from. Equal values have equal texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json<'a> {
    raw: &'a str,
    kind: JsonValue<'a>,
}

/// The content of a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonValue<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, with its digits as written.
    Number(&'a str),
    /// A string with its escapes resolved.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object's members in their order; names are unique.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Reads exactly one JSON value, with only whitespace around it.
pub fn read(bytes: &[u8]) -> Result<Json<'_>, JsonError> {
    read_allowing_non_finite(bytes, &[])
}

/// Like [`read`], but the members of the outermost object that `figures` names may be `NaN`,
/// `Infinity` or `-Infinity`, as Python's `json.dumps` writes them. They are read as strings: for
/// their field, they are not numbers.
pub fn read_allowing_non_finite<'a>(
    bytes: &'a [u8],
    figures: &'a [&'a str],
) -> Result<Json<'a>, JsonError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| JsonError { offset: error.valid_up_to(), kind: JsonErrorKind::NotUtf8 })?;
    if text.starts_with('\u{feff}') {
        return Err(JsonError { offset: 0, kind: JsonErrorKind::ByteOrderMark });
    }
    scan::read_document(text, figures)
}

impl<'a> Json<'a> {
    /// The exact text of this value, without surrounding whitespace.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The content of this value.
    pub fn value(&self) -> &JsonValue<'a> {
        &self.kind
    }

    /// The member with this name; `None` if there is none or this is not an object.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        let JsonValue::Object(members) = &self.kind else { return None };
        members.iter().find(|(given, _)| given == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests;
