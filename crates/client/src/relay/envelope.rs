//! Envelopes that are validated before they are sent.

use rialto_protocols::kit::ijson;
use rialto_protocols::relay::wire::a2a;
use rialto_protocols::relay::{Envelope, InvalidBody, VERSION};
use serde::Serialize;

use crate::call::CallError;

/// The fields of an envelope.
#[derive(Clone, Debug)]
pub struct EnvelopeSpec {
    /// The sender's full address.
    pub sender_id: String,
    /// The sender's culture, a BCP 47 tag.
    pub sender_culture: String,
    /// The text.
    pub original_text: String,
    /// Background for a reader of another culture: 10 to 500 characters.
    pub cultural_context: Option<String>,
    /// The conversation it belongs to.
    pub conversation_id: Option<String>,
    /// Its number in that conversation, from 1.
    pub turn_number: Option<u64>,
}

/// A valid envelope, as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidEnvelope(String);

#[derive(Serialize)]
struct EnvelopeBody<'a> {
    chorus_version: &'static str,
    sender_id: &'a str,
    original_text: &'a str,
    sender_culture: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cultural_context: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_number: Option<u64>,
}

impl EnvelopeSpec {
    /// An envelope with a text and its sender.
    pub fn new(sender_id: &str, sender_culture: &str, original_text: &str) -> Self {
        Self {
            sender_id: sender_id.to_owned(),
            sender_culture: sender_culture.to_owned(),
            original_text: original_text.to_owned(),
            cultural_context: None,
            conversation_id: None,
            turn_number: None,
        }
    }

    /// Builds the envelope; fails if a receiver would have to refuse it.
    pub fn build(&self) -> Result<ValidEnvelope, CallError> {
        let wire = EnvelopeBody {
            chorus_version: VERSION,
            sender_id: &self.sender_id,
            original_text: &self.original_text,
            sender_culture: &self.sender_culture,
            cultural_context: self.cultural_context.as_deref(),
            conversation_id: self.conversation_id.as_deref(),
            turn_number: self.turn_number,
        };
        let text = serde_json::to_string(&wire);
        ValidEnvelope::read(&text.map_err(|error| CallError::Unreadable(error.to_string()))?)
    }
}

impl ValidEnvelope {
    /// Parses an existing envelope, with or without an A2A message around it.
    pub fn read(text: &str) -> Result<Self, CallError> {
        let refused =
            |bad: InvalidBody| CallError::invalid(bad.message(), bad.hint().map(str::to_owned));
        let json = ijson::read(text.as_bytes()).map_err(|bad| refused(bad.into()))?;
        let found = a2a::find_envelope(&json, "/envelope").map_err(|bad| refused(bad.into()))?;
        Envelope::read(found.envelope, &found.pointer).map_err(|bad| refused(bad.into()))?;
        Ok(Self(json.raw().to_owned()))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_becomes_the_envelope_of_the_book() {
        let mut draft = EnvelopeSpec::new("alice@chorus", "zh-CN", "下午一起喝杯咖啡?");
        let plain = r#"{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"下午一起喝杯咖啡?","sender_culture":"zh-CN"}"#;
        assert_eq!(draft.build().expect("a letter").as_str(), plain);
        draft.conversation_id = Some("c-1".to_owned());
        draft.turn_number = Some(7);
        let envelope = draft.build().expect("a letter");
        assert!(envelope.as_str().ends_with(r#""conversation_id":"c-1","turn_number":7}"#));
    }

    #[test]
    fn what_a_server_would_refuse_is_not_sent() {
        let good = EnvelopeSpec::new("alice@chorus", "en", "Hello!");
        let mut drafts = vec![
            EnvelopeSpec::new("alice", "en", "Hello!"),
            EnvelopeSpec::new("alice@chorus", "english", "Hello!"),
            EnvelopeSpec::new("alice@chorus", "en", ""),
        ];
        drafts.push(EnvelopeSpec { cultural_context: Some("short".to_owned()), ..good.clone() });
        drafts.push(EnvelopeSpec { turn_number: Some(0), ..good });
        for draft in drafts {
            let error = draft.build().expect_err("a bad draft");
            assert!(matches!(error, CallError::Refused { status: 400, .. }), "{draft:?}");
        }
    }

    #[test]
    fn an_envelope_may_come_in_an_a2a_message() {
        let part = r#"{"data":{"chorus_version":"0.4","sender_id":"a@b","original_text":"x","sender_culture":"en"},"mediaType":"application/vnd.chorus.envelope+json"}"#;
        let wrapped = format!(r#"{{"role":"ROLE_USER","parts":[{part}],"messageId":"1"}}"#);
        assert_eq!(ValidEnvelope::read(&wrapped).expect("a letter").as_str(), wrapped);
        let twice = format!(r#"{{"parts":[{part},{part}]}}"#);
        assert!(ValidEnvelope::read(&twice).is_err());
    }
}
