//! Violations: what is wrong with a value, as sentences that begin with the place.
//!
//! They quote the schema, never the value: member names are the only part of it that is shown.

use std::fmt;
use std::fmt::Write;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::truncate;
use crate::kit::ijson::{Json, JsonValue};

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where, as in `trends[0].title`; empty for the value as a whole.
    pub path: String,
    /// What is wrong; it follows the path: `must be a string`.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "value" } else { &self.path };
        write!(f, "{path} {}", self.message)
    }
}

impl Violation {
    /// A violation of the value as a whole.
    pub fn whole(says: impl Into<String>) -> Self {
        Self { path: String::new(), message: says.into() }
    }
}

/// How many unexpected members are named.
const UNEXPECTED_MAX: usize = 5;
/// The maximum length of a quote from a schema.
const QUOTE_MAX: usize = 160;

/// The validator's error in our words.
pub(super) fn from_validation_error(
    error: &ValidationError<'_>,
    json: &Json<'_>,
    schema: &Value,
) -> Vec<Violation> {
    let path = readable_path(json, error.instance_path().as_str());
    let named = |name: &str, says: &str| Violation {
        path: member_path(&path, name),
        message: says.to_owned(),
    };
    match error.kind() {
        Kind::Required { property } => {
            vec![named(property.as_str().unwrap_or_default(), "is required")]
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let shown = unexpected.iter().take(UNEXPECTED_MAX);
            shown.map(|name| named(name, "is not allowed")).collect()
        }
        kind => {
            let keyword = error.schema_path().as_str();
            if matches!(kind, Kind::FalseSchema) && keyword.ends_with("/additionalProperties") {
                return vec![Violation { path, message: "must not have members".to_owned() }];
            }
            let around = keyword.rsplit_once('/').and_then(|(at, _)| schema.pointer(at));
            vec![Violation { message: says(kind, around), path }]
        }
    }
}

fn says(kind: &Kind, around: Option<&Value>) -> String {
    match kind {
        Kind::Type { kind: TypeKind::Single(one) } => format!("must be {}", article(*one)),
        Kind::Type { kind: TypeKind::Multiple(many) } => {
            format!("must be {}", many.iter().map(article).collect::<Vec<_>>().join(" or "))
        }
        Kind::Minimum { limit } => range(around).unwrap_or_else(|| format!("must be ≥ {limit}")),
        Kind::Maximum { limit } => range(around).unwrap_or_else(|| format!("must be ≤ {limit}")),
        Kind::ExclusiveMinimum { limit } => format!("must be > {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be < {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", plural(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", plural(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", plural(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", plural(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", plural(*limit as u64, "item"))
        }
        Kind::UnevaluatedItems { .. } => "must not have further items".to_owned(),
        Kind::MinProperties { limit } => format!("must have at least {}", plural(*limit, "member")),
        Kind::MaxProperties { limit } => format!("must have at most {}", plural(*limit, "member")),
        Kind::UniqueItems => "must not have the same item twice".to_owned(),
        Kind::Contains => "must contain the items that its schema requires".to_owned(),
        Kind::Pattern { pattern } => {
            format!("must match the pattern {}", truncate(pattern, QUOTE_MAX))
        }
        Kind::Enum { options } => match options.as_array().map(Vec::as_slice) {
            Some([only]) => format!("must be {}", truncate(&only.to_string(), QUOTE_MAX)),
            Some(all) => {
                let all: Vec<_> = all.iter().map(Value::to_string).collect();
                format!("must be one of {}", truncate(&all.join(", "), QUOTE_MAX))
            }
            None => "must be one of the values its schema lists".to_owned(),
        },
        Kind::Constant { expected_value } => {
            format!("must be {}", truncate(&expected_value.to_string(), QUOTE_MAX))
        }
        Kind::Format { format } => match format.as_str() {
            "uuid" => "must be a UUID like 550e8400-e29b-41d4-a716-446655440000".to_owned(),
            "date-time" => "must be an RFC 3339 time like 2026-02-11T14:15:09Z".to_owned(),
            other => format!("must have the format {}", truncate(other, QUOTE_MAX)),
        },
        Kind::PropertyNames { .. } => "must not have members with such names".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::AnyOf { .. } => "must fit at least one of the schemas in anyOf".to_owned(),
        Kind::OneOfNotValid { .. } => "must fit one of the schemas in oneOf".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "must fit exactly one of the schemas in oneOf, and fits more".to_owned()
        }
        Kind::Not { .. } => "must not fit the schema in not".to_owned(),
        Kind::ContentEncoding { content_encoding } => {
            format!("must be encoded as {}", truncate(content_encoding, QUOTE_MAX))
        }
        Kind::ContentMediaType { content_media_type } => {
            format!("must be {}", truncate(content_media_type, QUOTE_MAX))
        }
        other => format!("does not satisfy {}", other.keyword()),
    }
}

/// Both limits, where a schema has both. The reader can see which one is violated.
fn range(around: Option<&Value>) -> Option<String> {
    let (low, high) = (around?.get("minimum")?, around?.get("maximum")?);
    (low.is_number() && high.is_number()).then(|| format!("must be between {low} and {high}"))
}

fn article(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The maximum length of one name; names come from the value and may be of any length there.
const NAME_MAX: usize = 64;
/// The maximum length of a whole path.
const PATH_MAX: usize = 400;

/// The readable path of a JSON pointer into `json`.
pub(super) fn readable_path(json: &Json<'_>, pointer: &str) -> String {
    let mut path = String::new();
    let mut here = Some(json);
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        here = match here.map(Json::value) {
            Some(JsonValue::Array(items)) => {
                let _ = write!(path, "[{name}]");
                name.parse::<usize>().ok().and_then(|at| items.get(at))
            }
            _ => {
                push(&mut path, &name);
                here.and_then(|object| object.get(&name))
            }
        };
    }
    truncate(&path, PATH_MAX)
}

/// The path of a member of the value at `path`.
pub(super) fn member_path(path: &str, name: &str) -> String {
    let mut path = path.to_owned();
    push(&mut path, name);
    truncate(&path, PATH_MAX)
}

fn push(path: &mut String, name: &str) {
    let plain = |c: char| c.is_alphanumeric() || "_-$@".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&truncate(name, NAME_MAX));
    } else {
        let _ = write!(path, "[{:?}]", truncate(name, NAME_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    #[test]
    fn paths_read_like_the_language_of_the_web() {
        let json = ijson::read(br#"{"a":[{"b c":{"0":1}}],"x/y~z":2}"#).expect("JSON");
        assert_eq!(readable_path(&json, ""), "");
        assert_eq!(readable_path(&json, "/a/0"), "a[0]");
        assert_eq!(readable_path(&json, "/a/0/b c/0"), "a[0][\"b c\"].0");
        assert_eq!(readable_path(&json, "/x~1y~0z"), "[\"x/y~z\"]");
        assert_eq!(member_path("a[0]", "title"), "a[0].title");
        assert_eq!(member_path("", "title"), "title");
        assert!(member_path("", &"n".repeat(9_999)).chars().count() < 70);
    }
}
