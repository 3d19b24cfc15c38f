//! Reads the arguments of a tool by its input schema.
//!
//! Models write `25` as `"25"`, and amounts as numbers; both are read by what they mean. Unknown
//! arguments are refused, because a misspelt one would be ignored silently.

use std::collections::BTreeMap;

use rialto_config::suggest::nearest_key;
use rialto_core::money::Credits;
use rialto_core::number;
use rialto_protocols::kit::ijson::{Json, JsonValue};
use serde::Deserialize;

use super::catalog;
use super::error::ToolError;

/// Decimals of an amount.
const AMOUNT_DECIMALS: usize = 6;
/// Digits of an amount before its point.
const AMOUNT_DIGITS_MAX: usize = 10;
/// Arguments that name an agent. Its number is a name, too.
const AGENT_NAMES: [&str; 2] = ["agent", "to"];
/// How much of a wrong name an error repeats.
const SHOWN_MAX: usize = 64;

/// What an object of arguments may hold: the part of JSON Schema that the tools use.
#[derive(Debug, Deserialize)]
pub struct ArgumentSchema {
    #[serde(rename = "type")]
    kind: Kind,
    /// Without them an object may have any members.
    properties: Option<BTreeMap<String, ArgumentSchema>>,
    #[serde(default)]
    required: Vec<String>,
    items: Option<Box<ArgumentSchema>>,
    #[serde(rename = "maxItems")]
    items_max: Option<usize>,
    #[serde(rename = "minLength")]
    length_min: Option<usize>,
    #[serde(rename = "maxLength")]
    length_max: Option<usize>,
    minimum: Option<u32>,
    maximum: Option<u32>,
    #[serde(rename = "enum")]
    words: Option<Vec<String>>,
    /// Only amounts have one.
    pattern: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}

/// One argument, read by its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Argument {
    Text(String),
    Amount(Credits),
    Integer(u64),
    Millionths(i64),
    Flag(bool),
    List(Vec<Argument>),
    Object(Arguments),
}

/// The arguments of a call, or the members of an object in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The exact JSON text of each.
    raw: BTreeMap<String, String>,
    values: BTreeMap<String, Argument>,
}

impl Arguments {
    /// Reads the arguments of a tool. Absent and `null` are the same.
    pub fn read(tool: &str, json: &Json<'_>) -> Result<Self, ToolError> {
        let read = match catalog::input_schema(tool) {
            Some(schema) => read_object(schema, json, ""),
            None => {
                Err(BadArgument { field: String::new(), what: "tool has no schema".to_owned() })
            }
        };
        read.map_err(|bad| ToolError::malformed(bad.field, bad.what).with_example_of(tool))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Argument::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn integer(&self, name: &str) -> Option<u64> {
        match self.values.get(name)? {
            Argument::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// A number with a fraction, in millionths.
    pub fn millionths(&self, name: &str) -> Option<i64> {
        match self.values.get(name)? {
            Argument::Millionths(value) => Some(*value),
            _ => None,
        }
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.values.get(name)? {
            Argument::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn credits(&self, name: &str) -> Option<Credits> {
        match self.values.get(name)? {
            Argument::Amount(amount) => Some(*amount),
            _ => None,
        }
    }

    /// The strings of a list.
    pub fn list(&self, name: &str) -> Option<Vec<&str>> {
        fn text(item: &Argument) -> Option<&str> {
            match item {
                Argument::Text(text) => Some(text),
                _ => None,
            }
        }
        let Argument::List(items) = self.values.get(name)? else { return None };
        items.iter().map(text).collect()
    }

    /// The objects of a list.
    pub fn objects(&self, name: &str) -> Option<Vec<&Self>> {
        fn object(item: &Argument) -> Option<&Arguments> {
            match item {
                Argument::Object(object) => Some(object),
                _ => None,
            }
        }
        let Argument::List(items) = self.values.get(name)? else { return None };
        items.iter().map(object).collect()
    }

    /// An argument as it was sent: JSON text.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.raw.get(name).map(String::as_str)
    }

    /// All arguments but those named, in the order of their names, as they were sent.
    pub fn raw_without(&self, but: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        let all = self.raw.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        all.filter(move |(name, _)| !but.contains(name))
    }
}

/// What is wrong, and where.
struct BadArgument {
    /// A JSON pointer.
    field: String,
    /// Follows the field in a sentence.
    what: String,
}

fn bad<T>(field: &str, what: impl Into<String>) -> Result<T, BadArgument> {
    Err(BadArgument { field: field.to_owned(), what: what.into() })
}

fn read_object(
    schema: &ArgumentSchema,
    json: &Json<'_>,
    at: &str,
) -> Result<Arguments, BadArgument> {
    let JsonValue::Object(members) = json.value() else {
        return bad(at, "must be an object");
    };
    let mut read = Arguments { raw: BTreeMap::new(), values: BTreeMap::new() };
    let Some(known) = &schema.properties else { return Ok(read) };
    for (name, value) in members {
        let field = format!("{at}/{}", escape(name));
        let Some(schema) = known.get(name.as_ref()) else {
            let help = match nearest_key(name, known.keys().map(String::as_str)) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "this tool takes no arguments".to_owned(),
                None => {
                    let names: Vec<&str> = known.keys().map(String::as_str).collect();
                    format!("this tool takes {}", names.join(", "))
                }
            };
            return bad(&field, format!("is not known; {help}"));
        };
        if *value.value() == JsonValue::Null {
            continue;
        }
        let argument = read_argument(schema, name, value, &field)?;
        read.raw.insert(name.to_string(), value.raw().to_owned());
        read.values.insert(name.to_string(), argument);
    }
    match schema.required.iter().find(|name| !read.values.contains_key(*name)) {
        Some(missing) => bad(&format!("{at}/{missing}"), "is missing"),
        None => Ok(read),
    }
}

fn read_argument(
    schema: &ArgumentSchema,
    name: &str,
    json: &Json<'_>,
    field: &str,
) -> Result<Argument, BadArgument> {
    match schema.kind {
        Kind::String if schema.pattern.is_some() => read_amount(json, field).map(Argument::Amount),
        Kind::String => read_text(schema, name, json, field).map(Argument::Text),
        Kind::Integer => read_integer(schema, json, field).map(Argument::Integer),
        Kind::Number => read_number(schema, json, field).map(Argument::Millionths),
        Kind::Boolean => match digits_or_text(json) {
            Some("true") => Ok(Argument::Flag(true)),
            Some("false") => Ok(Argument::Flag(false)),
            _ => bad(field, "must be true or false"),
        },
        Kind::Array => read_list(schema, name, json, field).map(Argument::List),
        Kind::Object => read_object(schema, json, field).map(Argument::Object),
    }
}

/// The text of a string, a number, `true` or `false`.
fn digits_or_text<'j>(json: &'j Json<'_>) -> Option<&'j str> {
    match json.value() {
        JsonValue::String(text) => Some(text),
        JsonValue::Number(_) | JsonValue::Bool(_) => Some(json.raw()),
        _ => None,
    }
}

fn read_text(
    schema: &ArgumentSchema,
    name: &str,
    json: &Json<'_>,
    field: &str,
) -> Result<String, BadArgument> {
    let text = match json.value() {
        JsonValue::String(text) => text.to_string(),
        JsonValue::Number(digits) if AGENT_NAMES.contains(&name) => (*digits).to_owned(),
        _ => return bad(field, "must be a string"),
    };
    if let Some(words) = schema.words.as_ref().filter(|words| !words.contains(&text)) {
        return bad(field, format!("must be one of: {}", words.join(", ")));
    }
    let length = text.chars().count();
    if schema.length_min.is_some_and(|min| length < min) {
        return bad(field, "must not be empty");
    }
    match schema.length_max.filter(|max| length > *max) {
        Some(max) => bad(field, format!("has more than {max} characters")),
        None => Ok(text),
    }
}

/// Decimal text, or a number that is read by its digits.
fn read_amount(json: &Json<'_>, field: &str) -> Result<Credits, BadArgument> {
    let amount = match json.value() {
        JsonValue::String(text) if is_decimal(text) => {
            Credits::parse(without_zeros(text), AMOUNT_DECIMALS).ok()
        }
        JsonValue::Number(digits) => Credits::parse(digits, AMOUNT_DECIMALS).ok(),
        _ => None,
    };
    match amount {
        Some(amount) => Ok(amount),
        None => bad(field, "must be an amount of credits like \"0.10\""),
    }
}

/// Digits, and at most six more after a point.
fn is_decimal(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str, max: usize| {
        (1..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_digits(whole, AMOUNT_DIGITS_MAX) && is_digits(fraction, AMOUNT_DECIMALS)
}

/// Numbers do not begin with zeros; texts may.
fn without_zeros(text: &str) -> &str {
    let rest = text.trim_start_matches('0');
    let zeros = text.len() - rest.len();
    match rest.starts_with(|first: char| first.is_ascii_digit()) {
        true => rest,
        false => &text[zeros.saturating_sub(1)..],
    }
}

fn read_integer(schema: &ArgumentSchema, json: &Json<'_>, field: &str) -> Result<u64, BadArgument> {
    let text = match json.value() {
        JsonValue::String(text) => text.as_ref(),
        JsonValue::Number(digits) => digits,
        _ => return bad(field, "must be a whole number"),
    };
    let min = u64::from(schema.minimum.unwrap_or(0));
    let max = schema.maximum.map_or(i64::MAX.unsigned_abs(), u64::from);
    match number::parse_integer(text).map(u64::try_from) {
        Ok(Ok(value)) if (min..=max).contains(&value) => Ok(value),
        Err(number::IntegerError::NotWhole) => bad(field, "must be a whole number"),
        _ if schema.maximum.is_none() => bad(field, format!("must be {min} or more")),
        _ => bad(field, format!("must be from {min} to {max}")),
    }
}

fn read_number(schema: &ArgumentSchema, json: &Json<'_>, field: &str) -> Result<i64, BadArgument> {
    let text = match json.value() {
        JsonValue::String(text) => text.as_ref(),
        JsonValue::Number(digits) => digits,
        _ => return bad(field, "must be a number"),
    };
    let (min, max) = (schema.minimum.unwrap_or(0), schema.maximum.unwrap_or(u32::MAX));
    match text.parse::<f64>() {
        Ok(value) if (f64::from(min)..=f64::from(max)).contains(&value) => {
            Ok((value * 1e6).round() as i64)
        }
        _ => bad(field, format!("must be a number from {min} to {max}")),
    }
}

fn read_list(
    schema: &ArgumentSchema,
    name: &str,
    json: &Json<'_>,
    field: &str,
) -> Result<Vec<Argument>, BadArgument> {
    let JsonValue::Array(items) = json.value() else {
        return bad(field, "must be an array");
    };
    if let Some(max) = schema.items_max.filter(|max| items.len() > *max) {
        return bad(field, format!("has more than {max} items"));
    }
    let Some(item_schema) = &schema.items else { return Ok(Vec::new()) };
    let read = |(at, item)| read_argument(item_schema, name, item, &format!("{field}/{at}"));
    items.iter().enumerate().map(read).collect()
}

/// A name as part of a JSON pointer (RFC 6901), cut where it is long.
fn escape(name: &str) -> String {
    let shown: String = name.chars().take(SHOWN_MAX).collect();
    shown.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_protocols::kit::ijson;

    fn read(tool: &str, json: &str) -> Result<Arguments, ToolError> {
        Arguments::read(tool, &ijson::read(json.as_bytes()).expect(json))
    }

    fn hire(extra: &str) -> Result<Arguments, ToolError> {
        read("hire", &format!(r#"{{"skill":"s","input":{{"a":1.50}},{extra}}}"#))
    }

    #[test]
    fn amounts_are_read_by_their_digits_whether_they_are_texts_or_numbers() {
        for same in [r#""0.10""#, "0.1", "1e-1", r#""0.1""#, r#""00.100000""#] {
            let amount = hire(&format!(r#""budget":{same}"#)).expect(same).credits("budget");
            assert_eq!(amount, Some(Credits::from_micros(100_000)), "{same}");
        }
        for zero in [r#""0""#, "0", r#""000""#, r#""0.0""#] {
            let amount = hire(&format!(r#""budget":{zero}"#)).expect(zero).credits("budget");
            assert_eq!(amount, Some(Credits::ZERO), "{zero}");
        }
        for wrong in [
            r#""-1""#,
            r#""0.0000001""#,
            r#""ten""#,
            "-1",
            "0.0000001",
            r#""""#,
            r#"".5""#,
            r#""1e-1""#,
            r#""1.""#,
            r#"" 1""#,
            "true",
            "[1]",
            r#""10000000000""#,
            r#""12345678901""#,
        ] {
            let error = hire(&format!(r#""budget":{wrong}"#)).expect_err(wrong);
            assert_eq!((error.code, error.field.as_deref()), ("malformed", Some("/budget")));
        }
    }

    #[test]
    fn texts_are_read_by_what_they_mean() {
        let given = hire(r#""budget":1,"wait_seconds":"25","agent":17"#).expect("arguments");
        assert_eq!(given.integer("wait_seconds"), Some(25));
        assert_eq!(given.text("agent"), Some("17"));
        assert_eq!(given.text("skill"), Some("s"));
        assert_eq!(given.raw("input"), Some(r#"{"a":1.50}"#));
        let found = read("find_agents", r#"{"online":"true","min_score":"33.5"}"#).expect("found");
        assert_eq!(
            (found.flag("online"), found.millionths("min_score")),
            (Some(true), Some(33_500_000))
        );
        let found = read("find_agents", r#"{"online":false,"limit":2e1}"#).expect("found");
        assert_eq!((found.flag("online"), found.integer("limit")), (Some(false), Some(20)));
        assert_eq!(found.text("skill"), None);
    }

    #[test]
    fn nothing_and_null_are_the_same_and_what_is_required_is_asked_for() {
        let given = hire(r#""budget":"1","agent":null"#).expect("arguments");
        assert_eq!((given.text("agent"), given.raw("agent")), (None, None));
        let error = hire(r#""budget":null"#).expect_err("required");
        assert_eq!(error.field.as_deref(), Some("/budget"));
    }

    #[test]
    fn what_does_not_fit_the_schema_is_named_with_an_example() {
        for (tool, json, field, what) in [
            ("hire", r#"{"skill":"s","input":{}}"#, "/budget", "is missing"),
            ("hire", r#"{"skill":"s","input":[],"budget":"1"}"#, "/input", "an object"),
            ("hire", r#"{"skill":5,"input":{},"budget":"1"}"#, "/skill", "a string"),
            ("whoami", r#"{"x":1}"#, "/x", "no arguments"),
            ("whoami", r#"{"a/b~c":1}"#, "/a~1b~0c", "not known"),
            ("find_agents", r#"{"limt":1}"#, "/limt", "did you mean limit?"),
            ("find_agents", r#"{"limit":0}"#, "/limit", "from 1 to 20"),
            ("find_agents", r#"{"limit":21}"#, "/limit", "from 1 to 20"),
            ("find_agents", r#"{"limit":1.5}"#, "/limit", "whole number"),
            ("find_agents", r#"{"min_score":100.1}"#, "/min_score", "from 0 to 100"),
            ("find_agents", r#"{"min_score":"NaN"}"#, "/min_score", "from 0 to 100"),
            ("find_agents", r#"{"online":"yes"}"#, "/online", "true or false"),
            ("get_job", r#"{"job_id":"j","part":"all"}"#, "/part", "input, output"),
            ("get_job", r#"{"job_id":"j","from":-1}"#, "/from", "0 or more"),
            ("send_message", r#"{"text":""}"#, "/text", "empty"),
            ("next_job", r#"{"except":["a",1]}"#, "/except/1", "a string"),
            ("next_job", r#"{"except":"a"}"#, "/except", "an array"),
            ("update_profile", r#"{"skills":[{"name":"n"}]}"#, "/skills/0/price", "is missing"),
            ("update_profile", r#"{"skills":[{"nam":"n"}]}"#, "/skills/0/nam", "name"),
            ("hire", "[]", "", "an object"),
        ] {
            let error = read(tool, json).expect_err(json);
            assert_eq!((error.code, error.field.as_deref()), ("malformed", Some(field)), "{json}");
            assert!(error.what.contains(what), "{json}: {}", error.what);
            let example = catalog::example_of(tool).expect("an example");
            assert!(error.text().ends_with(&format!("Example: {example}")), "{}", error.text());
        }
        let long = format!(r#"{{"agent":"{}"}}"#, "é".repeat(201));
        let error = read("describe_agent", &long).expect_err("too long");
        assert!(error.what.contains("more than 200 characters"), "{}", error.what);
        assert!(read("describe_agent", &long.replacen('é', "", 1)).is_ok());
    }

    #[test]
    fn lists_hold_texts_or_objects() {
        let given = read("next_job", r#"{"except":["a","b"]}"#).expect("arguments");
        assert_eq!(given.list("except"), Some(vec!["a", "b"]));
        let skills = r#"{"skills":[{"name":"n","price":0.20,"input_schema":{"type": "object"}}]}"#;
        let given = read("update_profile", skills).expect("arguments");
        let skills = given.objects("skills").expect("skills");
        assert_eq!(skills[0].text("name"), Some("n"));
        assert_eq!(skills[0].credits("price"), Some(Credits::from_micros(200_000)));
        assert_eq!(skills[0].raw("input_schema"), Some(r#"{"type": "object"}"#));
    }
}
