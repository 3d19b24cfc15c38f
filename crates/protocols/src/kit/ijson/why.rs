//! Why bytes could not be read as JSON, and where.

use super::{DEPTH_MAX, PARTS_MAX};

/// The first thing in the bytes that cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why} at byte {at}")]
pub struct Unreadable {
    /// How many bytes stand before it.
    pub at: usize,
    /// What is wrong there.
    pub why: Why,
}

/// What can be wrong with a JSON text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The bytes are not UTF-8.
    #[error("invalid UTF-8")]
    NotUtf8,
    /// The text starts with U+FEFF.
    #[error("byte order mark")]
    ByteOrderMark,
    /// The text stops inside a value, or before one.
    #[error("unexpected end")]
    Ended,
    /// Something follows the value.
    #[error("more text after the value")]
    Trailing,
    /// A character that cannot stand here.
    #[error("unexpected character {0:?}")]
    Unexpected(char),
    /// Two members of one object have the same name; long names are cut.
    #[error("duplicate member {0:?}")]
    Duplicate(String),
    /// Half of a surrogate pair.
    #[error("lone surrogate")]
    LoneSurrogate,
    /// A character below U+0020 that is not written as an escape.
    #[error("raw control character")]
    ControlCharacter,
    /// A backslash followed by nothing JSON knows.
    #[error("invalid escape")]
    BadEscape,
    /// Digits that are no JSON number.
    #[error("invalid number")]
    BadNumber,
    /// Too many lists and objects inside each other.
    #[error("more than {DEPTH_MAX} levels")]
    TooDeep,
    /// Too many members and list items.
    #[error("more than {PARTS_MAX} members and items")]
    TooMany,
}

impl Why {
    /// A name that came twice, cut so that an error stays shorter than the body it is about.
    pub(super) fn duplicate(name: &str) -> Self {
        const SHOWN_MAX: usize = 64;
        Self::Duplicate(name.chars().take(SHOWN_MAX).collect())
    }
}
