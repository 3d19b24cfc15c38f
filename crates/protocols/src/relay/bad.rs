//! A body that makes no sense: every field that is wrong, and how to make it right.

use std::borrow::Cow;

use super::examples;
use crate::kit::fields::Malformed;
use crate::kit::ijson::Unreadable;

/// Why a body is refused. It has at least one fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    faults: Vec<Malformed>,
    hint: Option<Cow<'static, str>>,
    example: Option<Cow<'static, str>>,
}

impl Bad {
    /// A JSON pointer to the first bad field; empty when it is the body as a whole.
    pub fn field(&self) -> &str {
        self.faults.first().map_or("", |fault| &fault.field)
    }

    /// Every bad field as `path: text; path: text` (R38).
    pub fn message(&self) -> String {
        let mut message = String::new();
        for fault in &self.faults {
            let gap = if message.is_empty() { "" } else { "; " };
            let colon = if fault.field.is_empty() { "" } else { ": " };
            message.extend([gap, fault.field.as_str(), colon, fault.message.as_str()]);
        }
        message
    }

    /// What to do about it, where there is more to say.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// JSON text that would have been right.
    pub fn example(&self) -> &str {
        self.example.as_deref().unwrap_or_else(|| examples::of(self.field()))
    }

    /// Everything that is wrong, one by one.
    pub fn faults(&self) -> &[Malformed] {
        &self.faults
    }

    /// The same with a hint, unless there is one already.
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The same with JSON text that shows how it should have been.
    pub fn with_example(mut self, example: impl Into<Cow<'static, str>>) -> Self {
        self.example = Some(example.into());
        self
    }
}

impl From<Malformed> for Bad {
    fn from(fault: Malformed) -> Self {
        Self { faults: vec![fault], hint: None, example: None }
    }
}

impl From<Unreadable> for Bad {
    fn from(unreadable: Unreadable) -> Self {
        Malformed::from(unreadable).into()
    }
}

/// The faults found so far, so that a body can be read to its end before it is refused.
#[derive(Debug, Default)]
pub(super) struct Faults(Option<Bad>);

impl Faults {
    /// What was read; a fault is kept and leaves nothing.
    pub(super) fn note<T>(&mut self, read: Result<T, impl Into<Bad>>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(fault) => {
                self.add(fault.into());
                None
            }
        }
    }

    /// Everything that was kept, for whoever has found that something is missing.
    pub(super) fn into_bad(self) -> Bad {
        self.0.expect("nothing is missing unless its fault was noted")
    }

    fn add(&mut self, fault: Bad) {
        let Some(bad) = &mut self.0 else {
            self.0 = Some(fault);
            return;
        };
        bad.faults.extend(fault.faults);
        bad.hint = bad.hint.take().or(fault.hint);
    }
}
