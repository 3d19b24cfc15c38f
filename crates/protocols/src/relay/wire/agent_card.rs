//! Agent cards: what an agent says about itself. Two members are read; the whole card is stored.
//!
//! Cultures and languages are BCP 47 tags, checked for form and stored as sent.

use oxilangtag::LanguageTag;

use super::error::{FieldErrors, InvalidBody};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{Json, JsonValue};

/// The only supported version of cards.
pub const VERSION: &str = "0.3";
/// The maximum size of a card in bytes: the hub keeps it in memory.
pub const CARD_MAX: usize = 32 << 10;
/// The maximum number of languages of one agent.
pub const LANGUAGES_MAX: usize = 1_000;

/// A valid card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCard<'a> {
    raw: &'a str,
    culture: &'a str,
    languages: Vec<&'a str>,
}

impl<'a> AgentCard<'a> {
    /// Reads the card at the JSON pointer `at`.
    pub fn read(json: &'a Json<'_>, at: &str) -> Result<Self, InvalidBody> {
        let f = Fields::read(json, at)?;
        let mut faults = FieldErrors::default();
        let version = faults.collect(version(&f));
        let culture = faults.collect(user_culture(&f));
        let languages = faults.collect(languages(&f));
        match (version, culture, languages) {
            (Some(()), Some(culture), Some(languages)) => {
                Ok(Self { raw: json.raw(), culture, languages })
            }
            _ => Err(faults.into_invalid_body()),
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

fn version(f: &Fields<'_, '_>) -> Result<(), InvalidBody> {
    const HINT: &str = "a card's version is called card_version: \"0.3\"; chorus_version is the \
                        version of envelopes";
    let wrong = match f.text("card_version") {
        Ok(Some(VERSION)) => return Ok(()),
        Ok(Some(_)) => f.malformed("card_version", "must be \"0.3\""),
        Ok(None) => f.malformed("card_version", "is required and must be \"0.3\""),
        Err(malformed) => malformed,
    };
    let bad = InvalidBody::from(wrong);
    // Cards of version 0.2 used the envelope's field name.
    if f.has_value("chorus_version") { Err(bad.with_hint(HINT)) } else { Err(bad) }
}

fn user_culture<'b>(f: &Fields<'_, 'b>) -> Result<&'b str, Malformed> {
    let text = f.required_text("user_culture")?;
    check_language_tag(text).map(|()| text).map_err(|bad| f.malformed("user_culture", bad))
}

fn languages<'b>(f: &Fields<'_, 'b>) -> Result<Vec<&'b str>, Malformed> {
    const NAME: &str = "supported_languages";
    let items = f.required(NAME, f.list(NAME, LANGUAGES_MAX)?)?;
    if items.is_empty() {
        return Err(f.malformed(NAME, "must name at least one language"));
    }
    let read = |(at, item): (usize, &'b Json<'_>)| match item.value() {
        JsonValue::String(text) if check_language_tag(text).is_ok() => Ok(text.as_ref()),
        _ => Err(Malformed {
            field: format!("{}/{at}", f.pointer(NAME)),
            message: format!("{NAME} {}", BadCulture),
        }),
    };
    items.iter().enumerate().map(read).collect()
}

/// Why a text is not a culture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a BCP 47 tag like en, zh-CN or es-419, with hyphens and a language of 2 or 3 letters"
)]
pub struct BadCulture;

/// Checks a tag: well-formed by RFC 5646, in any case, with a language of 2 or 3 letters (D20).
pub fn check_language_tag(text: &str) -> Result<(), BadCulture> {
    let language = text.split('-').next().unwrap_or_default();
    let short = matches!(language.len(), 2..=3);
    if !short || LanguageTag::parse(text).is_err() {
        return Err(BadCulture);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    fn refused(card: &str) -> InvalidBody {
        AgentCard::read(&ijson::read(card.as_bytes()).expect(card), "/agent_card").expect_err(card)
    }

    #[test]
    fn a_card_is_kept_whole_and_read_in_part() {
        let text = r#"{ "card_version":"0.3","user_culture":"zh-CN",
            "supported_languages":["zh-CN","\u0065n"],"personality":{"a":[1.0]} }"#;
        let json = ijson::read(text.as_bytes()).expect("JSON");
        let card = AgentCard::read(&json, "/agent_card").expect("a card");
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
        let fields: Vec<_> = bad.errors().iter().map(|fault| fault.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "/agent_card/card_version",
                "/agent_card/user_culture",
                "/agent_card/supported_languages/1"
            ]
        );
        assert_eq!(refused("{}").errors().len(), 3);
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
        assert!(AgentCard::read(&json, "").is_ok(), "further members are kept");
    }

    #[test]
    fn well_formed_tags_are_accepted_in_any_case() {
        for text in [
            "en",
            "zh-CN",
            "zh-Hant-TW",
            "es-419",
            "en-us",
            "en-GB-oxendict",
            "yue",
            "EN-GB",
            "en-GB-oed",
            "de-x-private",
            "en-u-ca-gregory",
            "zh-min-nan",
        ] {
            assert_eq!(check_language_tag(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "english",
            "e",
            "en_US",
            "en-",
            "-en",
            "en--US",
            "en US",
            " en",
            "x-private",
            "i-klingon",
            "root",
            "e1",
            "中文",
            "zh-中国",
            "en-toolongsubtag",
            "en\n",
        ] {
            assert_eq!(check_language_tag(text), Err(BadCulture), "{text}");
        }
    }
}
