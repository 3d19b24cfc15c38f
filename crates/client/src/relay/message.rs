//! Messages: the envelope to send, the message as its receiver gets it, and past messages.

use rialto_core::number;
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::sse;
use rialto_protocols::relay::wire::a2a;
use rialto_protocols::relay::{Envelope, InvalidBody, VERSION};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::CallError;
use crate::json;

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
        ValidEnvelope::read(&serde_json::to_string(&wire).map_err(CallError::unreadable)?)
    }
}

impl ValidEnvelope {
    /// Parses an existing envelope, with or without an A2A message around it.
    pub fn read(text: &str) -> Result<Self, CallError> {
        let invalid =
            |bad: InvalidBody| CallError::invalid(bad.message(), bad.hint().map(str::to_owned));
        let json = ijson::read(text.as_bytes()).map_err(|bad| invalid(bad.into()))?;
        let unwrapped =
            a2a::find_envelope(&json, "/envelope").map_err(|bad| invalid(bad.into()))?;
        Envelope::read(unwrapped.envelope, &unwrapped.pointer)
            .map_err(|bad| invalid(bad.into()))?;
        Ok(Self(json.raw().to_owned()))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A message from an inbox.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its position in the inbox, if the server has positions.
    pub position: Option<u64>,
    /// The server's id for it.
    pub trace_id: Option<String>,
    /// The sender.
    pub sender_id: String,
    /// When the server accepted it.
    pub timestamp: Option<String>,
    /// Whether the server confirms the sender.
    pub verified: bool,
    /// It is a question of the worker of a job, and the next message of the conversation is the
    /// answer.
    pub question: bool,
    /// The contents.
    pub contents: EnvelopeContents,
    raw: Box<RawValue>,
}

/// The contents of an envelope, as far as it can be parsed. Servers check envelopes by their own
/// rules, and an unusual one is still a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvelopeContents {
    /// The envelope: JSON text, unwrapped from an A2A message if there was one.
    pub envelope: String,
    /// The text, as the sender wrote it.
    pub original_text: String,
    /// The sender's culture.
    pub sender_culture: Option<String>,
    /// Background for a reader of another culture.
    pub cultural_context: Option<String>,
    /// The conversation it belongs to.
    pub conversation_id: Option<String>,
    /// Its number in that conversation.
    pub turn_number: Option<u64>,
}

#[derive(Deserialize)]
struct MessageEvent {
    trace_id: Option<String>,
    sender_id: String,
    envelope: Box<RawValue>,
    timestamp: Option<String>,
    verified: Option<bool>,
    #[serde(default)]
    question: bool,
}

impl Message {
    /// Parses the data of a `message` event.
    pub(super) fn read(position: Option<u64>, data: String) -> Result<Self, CallError> {
        let mut bytes = data.into_bytes();
        // In JSON, line breaks occur only between tokens, where a space means the same.
        sse::replace_newlines(&mut bytes);
        let wire: MessageEvent = json::parse(&bytes)?;
        Ok(Self {
            position,
            trace_id: wire.trace_id,
            sender_id: wire.sender_id,
            timestamp: wire.timestamp,
            verified: wire.verified.unwrap_or(true),
            question: wire.question,
            contents: EnvelopeContents::read(wire.envelope.get()),
            raw: json::parse(&bytes)?,
        })
    }

    /// The event's data as received: JSON text on one line.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

impl EnvelopeContents {
    /// Parses an envelope, with or without an A2A message around it.
    pub(super) fn read(envelope: &str) -> Self {
        let Ok(json) = ijson::read(envelope.as_bytes()) else {
            return Self { envelope: envelope.to_owned(), ..Self::default() };
        };
        let unwrapped = a2a::find_envelope(&json, "").map_or(&json, |unwrapped| unwrapped.envelope);
        let text = |name| match unwrapped.get(name).map(Json::value) {
            Some(JsonValue::String(text)) => Some(text.as_ref().to_owned()),
            _ => None,
        };
        let turn_number = match unwrapped.get("turn_number").map(Json::value) {
            Some(JsonValue::Number(digits)) => {
                number::parse_integer(digits).ok().and_then(|turn| turn.try_into().ok())
            }
            _ => None,
        };
        Self {
            envelope: unwrapped.raw().to_owned(),
            original_text: text("original_text").unwrap_or_default(),
            sender_culture: text("sender_culture"),
            cultural_context: text("cultural_context"),
            conversation_id: text("conversation_id"),
            turn_number,
        }
    }
}

/// Which past messages to return.
#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    /// From this time on, as RFC 3339 text.
    pub since: Option<String>,
    /// Only messages after this position of the inbox.
    pub after: Option<u64>,
    /// Maximum number; servers have limits of their own.
    pub limit: Option<u32>,
}

/// One past message.
#[derive(Clone, Debug)]
pub struct PastMessage {
    /// Its position in the inbox, if it was received.
    pub position: Option<u64>,
    /// The server's id for it.
    pub trace_id: String,
    /// The sender.
    pub sender_id: String,
    /// The receiver.
    pub receiver_id: Option<String>,
    /// When the server accepted it.
    pub timestamp: Option<String>,
    /// The contents.
    pub contents: EnvelopeContents,
    raw: Box<RawValue>,
}

#[derive(Deserialize)]
struct HistoryEntry {
    id: Option<u64>,
    trace_id: String,
    sender_id: String,
    receiver_id: Option<String>,
    envelope: Box<RawValue>,
    timestamp: Option<String>,
}

impl HistoryFilter {
    /// The query parameters.
    pub(super) fn query(&self) -> [(&'static str, Option<String>); 3] {
        [
            ("since", self.since.clone()),
            ("after", self.after.map(|after| after.to_string())),
            ("limit", self.limit.map(|limit| limit.to_string())),
        ]
    }
}

impl PastMessage {
    pub(super) fn read(raw: Box<RawValue>) -> Result<Self, CallError> {
        let wire: HistoryEntry = json::parse(raw.get().as_bytes())?;
        Ok(Self {
            position: wire.id,
            trace_id: wire.trace_id,
            sender_id: wire.sender_id,
            receiver_id: wire.receiver_id,
            timestamp: wire.timestamp,
            contents: EnvelopeContents::read(wire.envelope.get()),
            raw,
        })
    }

    /// The whole entry as received: JSON text.
    pub fn raw(&self) -> &RawValue {
        &self.raw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_becomes_the_envelope_of_the_specification() {
        let mut spec = EnvelopeSpec::new("alice@chorus", "zh-CN", "下午一起喝杯咖啡?");
        let plain = r#"{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"下午一起喝杯咖啡?","sender_culture":"zh-CN"}"#;
        assert_eq!(spec.build().expect("an envelope").as_str(), plain);
        spec.conversation_id = Some("c-1".to_owned());
        spec.turn_number = Some(7);
        let envelope = spec.build().expect("an envelope");
        assert!(envelope.as_str().ends_with(r#""conversation_id":"c-1","turn_number":7}"#));
    }

    #[test]
    fn an_envelope_that_a_server_would_refuse_is_not_sent() {
        let good = EnvelopeSpec::new("alice@chorus", "en", "Hello!");
        let mut specs = vec![
            EnvelopeSpec::new("alice", "en", "Hello!"),
            EnvelopeSpec::new("alice@chorus", "english", "Hello!"),
            EnvelopeSpec::new("alice@chorus", "en", ""),
        ];
        specs.push(EnvelopeSpec { cultural_context: Some("short".to_owned()), ..good.clone() });
        specs.push(EnvelopeSpec { turn_number: Some(0), ..good });
        for spec in specs {
            let error = spec.build().expect_err("an invalid envelope");
            assert!(matches!(error, CallError::Refused { status: 400, .. }), "{spec:?}");
        }
    }

    #[test]
    fn an_envelope_may_come_in_an_a2a_message() {
        let part = r#"{"data":{"chorus_version":"0.4","sender_id":"a@b","original_text":"x","sender_culture":"en"},"mediaType":"application/vnd.chorus.envelope+json"}"#;
        let wrapped = format!(r#"{{"role":"ROLE_USER","parts":[{part}],"messageId":"1"}}"#);
        assert_eq!(ValidEnvelope::read(&wrapped).expect("an envelope").as_str(), wrapped);
        let twice = format!(r#"{{"parts":[{part},{part}]}}"#);
        assert!(ValidEnvelope::read(&twice).is_err());
    }

    #[test]
    fn a_message_is_kept_on_one_line_and_read_in_part() {
        let data = "{\"trace_id\":\"t\",\n\"sender_id\":\"a@b\",\"envelope\":{\"original_text\":\"x\\ny\",\"turn_number\":2.0},\"verified\":false}";
        let message = Message::read(Some(7), data.to_owned()).expect("a message");
        assert_eq!((message.position, message.verified), (Some(7), false));
        assert_eq!(message.contents.original_text, "x\ny");
        assert_eq!(message.contents.turn_number, Some(2));
        assert!(!message.raw().get().contains('\n'));
        assert!(Message::read(None, "{}".to_owned()).is_err());
    }

    #[test]
    fn both_a2a_shapes_are_unwrapped() {
        let envelope = r#"{"chorus_version":"0.4","original_text":"x"}"#;
        for part in [
            format!(r#"{{"data":{envelope},"mediaType":"application/vnd.chorus.envelope+json"}}"#),
            format!(
                r#"{{"kind":"data","data":{envelope},"metadata":{{"mediaType":"application/vnd.chorus.envelope+json"}}}}"#
            ),
        ] {
            let contents = EnvelopeContents::read(&format!(r#"{{"parts":[{part}]}}"#));
            assert_eq!(
                (contents.envelope.as_str(), contents.original_text.as_str()),
                (envelope, "x")
            );
        }
    }
}
