//! Agent cards: what an agent says about itself. Two members are read; the whole card is stored.

use super::bad::{Bad, Faults};
use super::culture;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{Json, Kind};

/// The only supported version of cards.
pub const VERSION: &str = "0.3";
/// The maximum size of a card in bytes: the hub keeps it in memory.
pub const CARD_MAX: usize = 32 << 10;
/// The maximum number of languages of one agent.
pub const LANGUAGES_MAX: usize = 1_000;

/// A valid card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card<'a> {
    raw: &'a str,
    culture: &'a str,
    languages: Vec<&'a str>,
}

impl<'a> Card<'a> {
    /// Reads the card at the JSON pointer `at`.
    pub fn read(json: &'a Json<'_>, at: &str) -> Result<Self, Bad> {
        let f = Fields::of(json, at)?;
        let mut faults = Faults::default();
        let version = faults.note(version(&f));
        let culture = faults.note(user_culture(&f));
        let languages = faults.note(languages(&f));
        match (version, culture, languages) {
            (Some(()), Some(culture), Some(languages)) => {
                Ok(Self { raw: json.raw(), culture, languages })
            }
            _ => Err(faults.into_bad()),
        }
    }

    /// The whole card as sent.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The culture of the user the agent acts for.
    pub fn culture(&self) -> &'a str {
        self.culture
    }

    /// The languages it accepts; at least one.
    pub fn languages(&self) -> &[&'a str] {
        &self.languages
    }
}

fn version(f: &Fields<'_, '_>) -> Result<(), Bad> {
    const HINT: &str = "a card's version is called card_version: \"0.3\"; chorus_version is the \
                        version of envelopes";
    let wrong = match f.text("card_version") {
        Ok(Some(VERSION)) => return Ok(()),
        Ok(Some(_)) => f.fail("card_version", "must be \"0.3\""),
        Ok(None) => f.fail("card_version", "is required and must be \"0.3\""),
        Err(malformed) => malformed,
    };
    let bad = Bad::from(wrong);
    // Cards of version 0.2 used the envelope's field name.
    if f.has("chorus_version") { Err(bad.with_hint(HINT)) } else { Err(bad) }
}

fn user_culture<'b>(f: &Fields<'_, 'b>) -> Result<&'b str, Malformed> {
    let text = f.required_text("user_culture")?;
    culture::check(text).map(|()| text).map_err(|bad| f.fail("user_culture", bad))
}

fn languages<'b>(f: &Fields<'_, 'b>) -> Result<Vec<&'b str>, Malformed> {
    const NAME: &str = "supported_languages";
    let items = f.required(NAME, f.list(NAME, LANGUAGES_MAX)?)?;
    if items.is_empty() {
        return Err(f.fail(NAME, "must name at least one language"));
    }
    let read = |(at, item): (usize, &'b Json<'_>)| match item.kind() {
        Kind::Text(text) if culture::check(text).is_ok() => Ok(text.as_ref()),
        _ => Err(Malformed {
            field: format!("{}/{at}", f.pointer(NAME)),
            message: format!("{NAME} {}", culture::BadCulture),
        }),
    };
    items.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    fn refused(card: &str) -> Bad {
        Card::read(&ijson::read(card.as_bytes()).expect(card), "/agent_card").expect_err(card)
    }

    #[test]
    fn a_card_is_kept_whole_and_read_in_part() {
        let text = r#"{ "card_version":"0.3","user_culture":"zh-CN",
            "supported_languages":["zh-CN","\u0065n"],"personality":{"a":[1.0]} }"#;
        let json = ijson::read(text.as_bytes()).expect("JSON");
        let card = Card::read(&json, "/agent_card").expect("a card");
        assert_eq!(card.raw(), text);
        assert_eq!(card.culture(), "zh-CN");
        assert_eq!(card.languages(), ["zh-CN", "en"]);
    }

    #[test]
    fn every_bad_field_is_named() {
        let bad = refused(
            r#"{"card_version":"0.2","user_culture":"english","supported_languages":["en","x"]}"#,
        );
        assert_eq!(bad.field(), "/agent_card/card_version");
        let fields: Vec<_> = bad.faults().iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "/agent_card/card_version",
                "/agent_card/user_culture",
                "/agent_card/supported_languages/1"
            ]
        );
        assert_eq!(refused("{}").faults().len(), 3);
        assert_eq!(refused("[]").message(), "/agent_card: agent_card must be an object");
    }

    #[test]
    fn languages_are_a_list_of_at_least_one() {
        for list in ["[]", "\"en\"", "[1]", "[null]", "[\"\"]", "null"] {
            let card = format!(
                r#"{{"card_version":"0.3","user_culture":"en","supported_languages":{list}}}"#
            );
            assert!(
                refused(&card).field().starts_with("/agent_card/supported_languages"),
                "{list}"
            );
        }
    }

    #[test]
    fn the_old_name_of_the_version_gets_a_hint() {
        let rest = r#""user_culture":"en","supported_languages":["en"]"#;
        let bad = refused(&format!(r#"{{"chorus_version":"0.2",{rest}}}"#));
        assert_eq!(bad.field(), "/agent_card/card_version");
        assert!(bad.hint().expect("a hint").contains(r#"card_version: "0.3""#));
        assert_eq!(refused(&format!(r#"{{"card_version":0.3,{rest}}}"#)).hint(), None);
        let both = format!(r#"{{"card_version":"0.3","chorus_version":"0.4",{rest}}}"#);
        let json = ijson::read(both.as_bytes()).expect("JSON");
        assert!(Card::read(&json, "").is_ok(), "further members are kept");
    }
}
