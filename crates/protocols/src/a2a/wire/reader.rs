//! Reads ProtoJSON objects and collects everything that is wrong with them (R21, R27).

use std::borrow::Cow;

use rialto_core::time::Timestamp;

use crate::kit::ijson::{Json, JsonValue};
use crate::kit::rfc3339;

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where, for example `message.parts[0].text`.
    pub field: String,
    pub description: String,
}

/// Everything that is wrong with a request.
pub type Violations = Vec<Violation>;

/// An object and its place in the request.
#[derive(Clone, Debug)]
pub struct Reader<'a, 'b> {
    json: &'b Json<'a>,
    at: String,
}

impl<'a, 'b> Reader<'a, 'b> {
    /// The object at this place. Anything else is a violation.
    pub fn new(json: &'b Json<'a>, at: impl Into<String>, wrong: &mut Violations) -> Option<Self> {
        let at = at.into();
        if let JsonValue::Object(_) = json.value() {
            return Some(Self { json, at });
        }
        let field = if at.is_empty() { "params".to_owned() } else { at };
        wrong.push(Violation { field, description: "must be an object".to_owned() });
        None
    }

    /// The place of a member.
    pub fn place(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    /// Adds a violation of a member.
    pub fn reject(&self, name: &str, description: impl Into<String>, wrong: &mut Violations) {
        wrong.push(Violation { field: self.place(name), description: description.into() });
    }

    /// The member by its name in camel case or in snake case; `null` counts as absent.
    pub fn get(&self, name: &str) -> Option<&'b Json<'a>> {
        let found = self.json.get(name).or_else(|| self.json.get(&snake_case(name)));
        found.filter(|json| *json.value() != JsonValue::Null)
    }

    /// The member with exactly this name.
    pub fn exact(&self, name: &str) -> Option<&'b Json<'a>> {
        self.json.get(name)
    }

    /// A text.
    pub fn text(&self, name: &str, wrong: &mut Violations) -> Option<String> {
        match self.get(name)?.value() {
            JsonValue::String(text) => Some(text.clone().into_owned()),
            _ => {
                self.reject(name, "must be a string", wrong);
                None
            }
        }
    }

    /// A text that must be there and not be empty. Empty if it is not.
    pub fn required_text(&self, name: &str, wrong: &mut Violations) -> String {
        let count = wrong.len();
        let text = self.text(name, wrong).unwrap_or_default();
        if text.is_empty() && wrong.len() == count {
            self.reject(name, "is required", wrong);
        }
        text
    }

    /// A text of at most so many characters.
    pub fn short_text(&self, name: &str, max: usize, wrong: &mut Violations) -> Option<String> {
        let text = self.text(name, wrong)?;
        if text.chars().count() > max {
            self.reject(name, format!("must have at most {max} characters"), wrong);
        }
        Some(text)
    }

    /// An integer of 32 bits, as a number or as text.
    pub fn integer(&self, name: &str, wrong: &mut Violations) -> Option<i32> {
        let digits: Cow<'_, str> = match self.get(name)?.value() {
            JsonValue::Number(digits) => Cow::Borrowed(*digits),
            JsonValue::String(text) => text.clone(),
            _ => Cow::Borrowed(""),
        };
        let parsed = parse_integer(&digits);
        if parsed.is_none() {
            self.reject(name, "must be an integer", wrong);
        }
        parsed
    }

    /// `true` or `false`; absent is `false`.
    pub fn flag(&self, name: &str, wrong: &mut Violations) -> Option<bool> {
        match self.get(name)?.value() {
            JsonValue::Bool(value) => Some(*value),
            _ => {
                self.reject(name, "must be true or false", wrong);
                None
            }
        }
    }

    /// The text of an object, as it was sent.
    pub fn object_text(&self, name: &str, wrong: &mut Violations) -> Option<String> {
        let json = self.get(name)?;
        match json.value() {
            JsonValue::Object(_) => Some(json.raw().to_owned()),
            _ => {
                self.reject(name, "must be an object", wrong);
                None
            }
        }
    }

    /// An object.
    pub fn object(&self, name: &str, wrong: &mut Violations) -> Option<Self> {
        Self::new(self.get(name)?, self.place(name), wrong)
    }

    /// The items of a list, each with its place.
    pub fn list(&self, name: &str, wrong: &mut Violations) -> Vec<(&'b Json<'a>, String)> {
        let Some(json) = self.get(name) else { return Vec::new() };
        let JsonValue::Array(items) = json.value() else {
            self.reject(name, "must be an array", wrong);
            return Vec::new();
        };
        let place = self.place(name);
        items.iter().enumerate().map(|(at, item)| (item, format!("{place}[{at}]"))).collect()
    }

    /// A list of texts.
    pub fn texts(&self, name: &str, wrong: &mut Violations) -> Vec<String> {
        let mut texts = Vec::new();
        for (item, field) in self.list(name, wrong) {
            match item.value() {
                JsonValue::String(text) => texts.push(text.clone().into_owned()),
                _ => wrong.push(Violation { field, description: "must be a string".to_owned() }),
            }
        }
        texts
    }

    /// A time in RFC 3339.
    pub fn time(&self, name: &str, wrong: &mut Violations) -> Option<Timestamp> {
        let text = self.text(name, wrong)?;
        parse_time(&text, || self.place(name), wrong)
    }

    /// The names of all members, as they were sent.
    pub fn names(&self) -> impl Iterator<Item = &'b str> {
        let members = match self.json.value() {
            JsonValue::Object(members) => members.as_slice(),
            _ => &[],
        };
        members.iter().map(|(name, _)| name.as_ref())
    }
}

/// Reads a time, or adds a violation.
pub fn parse_time(
    text: &str,
    field: impl Fn() -> String,
    wrong: &mut Violations,
) -> Option<Timestamp> {
    let parsed = rfc3339::parse(text).ok();
    if parsed.is_none() {
        let description = "must be a time such as 2026-11-17T09:00:00.000Z".to_owned();
        wrong.push(Violation { field: field(), description });
    }
    parsed
}

/// An integer of 32 bits. ProtoJSON also writes `5.0` and `5e0`.
pub fn parse_integer(digits: &str) -> Option<i32> {
    if let Ok(value) = digits.parse() {
        return Some(value);
    }
    let value: f64 = digits.parse().ok()?;
    let is_whole = value.fract() == 0.0 && value.abs() <= f64::from(i32::MAX);
    is_whole.then_some(value as i32)
}

/// A name in camel case as it is written in snake case.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
