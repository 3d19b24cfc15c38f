//! Errors of the JSON reader: what is wrong and where.

use super::{DEPTH_MAX, ELEMENTS_MAX};

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
