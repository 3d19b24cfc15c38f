//! Errors of schemas: why a schema is refused, and where in it.

/// What is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", place(pointer))]
pub struct BadSchema {
    /// JSON pointer into the schema; empty for the schema as a whole.
    pub pointer: String,
    /// What is wrong there: a text that follows the place.
    pub message: String,
}

impl BadSchema {
    /// An error about the schema as a whole.
    pub(super) fn whole(why: impl Into<String>) -> Self {
        Self::at("", why)
    }

    /// An error about one place.
    pub(super) fn at(at: &str, why: impl Into<String>) -> Self {
        const PLACE_MAX: usize = 200;
        const WHY_MAX: usize = 300;
        let why: String = why.into();
        Self { pointer: truncate(at, PLACE_MAX), message: truncate(&why, WHY_MAX) }
    }
}

/// The first `max` characters, so that an error never gets longer than its schema.
pub(super) fn truncate(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("#{at} ") }
}
