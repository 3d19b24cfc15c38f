//! Errors of an invalid body: every wrong field, and how to correct it.

use std::borrow::Cow;

use super::examples;
use crate::kit::fields::Malformed;
use crate::kit::ijson::JsonError;

/// Why a body is refused. It has at least one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidBody {
    errors: Vec<Malformed>,
    hint: Option<Cow<'static, str>>,
    example: Option<Cow<'static, str>>,
}

impl InvalidBody {
    /// A JSON pointer to the first wrong field; empty for the body as a whole.
    pub fn field(&self) -> &str {
        self.errors.first().map_or("", |fault| &fault.field)
    }

    /// Every wrong field as `path: text; path: text` (R38).
    pub fn message(&self) -> String {
        let mut message = String::new();
        for fault in &self.errors {
            let gap = if message.is_empty() { "" } else { "; " };
            let colon = if fault.field.is_empty() { "" } else { ": " };
            message.extend([gap, fault.field.as_str(), colon, fault.message.as_str()]);
        }
        message
    }

    /// What to do about it, if there is more to say.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// JSON text that would be valid.
    pub fn example(&self) -> &str {
        self.example.as_deref().unwrap_or_else(|| examples::example_for(self.field()))
    }

    /// All errors.
    pub fn errors(&self) -> &[Malformed] {
        &self.errors
    }

    /// Adds a hint, unless there is one already.
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Sets JSON text that shows a valid form.
    pub fn with_example(mut self, example: impl Into<Cow<'static, str>>) -> Self {
        self.example = Some(example.into());
        self
    }
}

impl From<Malformed> for InvalidBody {
    fn from(fault: Malformed) -> Self {
        Self { errors: vec![fault], hint: None, example: None }
    }
}

impl From<JsonError> for InvalidBody {
    fn from(unreadable: JsonError) -> Self {
        Malformed::from(unreadable).into()
    }
}

/// The errors found so far, so that a body is read to its end before it is refused.
#[derive(Debug, Default)]
pub(super) struct FieldErrors(Option<InvalidBody>);

impl FieldErrors {
    /// The value that was read; an error is collected and gives `None`.
    pub(super) fn collect<T>(&mut self, read: Result<T, impl Into<InvalidBody>>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(fault) => {
                self.add(fault.into());
                None
            }
        }
    }

    /// All collected errors, once a required value is missing.
    pub(super) fn into_invalid_body(self) -> InvalidBody {
        self.0.expect("nothing is missing unless its fault was noted")
    }

    fn add(&mut self, fault: InvalidBody) {
        let Some(bad) = &mut self.0 else {
            self.0 = Some(fault);
            return;
        };
        bad.errors.extend(fault.errors);
        bad.hint = bad.hint.take().or(fault.hint);
    }
}
