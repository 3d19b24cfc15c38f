//! Signs an envelope written by the caller: its members stay unchanged, and missing ones are filled
//! in.

use std::borrow::Cow;

use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::{Envelope, VERSION};
use rialto_protocols::kit::ed25519::PublicKey;
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::jcs::{self, Edit};
use rialto_protocols::kit::{base64url, rfc3339};

use super::identity::{Identity, new_id};
use crate::call::CallError;
use crate::clock;

/// The path of the signature.
const SIGNATURE: &[&str] = &["sender", "signature"];

impl Identity {
    /// Signs an envelope in JSON. `protocol`, `id`, `timestamp` and `sender` are filled in if
    /// missing; an existing signature is replaced.
    pub fn sign_envelope(&self, text: &str) -> Result<String, CallError> {
        let json = ijson::read(text.as_bytes()).map_err(refuse)?;
        let JsonValue::Object(members) = json.value() else {
            return Err(CallError::invalid("an envelope must be a JSON object", None));
        };
        let own = |name: &str| matches!(name, "protocol" | "id" | "timestamp" | "sender");
        let given = |name: &str| json.get(name).filter(|value| *value.value() != JsonValue::Null);
        let or = |name: &str, default: String| match given(name) {
            Some(value) => value.raw().to_owned(),
            None => quoted(&default),
        };
        let mut unsigned = vec![
            ("protocol".into(), or("protocol", VERSION.to_owned())),
            ("id".into(), or("id", new_id()?)),
            ("timestamp".into(), or("timestamp", rfc3339::format_millis(clock::now()))),
            ("sender".into(), self.sender(given("sender"))?),
        ];
        let rest = members.iter().filter(|(name, _)| !own(name));
        unsigned.extend(rest.map(|(name, value)| (name.clone(), value.raw().to_owned())));
        self.sign_object(&object(&unsigned))
    }

    /// `sender` with the identity's id, an empty signature, and all other members it had.
    fn sender(&self, given: Option<&Json<'_>>) -> Result<String, CallError> {
        let mut members: Vec<(Cow<'_, str>, String)> =
            vec![("id".into(), quoted(self.did())), ("signature".into(), "\"\"".to_owned())];
        let Some(given) = given else { return Ok(object(&members)) };
        let JsonValue::Object(old) = given.value() else {
            return Err(CallError::invalid("sender is not an object", None));
        };
        if let Some(id) = given.get("id")
            && let JsonValue::String(text) = id.value()
            && !text.is_empty()
        {
            if PublicKey::parse(text) != Ok(self.key()) {
                let hint = "sign with that key, or leave sender.id out".to_owned();
                return Err(CallError::invalid("sender.id is another key", Some(hint)));
            }
            // A raw key is a valid id too, and stays as written.
            members[0].1 = id.raw().to_owned();
        }
        let own = |name: &str| matches!(name, "id" | "signature");
        let rest = old.iter().filter(|(name, _)| !own(name));
        members.extend(rest.map(|(name, value)| (name.clone(), value.raw().to_owned())));
        Ok(object(&members))
    }

    fn sign_object(&self, unsigned: &str) -> Result<String, CallError> {
        let invalid = |bad: rialto_protocols::agora::Failure| {
            let hint = bad.hint.as_ref().map(ToString::to_string);
            let example = bad.example.map(|example| format!("write it like {example}"));
            CallError::invalid(bad.message.to_string(), hint.or(example))
        };
        let json = envelope::read_json(unsigned.as_bytes()).map_err(invalid)?;
        let canonical = Envelope::read(&json).map_err(invalid)?.canonical().to_owned();
        let signature = base64url::encode(&self.secret().sign(canonical.as_bytes()));
        // The members are sent as given; only the signature is new.
        Ok(with_member(&json, SIGNATURE, &quoted(&signature)))
    }
}

/// The text of `json` with one member replaced, and no white space between members.
fn with_member(json: &Json<'_>, path: &[&str], to: &str) -> String {
    let (JsonValue::Object(members), [name, rest @ ..]) = (json.value(), path) else {
        return to.to_owned();
    };
    let written = members.iter().map(|(given, value)| {
        let text =
            if given == name { with_member(value, rest, to) } else { value.raw().to_owned() };
        (given.clone(), text)
    });
    object(&written.collect::<Vec<_>>())
}

/// The canonical text of an envelope for signing: RFC 8785, with an empty signature.
pub fn signing_input(text: &str) -> Result<String, CallError> {
    let json = ijson::read(text.as_bytes()).map_err(refuse)?;
    let edit = Edit { path: SIGNATURE, replacement: Some("\"\"") };
    jcs::canonicalize_with(&json, edit).map_err(|bad| CallError::invalid(bad.to_string(), None))
}

/// The canonical text (RFC 8785) of any JSON value.
pub fn canonical_json(text: &str) -> Result<String, CallError> {
    let json = ijson::read(text.as_bytes()).map_err(refuse)?;
    jcs::canonicalize(&json).map_err(|bad| CallError::invalid(bad.to_string(), None))
}

fn refuse(bad: ijson::JsonError) -> CallError {
    let hint = "give one JSON value in UTF-8, without duplicate names".to_owned();
    CallError::invalid(format!("not valid JSON to sign: {bad}"), Some(hint))
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    jcs::push_string(&mut out, text);
    out
}

fn object(members: &[(Cow<'_, str>, String)]) -> String {
    let written = members.iter().map(|(name, value)| format!("{}:{value}", quoted(name)));
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agora::Seed;
    use rialto_protocols::agora::wire::signature;

    fn proven(text: &str) -> bool {
        let json = envelope::read_json(text.as_bytes()).expect("JSON");
        signature::verify(&Envelope::read(&json).expect("an envelope")).is_ok()
    }

    #[test]
    fn missing_members_are_filled_in_and_others_stay() {
        let me = Identity::new(&Seed::from_bytes([1; 32]));
        let bare = me.sign_envelope(r#"{"type":"STATUS","payload":{"n":1.50}}"#).expect("signed");
        assert!(proven(&bare) && bare.contains(r#""payload":{"n":1.50}"#), "{bare}");
        let raw = base64url::encode(me.key().as_bytes());
        let full = format!(
            r#"{{"protocol":"agora/1.0","id":"x","timestamp":"2024-01-01T00:00:00+00:00","type":"STATUS","sender":{{"id":"{raw}","signature":"old","note":7}},"payload":{{}},"mine":[1, 2]}}"#
        );
        let signed = me.sign_envelope(&full).expect("signed");
        assert!(proven(&signed));
        for kept in ["\"x\"", "+00:00", &raw, "\"note\":7", "\"mine\":[1, 2]"] {
            assert!(signed.contains(kept), "{kept}: {signed}");
        }
        assert_eq!(
            me.sign_envelope(&signed).expect("signed"),
            signed,
            "signatures are always the same"
        );
    }

    #[test]
    fn another_senders_envelope_and_invalid_text_are_not_signed() {
        let me = Identity::new(&Seed::from_bytes([1; 32]));
        let you = Identity::new(&Seed::from_bytes([2; 32]));
        let theirs =
            format!(r#"{{"type":"STATUS","payload":{{}},"sender":{{"id":"{}"}}}}"#, you.did());
        for text in ["", "[]", "{}", r#"{"type":"DEBATE","payload":{}}"#, &theirs] {
            assert!(me.sign_envelope(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_text_to_be_signed_has_no_signature() {
        let text = r#"{"b":1.0,"a":{"x":"é"},"sender":{"signature":"s"}}"#;
        assert_eq!(
            canonical_json(text).expect("JSON"),
            r#"{"a":{"x":"é"},"b":1,"sender":{"signature":"s"}}"#
        );
        let unsigned = r#"{"a":{"x":"é"},"b":1,"sender":{"signature":""}}"#;
        assert_eq!(signing_input(text).expect("JSON"), unsigned);
    }
}
