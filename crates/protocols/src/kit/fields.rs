//! Reads the members of an object one by one. An error names the member.
//!
//! An absent member and `null` are the same here: no protocol of the hub tells them apart. Unknown
//! members are ignored.

use std::borrow::Cow;
use std::fmt::Display;

use rialto_core::money::Credits;
use rialto_core::number;
use rialto_core::time::Timestamp;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::ijson::{Json, JsonError, JsonValue};
use super::name::check_name;
use super::rfc3339;

/// What is wrong with the input, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Malformed {
    /// JSON pointer to the member (`/skills/0/cost_per_call`), `?name` for a query parameter, and
    /// empty for the body as a whole.
    pub field: String,
    /// A sentence that starts with the member's own name: `cost_per_call must be a number`.
    pub message: String,
}

impl From<JsonError> for Malformed {
    fn from(unreadable: JsonError) -> Self {
        Self { field: String::new(), message: format!("body is not valid JSON: {unreadable}") }
    }
}

/// The members of one object, and the object's place in the body.
#[derive(Clone, Debug)]
pub struct Fields<'a, 'b> {
    members: &'b [(Cow<'a, str>, Json<'a>)],
    at: String,
}

impl<'a, 'b> Fields<'a, 'b> {
    /// The members of `json`, which is at the JSON pointer `at` (empty for the body itself).
    pub fn read(json: &'b Json<'a>, at: impl Into<String>) -> Result<Self, Malformed> {
        let at = at.into();
        if let JsonValue::Object(members) = json.value() {
            return Ok(Self { members, at });
        }
        let message = match at.rsplit_once('/') {
            Some((_, last)) => format!("{} must be an object", unescape(last)),
            None => "body must be a JSON object".to_owned(),
        };
        Err(Malformed { field: at, message })
    }

    /// Whether the member is present and not `null`.
    pub fn has_value(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The member as it was sent.
    pub fn get(&self, name: &str) -> Option<&'b Json<'a>> {
        let (_, value) = self.members.iter().find(|(given, _)| given == name)?;
        (*value.value() != JsonValue::Null).then_some(value)
    }

    /// A member that must be present: wraps the result of any method below.
    pub fn required<T>(&self, name: &str, read: Option<T>) -> Result<T, Malformed> {
        read.ok_or_else(|| self.malformed(name, "is required"))
    }

    /// A string of any content.
    pub fn text(&self, name: &str) -> Result<Option<&'b str>, Malformed> {
        self.pick(name, "must be a string", |kind| match kind {
            JsonValue::String(text) => Some(text.as_ref()),
            _ => None,
        })
    }

    /// A required string of any content.
    pub fn required_text(&self, name: &str) -> Result<&'b str, Malformed> {
        self.required(name, self.text(name)?)
    }

    /// A string of 1 to `max` characters, none of them invisible.
    pub fn name(&self, name: &str, max: usize) -> Result<Option<&'b str>, Malformed> {
        self.parsed(name, self.text(name)?, |text| check_name(text, max).map(|()| text))
    }

    /// A required string of 1 to `max` visible characters.
    pub fn required_name(&self, name: &str, max: usize) -> Result<&'b str, Malformed> {
        self.required(name, self.name(name, max)?)
    }

    /// A UUID in its hyphenated form, upper or lower case, of any version.
    pub fn uuid(&self, name: &str) -> Result<Option<Uuid>, Malformed> {
        const FORM: &str = "must be a UUID like 550e8400-e29b-41d4-a716-446655440000";
        self.parsed(name, self.text(name)?, |text| {
            text.parse::<Hyphenated>().map(Hyphenated::into_uuid).map_err(|_| FORM)
        })
    }

    /// A JSON number with at most `decimals` decimals by value, read from its digits. Rounding
    /// noise of a double after them is ignored (`Credits::parse`).
    pub fn credits(&self, name: &str, decimals: usize) -> Result<Option<Credits>, Malformed> {
        let digits = self.pick(name, "must be a number", |kind| match kind {
            JsonValue::Number(digits) => Some(*digits),
            _ => None,
        })?;
        self.parsed(name, digits, |digits| Credits::parse(digits, decimals))
    }

    /// A required amount.
    pub fn required_credits(&self, name: &str, decimals: usize) -> Result<Credits, Malformed> {
        self.required(name, self.credits(name, decimals)?)
    }

    /// A number that is an integer by value: `5`, `5.0` and `5e0` are the same.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Malformed> {
        let digits = self.pick(name, "must be a whole number", |kind| match kind {
            JsonValue::Number(digits) => Some(*digits),
            _ => None,
        })?;
        self.parsed(name, digits, number::parse_integer)
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Malformed> {
        self.pick(name, "must be true or false", |kind| match kind {
            JsonValue::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    /// An object, to be read in the same way.
    pub fn object(&self, name: &str) -> Result<Option<Fields<'a, 'b>>, Malformed> {
        self.get(name).map(|value| Fields::read(value, self.pointer(name))).transpose()
    }

    /// An array of at most `items_max` items.
    pub fn list(&self, name: &str, items_max: usize) -> Result<Option<&'b [Json<'a>]>, Malformed> {
        let items = self.pick(name, "must be an array", |kind| match kind {
            JsonValue::Array(items) => Some(items.as_slice()),
            _ => None,
        })?;
        self.parsed(name, items, |items| match items.len() > items_max {
            true => Err(format!("has more than {items_max} items")),
            false => Ok(items),
        })
    }

    /// An RFC 3339 time with its offset.
    pub fn time(&self, name: &str) -> Result<Option<Timestamp>, Malformed> {
        self.parsed(name, self.text(name)?, rfc3339::parse)
    }

    /// The JSON pointer (RFC 6901) of a member.
    pub fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, name.replace('~', "~0").replace('/', "~1"))
    }

    /// An error about one member: `message` follows the name, as in "must be a number".
    pub fn malformed(&self, name: &str, message: impl Display) -> Malformed {
        Malformed { field: self.pointer(name), message: format!("{name} {message}") }
    }

    fn pick<T>(
        &self,
        name: &str,
        otherwise: &str,
        pick: impl FnOnce(&'b JsonValue<'a>) -> Option<T>,
    ) -> Result<Option<T>, Malformed> {
        let Some(value) = self.get(name) else { return Ok(None) };
        pick(value.value()).map(Some).ok_or_else(|| self.malformed(name, otherwise))
    }

    fn parsed<T, U, E: Display>(
        &self,
        name: &str,
        read: Option<T>,
        parse: impl FnOnce(T) -> Result<U, E>,
    ) -> Result<Option<U>, Malformed> {
        read.map(parse).transpose().map_err(|error| self.malformed(name, error))
    }
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;
    use crate::kit::name::BadName;
    use proptest::prelude::*;

    /// The result of reading one member of `body`.
    fn of<T>(
        body: &str,
        read: impl Fn(&Fields<'_, '_>) -> Result<T, Malformed>,
    ) -> Result<T, String> {
        let json = ijson::read(body.as_bytes()).expect(body);
        let fields = Fields::read(&json, "").expect("an object");
        read(&fields).map_err(|malformed| malformed.to_string())
    }

    fn refused<T: std::fmt::Debug>(message: &str) -> Result<T, String> {
        Err(message.to_owned())
    }

    #[test]
    fn only_an_object_has_fields() {
        let json = ijson::read(b"[{}]").expect("a list");
        let refusal = Fields::read(&json, "").expect_err("a list");
        assert_eq!(
            (refusal.field.as_str(), refusal.message.as_str()),
            ("", "body must be a JSON object")
        );
        let refusal = Fields::read(&json, "/a/b~1c~01").expect_err("a list");
        assert_eq!(refusal.field, "/a/b~1c~01");
        assert_eq!(refusal.message, "b/c~1 must be an object");
    }

    #[test]
    fn unreadable_bodies_are_malformed_as_a_whole() {
        let refusal = Malformed::from(ijson::read(b"{").expect_err("cut"));
        assert_eq!(refusal.field, "");
        assert_eq!(refusal.to_string(), "body is not valid JSON: unexpected end at byte 1");
    }

    #[test]
    fn absent_and_null_are_the_same() {
        for body in ["{}", r#"{"x":null}"#] {
            assert_eq!(of(body, |f| Ok(f.has_value("x"))), Ok(false));
            assert_eq!(of(body, |f| f.text("x").map(|x| x.is_none())), Ok(true));
            assert_eq!(of(body, |f| f.credits("x", 2)), Ok(None));
            assert_eq!(of(body, |f| f.list("x", 1).map(|x| x.is_none())), Ok(true));
            assert_eq!(of(body, |f| f.object("x").map(|x| x.is_none())), Ok(true));
            assert_eq!(of(body, |f| f.required_credits("x", 2)), refused("x is required"));
            assert_eq!(of(body, |f| f.required("x", f.uuid("x")?)), refused("x is required"));
            assert_eq!(
                of(body, |f| f.required_text("x").map(str::to_owned)),
                refused("x is required")
            );
        }
        assert_eq!(of(r#"{"x":""}"#, |f| Ok(f.has_value("x"))), Ok(true));
    }

    #[test]
    fn a_name_is_text_that_can_be_seen() {
        let name = |body: &str| of(body, |f| f.required_name("x", 3).map(str::to_owned));
        assert_eq!(name(r#"{"x":"\u0061界c"}"#), Ok("a界c".to_owned()));
        assert_eq!(name(r#"{"x":""}"#), refused("x must not be empty"));
        assert_eq!(name(r#"{"x":"abcd"}"#), refused("x has more than 3 characters"));
        let unseen = BadName::Invisible;
        assert_eq!(name(r#"{"x":"a\u0000"}"#), refused(&format!("x {unseen}")));
        assert_eq!(name(r#"{"x":"\u2601\ufe0f"}"#), Ok("☁\u{fe0f}".to_owned()));
        assert_eq!(name(r#"{"x":7}"#), refused("x must be a string"));
    }

    #[test]
    fn uuids_have_one_form() {
        let uuid = |text: &str| of(&format!("{{\"x\":\"{text}\"}}"), |f| f.uuid("x"));
        let plain = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(uuid(plain), Ok(Some(Uuid::from_u128(0x550e8400_e29b_41d4_a716_446655440000))));
        assert_eq!(uuid(&plain.to_uppercase()), uuid(plain));
        assert_eq!(uuid("00000000-0000-0000-0000-000000000000"), Ok(Some(Uuid::nil())));
        for text in [
            "",
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
            "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
            "550e8400-e29b-41d4-a716-44665544000",
            "550e8400-e29b-41d4-a716-44665544000g",
            "550e8400e-29b-41d4-a716-446655440000",
            " 550e8400-e29b-41d4-a716-44665544000",
            "550e8400-e29b-41d4-a716-4466554400é",
        ] {
            let message = "x must be a UUID like 550e8400-e29b-41d4-a716-446655440000";
            assert_eq!(uuid(text), refused(message), "{text}");
        }
    }

    #[test]
    fn amounts_are_numbers_read_digit_by_digit() {
        let credits = |value: &str| of(&format!("{{\"x\":{value}}}"), |f| f.credits("x", 2));
        assert_eq!(credits("0.29"), Ok(Some(Credits::from_micros(290_000))));
        assert_eq!(credits("1e-1"), Ok(Some(Credits::from_micros(100_000))));
        assert_eq!(credits("0.15000000000000002"), Ok(Some(Credits::from_micros(150_000))));
        assert_eq!(credits("0.005"), refused("x has more than 2 decimals"));
        assert_eq!(credits("-1"), refused("x must not be negative"));
        assert_eq!(credits("1e400"), refused("x is above 1000000000"));
        for value in ["\"0.10\"", "true", "[1]", "{}"] {
            assert_eq!(credits(value), refused("x must be a number"));
        }
    }

    #[test]
    fn integers_are_whole_by_value_however_they_are_written() {
        let integer = |value: &str| of(&format!("{{\"x\":{value}}}"), |f| f.integer("x"));
        assert_eq!(integer("-12"), Ok(Some(-12)));
        assert_eq!(integer("-0"), Ok(Some(0)));
        assert_eq!(integer("9223372036854775807"), Ok(Some(i64::MAX)));
        assert_eq!(integer("9223372036854775808"), refused("x is out of range"));
        assert_eq!(integer("12.0"), Ok(Some(12)));
        assert_eq!(integer("1e1"), Ok(Some(10)));
        for value in ["1.5", "1e-2", "\"1\"", "true"] {
            assert_eq!(integer(value), refused("x must be a whole number"));
        }
    }

    #[test]
    fn flags_lists_and_times_say_what_they_must_be() {
        let body = r#"{"f":true,"l":[1,2],"t":"2026-02-11T12:00:00+01:00","n":1,"s":"1"}"#;
        assert_eq!(of(body, |f| f.flag("f")), Ok(Some(true)));
        assert_eq!(of(body, |f| f.flag("s")), refused("s must be true or false"));
        assert_eq!(of(body, |f| f.list("l", 2).map(|l| l.map(<[_]>::len))), Ok(Some(2)));
        assert_eq!(of(body, |f| f.list("l", 1).map(|_| ())), refused("l has more than 1 items"));
        assert_eq!(of(body, |f| f.list("s", 1).map(|_| ())), refused("s must be an array"));
        assert_eq!(of(body, |f| f.time("t")), Ok(Some(Timestamp(1_770_807_600_000))));
        assert_eq!(of(body, |f| f.time("n")), refused("n must be a string"));
        let form = "s must be an RFC 3339 time like 2026-02-11T14:15:09Z";
        assert_eq!(of(body, |f| f.time("s")), refused(form));
    }

    #[test]
    fn a_refusal_points_at_the_member_it_is_about() {
        let body = br#"{"skills":[{"cost_per_call":0.001,"a/b~":{"c":1}}],"o":1}"#;
        let json = ijson::read(body).expect("a body");
        let fields = Fields::read(&json, "").expect("an object");
        let skills = fields.list("skills", 10).expect("a list").expect("skills");
        let skill = Fields::read(&skills[0], fields.pointer("skills") + "/0").expect("a skill");
        let refusal = skill.credits("cost_per_call", 2).expect_err("too fine");
        assert_eq!(refusal.field, "/skills/0/cost_per_call");
        assert_eq!(refusal.message, "cost_per_call has more than 2 decimals");
        let inner = skill.object("a/b~").expect("an object").expect("a/b~");
        assert_eq!(inner.text("c").expect_err("a number").field, "/skills/0/a~1b~0/c");
        let refusal = fields.object("o").expect_err("a number");
        assert_eq!(refusal, fields.malformed("o", "must be an object"));
    }

    proptest! {
        #[test]
        fn an_amount_computed_with_doubles_is_the_amount_that_was_meant(
            cents in 0..=100_000_i64,
            times in 1..=100_i64,
        ) {
            let computed = cents as f64 / 100.0 * times as f64;
            let read = of(&format!("{{\"x\":{computed:?}}}"), |f| f.credits("x", 2));
            prop_assert_eq!(read, Ok(Some(Credits::from_micros(cents * times * 10_000))));
        }

        #[test]
        fn the_last_part_of_a_pointer_is_the_name_it_was_made_of(name in any::<String>()) {
            let json = ijson::read(b"{}").expect("an object");
            let pointer = Fields::read(&json, "/at").expect("an object").pointer(&name);
            let last = pointer.strip_prefix("/at/").expect("a pointer");
            prop_assert!(!last.contains('/'));
            prop_assert_eq!(unescape(last), name);
        }
    }
}
