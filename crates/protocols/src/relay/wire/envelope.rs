//! Envelopes: messages from one agent to another, checked field by field and passed on unchanged.
//! Also the body of the receive endpoint, `{"envelope":…}`: written for agents, read by the hub.
//!
//! The hub reads an envelope to find its sender and conversation. It never rewrites one:
//! [`Envelope::raw`] is the text that arrived.

use super::a2a::{self, EnvelopeFormat};
use super::address::Address;
use super::agent_card::check_language_tag;
use super::error::{Code, FieldErrors, InvalidBody};
use super::inbox::Annotations;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{Json, JsonValue};
use crate::relay::VERSION;

/// The minimum and maximum length of a cultural context in characters.
pub const CONTEXT_LEN: std::ops::RangeInclusive<usize> = 10..=500;
/// The maximum length of a conversation id in characters.
pub const CONVERSATION_ID_MAX: usize = 64;

/// A valid envelope.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// The sender.
    pub sender: Address<'a>,
    /// The text in the sender's own language.
    pub original_text: &'a str,
    /// A BCP 47 tag, in its original case.
    pub sender_culture: &'a str,
    /// What a reader of another culture should know.
    pub cultural_context: Option<&'a str>,
    /// The conversation it belongs to.
    pub conversation_id: Option<&'a str>,
    /// Its place in that conversation, from 1.
    pub turn_number: Option<u64>,
    raw: &'a str,
}

/// An envelope that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidEnvelope {
    /// What is wrong with it.
    pub body: InvalidBody,
    /// `INVALID_ENVELOPE`, or `UNSUPPORTED_VERSION` for another version.
    pub code: Code,
}

impl From<InvalidEnvelope> for InvalidBody {
    fn from(invalid: InvalidEnvelope) -> Self {
        invalid.body
    }
}

/// An error outside the envelope's own fields also makes it invalid.
impl From<InvalidBody> for InvalidEnvelope {
    fn from(bad: InvalidBody) -> Self {
        Self { body: bad, code: Code::InvalidEnvelope }
    }
}

impl<'a> Envelope<'a> {
    /// Reads the envelope at the JSON pointer `at`.
    pub fn read(json: &'a Json<'_>, at: &str) -> Result<Self, InvalidEnvelope> {
        let f = Fields::read(json, at).map_err(InvalidBody::from)?;
        let mut faults = FieldErrors::default();
        let read = (
            faults.collect(version(&f)),
            faults.collect(no_semantic(&f)),
            faults.collect(sender(&f)),
            faults.collect(original_text(&f)),
            faults.collect(sender_culture(&f)),
            faults.collect(
                not_null(json, &f, "cultural_context").and_then(|()| cultural_context(&f)),
            ),
            faults
                .collect(not_null(json, &f, "conversation_id").and_then(|()| conversation_id(&f))),
            faults.collect(not_null(json, &f, "turn_number").and_then(|()| turn_number(&f))),
        );
        let (
            Some(()),
            Some(()),
            Some(sender),
            Some(original_text),
            Some(sender_culture),
            Some(cultural_context),
            Some(conversation_id),
            Some(turn_number),
        ) = read
        else {
            let bad = faults.into_invalid_body();
            let code = if is_of_old(&f) { Code::UnsupportedVersion } else { Code::InvalidEnvelope };
            return Err(InvalidEnvelope { body: bad, code });
        };
        Ok(Self {
            sender,
            original_text,
            sender_culture,
            cultural_context,
            conversation_id,
            turn_number,
            raw: json.raw(),
        })
    }

    /// The whole envelope as sent.
    pub fn raw(&self) -> &'a str {
        self.raw
    }
}

/// Whether it is an envelope of another version, rather than an invalid one of this version.
fn is_of_old(f: &Fields<'_, '_>) -> bool {
    match f.get("chorus_version").map(Json::value) {
        Some(JsonValue::String(version)) => version != VERSION,
        Some(_) => false,
        None => f.has_value("original_semantic"),
    }
}

fn version(f: &Fields<'_, '_>) -> Result<(), Malformed> {
    // Every error about the version names the supported one (R50).
    let not_text = |_| f.malformed("chorus_version", "must be the string \"0.4\"");
    match f.text("chorus_version").map_err(not_text)? {
        Some(VERSION) => Ok(()),
        Some(_) => {
            Err(f.malformed("chorus_version", "must be \"0.4\", the only supported version"))
        }
        None => Err(f.malformed("chorus_version", "is required and must be \"0.4\"")),
    }
}

fn no_semantic(f: &Fields<'_, '_>) -> Result<(), InvalidBody> {
    const NAME: &str = "original_semantic";
    if !f.has_value(NAME) {
        return Ok(());
    }
    let fault =
        f.malformed(NAME, "belongs to envelopes of 0.2 and 0.3; this hub supports version 0.4");
    Err(InvalidBody::from(fault).with_hint(
        "put the sender's own words into original_text, leave original_semantic out, and set \
         chorus_version to \"0.4\"",
    ))
}

fn sender<'b>(f: &Fields<'_, 'b>) -> Result<Address<'b>, Malformed> {
    let text = f.required_text("sender_id")?;
    Address::read_full(text).map_err(|bad| f.malformed("sender_id", bad))
}

fn original_text<'b>(f: &Fields<'_, 'b>) -> Result<&'b str, Malformed> {
    match f.required_text("original_text")? {
        "" => Err(f.malformed("original_text", "must not be empty")),
        text => Ok(text),
    }
}

fn sender_culture<'b>(f: &Fields<'_, 'b>) -> Result<&'b str, Malformed> {
    let text = f.required_text("sender_culture")?;
    check_language_tag(text).map(|()| text).map_err(|bad| f.malformed("sender_culture", bad))
}

/// An optional member is absent or has a value: `null` is not accepted.
fn not_null(json: &Json<'_>, f: &Fields<'_, '_>, name: &str) -> Result<(), Malformed> {
    match json.get(name).map(Json::value) {
        Some(JsonValue::Null) => Err(f.malformed(name, "must not be null: leave it out")),
        _ => Ok(()),
    }
}

fn cultural_context<'b>(f: &Fields<'_, 'b>) -> Result<Option<&'b str>, Malformed> {
    let text = f.text("cultural_context")?;
    if text.is_some_and(|text| !CONTEXT_LEN.contains(&text.chars().count())) {
        return Err(f.malformed("cultural_context", "must have 10 to 500 characters"));
    }
    Ok(text)
}

fn conversation_id<'b>(f: &Fields<'_, 'b>) -> Result<Option<&'b str>, Malformed> {
    let text = f.text("conversation_id")?;
    if text.is_some_and(|text| text.chars().count() > CONVERSATION_ID_MAX) {
        return Err(f.malformed("conversation_id", "has more than 64 characters"));
    }
    Ok(text)
}

fn turn_number(f: &Fields<'_, '_>) -> Result<Option<u64>, Malformed> {
    let Some(turn) = f.integer("turn_number")? else { return Ok(None) };
    match u64::try_from(turn) {
        Ok(turn @ 1..) => Ok(Some(turn)),
        _ => Err(f.malformed("turn_number", "must be 1 or more")),
    }
}

/// Reads a body as a receiver: the envelope must be complete and of this version.
pub fn read_receive_body<'a>(json: &'a Json<'_>) -> Result<Envelope<'a>, InvalidEnvelope> {
    let f = Fields::read(json, "").map_err(InvalidBody::from)?;
    let given = f.required("envelope", json.get("envelope").filter(|_| f.has_value("envelope")));
    let unwrapped = a2a::find_envelope(given.map_err(InvalidBody::from)?, "/envelope")
        .map_err(InvalidBody::from)?;
    Envelope::read(unwrapped.envelope, &unwrapped.pointer)
}

/// Writes the body that is posted to an agent's endpoint; `trace_id` is also the id of the A2A
/// message.
pub fn write_receive_body(
    envelope: &str,
    format: Option<EnvelopeFormat>,
    trace_id: &str,
) -> Vec<u8> {
    write_annotated_receive_body(envelope, format, trace_id, &Annotations::default())
}

/// The same with annotations beside the envelope.
pub fn write_annotated_receive_body(
    envelope: &str,
    format: Option<EnvelopeFormat>,
    trace_id: &str,
    annotations: &Annotations,
) -> Vec<u8> {
    // Capacity for the A2A message around the envelope.
    let mut out = Vec::with_capacity(envelope.len() + 256);
    out.extend_from_slice(b"{\"envelope\":");
    a2a::write_envelope(&mut out, envelope, format, trace_id);
    annotations.write(&mut out);
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    const GOOD: &str = r#"{"chorus_version":"0.4","sender_id":"alice@chorus.example","original_text":"下午一起喝杯咖啡?","sender_culture":"zh-CN"}"#;

    /// The valid envelope with a member added or replaced.
    fn with(name: &str, value: &str) -> String {
        let json = ijson::read(GOOD.as_bytes()).expect("JSON");
        let JsonValue::Object(members) = json.value() else { panic!("an object") };
        let mut kept: Vec<_> = members
            .iter()
            .filter(|(given, _)| given != name)
            .map(|(given, value)| format!("\"{given}\":{}", value.raw()))
            .collect();
        kept.push(format!("\"{name}\":{value}"));
        format!("{{{}}}", kept.join(","))
    }

    fn refused(envelope: &str) -> InvalidEnvelope {
        let json = ijson::read(envelope.as_bytes()).expect(envelope);
        Envelope::read(&json, "/envelope").expect_err(envelope)
    }

    fn accepted(envelope: &str) {
        let json = ijson::read(envelope.as_bytes()).expect(envelope);
        let read = Envelope::read(&json, "/envelope").expect(envelope);
        assert_eq!(read.raw(), envelope);
    }

    #[test]
    fn the_books_valid_envelopes_are_read_and_kept_as_they_came() {
        accepted(GOOD);
        accepted(&with("conversation_id", &format!("\"{}\"", "会".repeat(64))));
        accepted(&with("x_extra", r#"{ "a":[1] , "b":1.0}"#));
        accepted(&with("cultural_context", &format!("\"{}\"", "文".repeat(10))));
        accepted(&with("cultural_context", &format!("\"{}\"", "文".repeat(500))));
        let text = r#"{"chorus_version":"0.4","sender_id":"Alice@chorus","original_text":"a\u0000\n\u2028","sender_culture":"en-us","cultural_context":"0123456789","conversation_id":"c","turn_number":1}"#;
        let json = ijson::read(text.as_bytes()).expect("JSON");
        let read = Envelope::read(&json, "/envelope").expect("an envelope");
        assert_eq!(read.sender.canonical(), "alice@chorus");
        assert_eq!(read.original_text, "a\0\n\u{2028}");
        assert_eq!(read.sender_culture, "en-us");
        assert_eq!(read.cultural_context, Some("0123456789"));
        assert_eq!((read.conversation_id, read.turn_number), (Some("c"), Some(1)));
    }

    #[test]
    fn a_turn_number_may_have_a_point_or_an_exponent() {
        for (written, turn) in [("1.0", 1), ("1e1", 10), ("120e-1", 12)] {
            let text = with("turn_number", written);
            let json = ijson::read(text.as_bytes()).expect("JSON");
            let read = Envelope::read(&json, "/envelope").expect(written);
            assert_eq!((read.turn_number, read.raw()), (Some(turn), text.as_str()));
        }
    }

    #[test]
    fn the_books_invalid_envelopes_are_refused_at_their_field() {
        let long = |count: usize| format!("\"{}\"", "文".repeat(count));
        for (name, value) in [
            ("chorus_version", r#""0.3""#.to_owned()),
            ("chorus_version", "0.4".to_owned()),
            ("chorus_version", "null".to_owned()),
            ("original_text", r#""""#.to_owned()),
            ("original_text", "1".to_owned()),
            ("sender_culture", r#""english""#.to_owned()),
            ("sender_culture", r#""e""#.to_owned()),
            ("sender_culture", r#""en_US""#.to_owned()),
            ("cultural_context", long(9)),
            ("cultural_context", long(501)),
            ("conversation_id", long(65)),
            ("turn_number", "0".to_owned()),
            ("turn_number", "-1".to_owned()),
            ("turn_number", "1.5".to_owned()),
            ("turn_number", r#""1""#.to_owned()),
            ("turn_number", "9223372036854775808".to_owned()),
            ("cultural_context", "null".to_owned()),
            ("conversation_id", "null".to_owned()),
            ("turn_number", "null".to_owned()),
            ("sender_id", r#""alice""#.to_owned()),
            ("sender_id", r#""@chorus""#.to_owned()),
            ("sender_id", r#""alice@""#.to_owned()),
            ("sender_id", r#""a@b@c""#.to_owned()),
        ] {
            let invalid = refused(&with(name, &value));
            assert_eq!(invalid.body.field(), format!("/envelope/{name}"), "{value}");
            assert_eq!(invalid.body.errors().len(), 1, "{name} {value}");
        }
    }

    #[test]
    fn every_bad_field_is_listed_in_one_text() {
        let text = r#"{"chorus_version":"0.4","sender_id":"alice@chorus","sender_culture":"english","turn_number":0}"#;
        let bad = refused(text).body;
        assert_eq!(bad.field(), "/envelope/original_text");
        let message = "/envelope/original_text: original_text is required; \
                       /envelope/sender_culture: sender_culture must be a BCP 47 tag like en, \
                       zh-CN or es-419, with hyphens and a language of 2 or 3 letters; \
                       /envelope/turn_number: turn_number must be 1 or more";
        assert_eq!(bad.message(), message);
        assert_eq!(refused("{}").body.errors().len(), 4);
        assert_eq!(refused("[]").body.message(), "/envelope: envelope must be an object");
    }

    #[test]
    fn another_version_is_told_from_a_bad_envelope() {
        assert_eq!(refused(&with("chorus_version", r#""0.3""#)).code, Code::UnsupportedVersion);
        assert_eq!(refused(&with("chorus_version", "0.4")).code, Code::InvalidEnvelope);
        assert_eq!(refused("{}").code, Code::InvalidEnvelope);
        assert_eq!(refused(r#"{"original_semantic":"x"}"#).code, Code::UnsupportedVersion);
        assert_eq!(refused(&with("sender_culture", "1")).code, Code::InvalidEnvelope);
        assert_eq!(refused("7").code, Code::InvalidEnvelope);
    }

    #[test]
    fn envelopes_of_old_are_told_what_has_changed() {
        let old = r#"{"chorus_version":"0.3","sender_id":"alice@chorus","original_semantic":"hi","sender_culture":"en"}"#;
        let bad = refused(old).body;
        assert!(bad.message().contains("0.4"));
        assert!(bad.hint().expect("a hint").contains("original_text"));
        let now = refused(&with("original_semantic", "\"hi\""));
        assert_eq!(now.body.field(), "/envelope/original_semantic");
        assert!(now.body.message().contains("0.4"));
    }

    const ENVELOPE: &str = r#"{"chorus_version":"0.4", "sender_id":"alice@chorus","original_text":"hi","sender_culture":"en"}"#;

    #[test]
    fn what_is_written_for_a_receiver_can_be_received() {
        for format in [None, Some(EnvelopeFormat::A2a10), Some(EnvelopeFormat::A2a03)] {
            let body = write_receive_body(ENVELOPE, format, "t");
            let json = ijson::read(&body).expect("JSON");
            assert_eq!(read_receive_body(&json).expect("an envelope").raw(), ENVELOPE);
        }
        assert_eq!(write_receive_body("{}", None, "t"), b"{\"envelope\":{}}");
    }

    #[test]
    fn bad_requests_are_refused_in_the_protocols_words() {
        let code = |body: &str| {
            let invalid =
                read_receive_body(&ijson::read(body.as_bytes()).expect(body)).expect_err(body);
            (invalid.code, invalid.body.field().to_owned())
        };
        assert_eq!(code("[]"), (Code::InvalidEnvelope, String::new()));
        assert_eq!(code("{}"), (Code::InvalidEnvelope, "/envelope".to_owned()));
        assert_eq!(code(r#"{"envelope":null}"#), (Code::InvalidEnvelope, "/envelope".to_owned()));
        let old = r#"{"envelope":{"chorus_version":"0.3"}}"#;
        assert_eq!(code(old), (Code::UnsupportedVersion, "/envelope/chorus_version".to_owned()));
        let two = r#"{"envelope":{"parts":[]}}"#;
        assert_eq!(code(two), (Code::InvalidEnvelope, "/envelope/parts".to_owned()));
    }
}
