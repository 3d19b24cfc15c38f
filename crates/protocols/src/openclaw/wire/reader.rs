//! Reads a whole message and records every invalid member, not only the first.

use rialto_core::money::Credits;
use rialto_core::number;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::error::Failure;
use super::reputation::Score;
use super::{Kind, read_uuid, schema_of};
use crate::kit::ijson::{Json, JsonValue as Is};
use crate::kit::name::check_name;
use crate::kit::schema::Violation;
use crate::kit::{jcs, rfc3339};
use crate::openclaw::DECIMALS;

/// The most violations reported for one message.
const VIOLATIONS_MAX: usize = 500;

/// A message that is being read, and its violations so far.
#[derive(Debug)]
pub struct MessageReader<'a, 'b> {
    kind: Kind,
    json: &'b Json<'a>,
    violations: Vec<String>,
}

/// An object inside a message, and its path.
#[derive(Clone, Debug)]
pub struct ObjectPart<'a, 'b> {
    json: Option<&'b Json<'a>>,
    at: String,
}

impl<'a, 'b> ObjectPart<'a, 'b> {
    /// The object in member `name`; one without members if there is none.
    pub fn part(&self, name: &str) -> Self {
        Self { json: self.get(name), at: self.path_of(name) }
    }

    /// The items of a list as objects; empty if there is no list.
    pub fn items(&self, name: &str) -> Vec<Self> {
        let Some(Is::Array(items)) = self.get(name).map(Json::value) else { return Vec::new() };
        let at = self.path_of(name);
        let numbered = items.iter().enumerate();
        numbered.map(|(n, item)| Self { json: Some(item), at: format!("{at}[{n}]") }).collect()
    }

    /// The member, unless it is `null`.
    pub fn get(&self, name: &str) -> Option<&'b Json<'a>> {
        self.json?.get(name).filter(|value| !matches!(value.value(), Is::Null))
    }

    /// The value of a member that is a string.
    pub fn text(&self, name: &str) -> Option<&'b str> {
        match self.get(name)?.value() {
            Is::String(text) => Some(text),
            _ => None,
        }
    }

    /// The exact JSON text of a member that is an object.
    pub fn object(&self, name: &str) -> Option<Box<str>> {
        let value = self.get(name)?;
        matches!(value.value(), Is::Object(_)).then(|| value.raw().into())
    }

    /// The JSON value at this path.
    pub fn json(&self) -> Option<&'b Json<'a>> {
        self.json
    }

    /// Whether there is an object at this path.
    pub fn exists(&self) -> bool {
        self.json.is_some()
    }

    /// The path of a member, for use in a sentence.
    pub fn path_of(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }
}

impl<'a, 'b> MessageReader<'a, 'b> {
    /// Checks the message against the schema of its kind.
    pub(super) fn checked(kind: Kind, json: &'b Json<'a>) -> Self {
        let verdict = schema_of(kind).check_with_limit(json, VIOLATIONS_MAX);
        let told = verdict.err().unwrap_or_default();
        let sentence = |violation: &Violation| {
            if violation.path.is_empty() {
                format!("body {}", violation.message)
            } else {
                violation.to_string()
            }
        };
        Self { kind, json, violations: told.iter().map(sentence).collect() }
    }

    /// A part of a message that was already checked when it was received.
    pub(super) fn unchecked(kind: Kind, json: &'b Json<'a>) -> Self {
        Self { kind, json, violations: Vec::new() }
    }

    /// The message itself.
    pub fn root(&self) -> ObjectPart<'a, 'b> {
        ObjectPart { json: Some(self.json), at: String::new() }
    }

    /// Records that a member is invalid, unless it already has a violation: one per member is
    /// enough.
    pub fn add_violation(
        &mut self,
        part: &ObjectPart<'_, '_>,
        name: &str,
        says: impl std::fmt::Display,
    ) {
        let at = part.path_of(name);
        let known =
            |told: &String| told.strip_prefix(&at).is_some_and(|rest| rest.starts_with(' '));
        if self.violations.len() < VIOLATIONS_MAX && !self.violations.iter().any(known) {
            self.violations.push(format!("{at} {says}"));
        }
    }

    /// Records that a member is missing that is required `when` a condition holds.
    pub fn require_when(&mut self, part: &ObjectPart<'_, '_>, name: &str, when: &str) {
        if part.get(name).is_none() {
            self.add_violation(part, name, format_args!("is required when {when}"));
        }
    }

    /// A UUID.
    pub fn uuid(&mut self, part: &ObjectPart<'_, '_>, name: &str) -> Option<Uuid> {
        const FORM: &str = "must be a UUID like 550e8400-e29b-41d4-a716-446655440000";
        self.convert(part, name, FORM, read_uuid)
    }

    /// A time.
    pub fn time(&mut self, part: &ObjectPart<'_, '_>, name: &str) -> Option<Timestamp> {
        match rfc3339::parse(part.text(name)?) {
            Ok(time) => Some(time),
            Err(bad) => {
                self.add_violation(part, name, bad);
                None
            }
        }
    }

    /// An integer by value, as JSON Schema counts: `3.0` is 3.
    pub fn number(&mut self, part: &ObjectPart<'_, '_>, name: &str) -> Option<i64> {
        self.convert(
            part,
            name,
            "must be an integer from -9007199254740991 to 9007199254740991",
            |json| match json.value() {
                Is::Number(digits) => {
                    let safe = |n: &i64| n.unsigned_abs() <= jcs::SAFE_MAX.unsigned_abs();
                    number::parse_integer(digits).ok().filter(safe)
                }
                _ => None,
            },
        )
    }

    /// A score from 0 to 1.
    pub fn score(&mut self, part: &ObjectPart<'_, '_>, name: &str) -> Option<Score> {
        self.convert(part, name, "must be between 0.0 and 1.0", |json| match json.value() {
            Is::Number(digits) => Score::parse(digits),
            _ => None,
        })
    }

    /// An amount (not in the spec, so no schema checks it).
    pub fn amount(&mut self, part: &ObjectPart<'_, '_>, name: &str) -> Option<Credits> {
        let Is::Number(digits) = part.get(name)?.value() else {
            self.add_violation(part, name, "must be a number");
            return None;
        };
        match Credits::parse(digits, DECIMALS) {
            Ok(amount) => Some(amount),
            Err(bad) => {
                self.add_violation(part, name, bad);
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn flag(&mut self, part: &ObjectPart<'_, '_>, name: &str) -> Option<bool> {
        self.convert(part, name, "must be true or false", |json| match json.value() {
            Is::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    /// A name or id of at most `max` characters, all of them visible (C14).
    pub fn name(&mut self, part: &ObjectPart<'_, '_>, name: &str, max: usize) -> Option<String> {
        let text = part.text(name)?;
        match check_name(text, max) {
            Ok(()) => Some(text.to_owned()),
            Err(bad) => {
                self.add_violation(part, name, bad);
                None
            }
        }
    }

    /// A string of at most `max` characters.
    pub fn bounded(&mut self, part: &ObjectPart<'_, '_>, name: &str, max: usize) -> Option<String> {
        let wrong = format!("must be a string of at most {max} characters");
        self.convert(part, name, &wrong, |json| match json.value() {
            Is::String(text) if text.chars().count() <= max => Some(text.to_string()),
            _ => None,
        })
    }

    /// Converts a member with `make`; records a violation when the result is `None`.
    pub fn convert<T>(
        &mut self,
        part: &ObjectPart<'_, '_>,
        name: &str,
        says: &str,
        make: impl FnOnce(&Json<'_>) -> Option<T>,
    ) -> Option<T> {
        let made = make(part.get(name)?);
        if made.is_none() {
            self.add_violation(part, name, says);
        }
        made
    }

    /// The finished value if there are no violations.
    pub(super) fn finish<T>(self, made: Option<T>) -> Result<T, Failure> {
        match made {
            Some(made) if self.violations.is_empty() => Ok(made),
            _ => {
                let failure =
                    Failure::with_violations(self.violations).with_example(self.kind.example());
                Err(failure.in_answer_to(self.json))
            }
        }
    }
}
