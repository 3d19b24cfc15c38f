//! Work in envelopes: the members that request it from an agent of another protocol, the `message`
//! skill that every agent of this protocol has, and input and output as text, which is all an
//! envelope can carry (B19).

use rialto_core::agent::{Agent, Skill};
use rialto_core::money::Credits;

use super::envelope::Envelope;
use super::error::{FieldErrors, InvalidBody};
use crate::kit::fields::Fields;
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;

/// The maximum length of a skill's name in characters.
const SKILL_MAX: usize = 256;
/// The maximum number of decimals of an amount.
const DECIMALS: usize = 6;
/// The place of an envelope in a message.
const AT: &str = "/envelope";

/// The additional members of an envelope that are about work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkTerms<'a> {
    pub skill: Option<&'a str>,
    /// JSON text of an object, which is used instead of the text.
    pub input: Option<&'a str>,
    pub budget: Option<Credits>,
}

impl<'a> WorkTerms<'a> {
    /// Reads them from the envelope's own JSON.
    pub fn read(envelope: &'a Json<'_>) -> Result<Self, InvalidBody> {
        let f = Fields::read(envelope, AT)?;
        let mut faults = FieldErrors::default();
        let read = (
            faults.collect(f.name("skill", SKILL_MAX)),
            faults.collect(f.object("input").map(|_| f.get("input").map(Json::raw))),
            faults.collect(f.credits("budget", DECIMALS)),
        );
        let (Some(skill), Some(input), Some(budget)) = read else {
            return Err(faults.into_invalid_body());
        };
        Ok(Self { skill, input, budget })
    }

    /// The requested skill: the one named, the agent's only skill, or the `message` skill. An agent
    /// with several skills, none of them named, gets a plain message.
    pub fn skill_for(&self, agent: &'a Agent) -> Option<&'a str> {
        let mut others = agent.skills_for_other_protocols();
        let only = others.next().filter(|_| others.next().is_none());
        let usual = || only.or_else(|| agent.skill(MESSAGE_SKILL)).map(|skill| skill.name.as_str());
        self.skill.or_else(usual)
    }

    /// The work's input: the given one, else the text, with its culture for skills that take one.
    pub fn input(&self, envelope: &Envelope<'_>, skill: Option<&Skill>) -> String {
        if let Some(input) = self.input {
            return input.to_owned();
        }
        let text = ObjectWriter::new().text("text", envelope.original_text);
        let culture = skill.filter(|skill| takes_culture(skill)).map(|_| envelope.sender_culture);
        text.maybe_text("culture", culture).finish()
    }
}

/// Whether a skill's input has a field for the sender's culture, in any form of schema.
fn takes_culture(skill: &Skill) -> bool {
    let Ok(shape) = ijson::read(skill.input.as_bytes()) else { return false };
    let properties =
        shape.get("properties").filter(|all| matches!(all.value(), JsonValue::Object(_)));
    properties.unwrap_or(&shape).get("culture").is_some()
}

/// Its name in other protocols.
pub const MESSAGE_SKILL: &str = "message";
/// A text goes in and a text comes out.
const SHAPE: &str = r#"{"text":"string"}"#;

/// The skill as listed: free, since this protocol has no prices.
pub fn message_skill() -> Skill {
    Skill {
        name: MESSAGE_SKILL.to_owned(),
        price: Credits::ZERO,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        description: "Reads a message and replies to it".to_owned(),
        category: None,
        native_name: None,
        input: SHAPE.to_owned(),
        output: SHAPE.to_owned(),
    }
}

/// Input or output as text: `{"text":…}` and a string become that text, anything else its JSON.
pub fn json_as_text(json: &str) -> String {
    let read = ijson::read(json.as_bytes());
    let said = match read.as_ref().map(Json::value) {
        Ok(JsonValue::Object(members)) => match &members[..] {
            [(name, value)] if name == "text" => as_string(value),
            _ => None,
        },
        Ok(JsonValue::String(said)) => Some(said.as_ref()),
        _ => None,
    };
    // An envelope's text must not be empty, so an empty text becomes its JSON.
    said.filter(|said| !said.is_empty()).unwrap_or(json).to_owned()
}

/// The text of a JSON string.
pub(crate) fn as_string<'j>(json: &'j Json<'_>) -> Option<&'j str> {
    match json.value() {
        JsonValue::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (Option<String>, Option<String>, Option<i64>);

    fn wish(text: &str) -> Result<Read, String> {
        let json = ijson::read(text.as_bytes()).expect("JSON");
        let wish = WorkTerms::read(&json).map_err(|bad| bad.message())?;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok((owned(wish.skill), owned(wish.input), wish.budget.map(Credits::micros)))
    }

    #[test]
    fn what_is_asked_for_is_read_digit_by_digit_and_left_as_it_came() {
        let text = r#"{"skill":"sum","input":{ "a":1.50 },"budget":1e-1}"#;
        let wanted = (Some("sum".to_owned()), Some(r#"{ "a":1.50 }"#.to_owned()), Some(100_000));
        assert_eq!(wish(text), Ok(wanted));
        assert_eq!(wish(r#"{"skill":null}"#), Ok((None, None, None)));
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let bad = wish(r#"{"skill":7,"input":[1],"budget":"1"}"#).expect_err("it is wrong");
        for field in ["/envelope/skill", "/envelope/input", "/envelope/budget"] {
            assert!(bad.contains(field), "{bad}");
        }
        for budget in ["-1", "0.0000001", "1000000001", "true"] {
            assert!(wish(&format!(r#"{{"budget":{budget}}}"#)).is_err(), "{budget}");
        }
    }

    #[test]
    fn a_culture_is_passed_to_every_caller_that_requests_it() {
        let text = r#"{"chorus_version":"0.4","sender_id":"a@b","original_text":"hi \"you\"","sender_culture":"zh-CN"}"#;
        let json = ijson::read(text.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json, AT).expect("an envelope");
        let wish = WorkTerms::read(&json).expect("nothing is asked for");
        let with = |input: &str| Skill { input: input.to_owned(), ..message_skill() };
        let plain = r#"{"text":"hi \"you\""}"#;
        let cultured = r#"{"text":"hi \"you\"","culture":"zh-CN"}"#;
        for (shape, input) in [
            (r#"{"text":"string"}"#, plain),
            (r#"{"text":"string","culture":"string"}"#, cultured),
            (r#"{"type":"object","properties":{"culture":{"type":"string"}}}"#, cultured),
            (r#"{"type":"object","properties":{},"culture":1}"#, plain),
            ("no JSON", plain),
        ] {
            assert_eq!(wish.input(&envelope, Some(&with(shape))), input, "{shape}");
        }
        assert_eq!(wish.input(&envelope, None), plain);
    }

    #[test]
    fn just_a_text_is_that_text_and_everything_else_its_json() {
        for (json, said) in [
            (r#"{"text":"hi \"you\""}"#, r#"hi "you""#),
            (r#""plain""#, "plain"),
            (r#"{"text":""}"#, r#"{"text":""}"#),
            (r#""""#, r#""""#),
            (r#"{"text":7}"#, r#"{"text":7}"#),
            (r#"{ "text":"a","n":1.50}"#, r#"{ "text":"a","n":1.50}"#),
            (r#"{"Text":"a"}"#, r#"{"Text":"a"}"#),
            ("null", "null"),
            ("[1.0]", "[1.0]"),
        ] {
            assert_eq!(json_as_text(json), said, "{json}");
        }
    }
}
