//! A message as its receiver gets it.

use rialto_core::number;
use rialto_protocols::kit::ijson::{self, Json, JsonValue};
use rialto_protocols::kit::sse;
use rialto_protocols::relay::wire::a2a;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::response::from_json;
use crate::call::CallError;

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
}

impl Message {
    /// Parses the data of a `message` event.
    pub(super) fn read(position: Option<u64>, data: String) -> Result<Self, CallError> {
        let mut bytes = data.into_bytes();
        // In JSON, line breaks occur only between tokens, where a space means the same.
        sse::replace_newlines(&mut bytes);
        let wire: MessageEvent = from_json(&bytes)?;
        Ok(Self {
            position,
            trace_id: wire.trace_id,
            sender_id: wire.sender_id,
            timestamp: wire.timestamp,
            verified: wire.verified.unwrap_or(true),
            contents: EnvelopeContents::read(wire.envelope.get()),
            raw: from_json(&bytes)?,
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

#[cfg(test)]
mod tests {
    use super::*;

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
