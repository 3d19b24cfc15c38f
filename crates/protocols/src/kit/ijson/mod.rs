//! Reads JSON as the hub accepts it: strict, bounded, and with its original text kept.
//!
//! Requirement C1: two correct readers must never read the same bytes differently, so everything
//! JSON leaves open (duplicate names, lone surrogates, bytes around the value) is refused. Numbers
//! stay text, since each field decides which numbers it accepts. Noncharacters are accepted,
//! although RFC 7493 refuses them: all readers agree on them.

mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

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

/// The first error in the bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    /// Its offset in bytes.
    pub offset: usize,
    /// What is wrong there.
    pub kind: JsonErrorKind,
}

/// What can be wrong with a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonErrorKind {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    NotUtf8,
    /// The text starts with U+FEFF.
    #[error("byte order mark")]
    ByteOrderMark,
    /// The text ends inside a value, or before one.
    #[error("unexpected end")]
    UnexpectedEnd,
    /// More text follows the value.
    #[error("more text after the value")]
    TrailingText,
    /// A character that is not allowed here.
    #[error("unexpected character {0:?}")]
    UnexpectedCharacter(char),
    /// Two members of one object have the same name; long names are truncated.
    #[error("duplicate member {0:?}")]
    DuplicateMember(String),
    /// Half of a surrogate pair.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// A character below U+0020 that is not written as an escape.
    #[error("raw control character")]
    ControlCharacter,
    /// A backslash that starts no JSON escape.
    #[error("invalid escape")]
    BadEscape,
    /// Not a valid JSON number.
    #[error("invalid number")]
    BadNumber,
    /// Arrays and objects are nested too deeply.
    #[error("more than {DEPTH_MAX} levels")]
    TooDeep,
    /// Too many members and array items.
    #[error("more than {ELEMENTS_MAX} members and items")]
    TooManyElements,
}

impl JsonErrorKind {
    /// The duplicate name, truncated so that the error stays shorter than the body.
    pub(super) fn duplicate(name: &str) -> Self {
        const SHOWN_MAX: usize = 64;
        Self::DuplicateMember(name.chars().take(SHOWN_MAX).collect())
    }
}
