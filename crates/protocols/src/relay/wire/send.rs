//! `POST /messages`: a receiver and an envelope for it.

use super::a2a;
use super::address::Address;
use super::envelope::Envelope;
use super::error::{FieldErrors, InvalidBody};
use super::response::write_json_string;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson::{Json, JsonValue};

/// Members that only an envelope has.
const OF_ENVELOPES: [&str; 5] =
    ["chorus_version", "sender_id", "original_text", "original_semantic", "sender_culture"];
/// Members that belong beside an envelope.
const OF_MESSAGES: [&str; 3] = ["receiver_id", "stream", "question"];

/// Marks what the hub writes for other parties.
const BRIDGE: &str = "bridge";

/// A message to be delivered.
#[derive(Clone, Debug)]
pub struct SendRequest<'a> {
    /// The receiver.
    pub receiver: Address<'a>,
    /// The envelope, unwrapped from an A2A message if it came in one.
    pub envelope: Envelope<'a>,
    /// Whether the sender wants the receiver's reply as a stream.
    pub stream: bool,
    /// Whether a worker asks its requester a question instead of sending a result.
    pub question: bool,
}

impl<'a> SendRequest<'a> {
    /// Reads a body; a receiver without host gets `default_host`.
    pub fn read(json: &'a Json<'_>, default_host: &str) -> Result<Self, InvalidBody> {
        let f = Fields::read(json, "")?;
        let mut faults = FieldErrors::default();
        let receiver = faults.collect(receiver(&f, default_host));
        let envelope = faults.collect(envelope(&f, json));
        let stream = faults.collect(f.flag("stream"));
        let question = faults.collect(f.flag("question"));
        match (receiver, envelope, stream, question) {
            (Some(receiver), Some(envelope), Some(stream), Some(question)) => {
                let (stream, question) = (stream.unwrap_or(false), question.unwrap_or(false));
                Ok(Self { receiver, envelope, stream, question })
            }
            _ => {
                let bad = faults.into_invalid_body();
                Err(if is_flat(&f) { bad.with_example(wrapped(json)) } else { bad })
            }
        }
    }
}

fn receiver<'b>(f: &Fields<'_, 'b>, default_host: &str) -> Result<Address<'b>, Malformed> {
    let text = f.required_text("receiver_id")?;
    Address::read(text, default_host).map_err(|bad| f.malformed("receiver_id", bad))
}

fn envelope<'b>(f: &Fields<'_, 'b>, body: &'b Json<'_>) -> Result<Envelope<'b>, InvalidBody> {
    let Some(given) = body.get("envelope").filter(|_| f.has_value("envelope")) else {
        let missing = InvalidBody::from(f.malformed("envelope", "is required"));
        if !is_flat(f) {
            return Err(missing);
        }
        return Err(missing.with_hint(
            "the envelope's fields are at the top level; move them into \"envelope\", next to \
             \"receiver_id\", as the example does with your own body",
        ));
    };
    let unwrapped = a2a::find_envelope(given, "/envelope")?;
    if unwrapped.envelope.get(BRIDGE).is_some() {
        let place = format!("{}/{BRIDGE}", unwrapped.pointer);
        let message = format!("{BRIDGE} is reserved for the hub; remove it");
        return Err(Malformed { field: place, message }.into());
    }
    Ok(Envelope::read(unwrapped.envelope, &unwrapped.pointer)?)
}

/// Whether the envelope's fields are at the top level of the body.
fn is_flat(f: &Fields<'_, '_>) -> bool {
    !f.has_value("envelope") && OF_ENVELOPES.iter().any(|name| f.has_value(name))
}

/// A flat body in its correct form: every member unchanged, in the right place.
fn wrapped(body: &Json<'_>) -> String {
    let JsonValue::Object(members) = body.value() else { return String::new() };
    let mut outer = Vec::from(b"{");
    let receiver = body.get("receiver_id").filter(|id| matches!(id.value(), JsonValue::String(_)));
    if receiver.is_none() {
        outer.extend_from_slice(br#""receiver_id":"bob@chorus","#);
    }
    let mut inner = Vec::new();
    let left_out = |name: &str| name == "envelope" || name == "receiver_id" && receiver.is_none();
    for (name, value) in members.iter().filter(|(name, _)| !left_out(name)) {
        let place = if OF_MESSAGES.contains(&name.as_ref()) { &mut outer } else { &mut inner };
        write_json_string(place, name);
        place.push(b':');
        place.extend_from_slice(value.raw().as_bytes());
        place.push(b',');
    }
    inner.pop();
    outer.extend_from_slice(b"\"envelope\":{");
    outer.extend_from_slice(&inner);
    outer.extend_from_slice(b"}}");
    String::from_utf8(outer).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;

    const ENVELOPE: &str = r#"{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"hi","sender_culture":"en"}"#;

    fn body(text: &str) -> Json<'_> {
        ijson::read(text.as_bytes()).expect(text)
    }

    fn refused(text: &str) -> InvalidBody {
        SendRequest::read(&body(text), "chorus").expect_err(text)
    }

    #[test]
    fn a_message_has_a_receiver_and_an_envelope() {
        let text = format!(r#"{{"receiver_id":"Bob","envelope":{ENVELOPE},"sender_id":"eve@x"}}"#);
        let json = body(&text);
        let send = SendRequest::read(&json, "chorus").expect("a message");
        assert_eq!(send.receiver.canonical(), "bob@chorus");
        assert_eq!(send.envelope.raw(), ENVELOPE);
        assert_eq!(send.envelope.sender.canonical(), "alice@chorus");
        assert!(!send.stream);
        let text = format!(r#"{{"receiver_id":"bob","envelope":{ENVELOPE},"stream":true}}"#);
        assert!(SendRequest::read(&body(&text), "chorus").expect("a message").stream);
    }

    #[test]
    fn both_are_required_and_everything_wrong_is_said_at_once() {
        let bad = refused(r#"{"stream":1}"#);
        let message = "/receiver_id: receiver_id is required; /envelope: envelope is required; \
                       /stream: stream must be true or false";
        assert_eq!(bad.message(), message);
        assert_eq!(bad.field(), "/receiver_id");
        let bad = refused(r#"{"receiver_id":"a@b@c","envelope":{"chorus_version":"0.4"}}"#);
        assert_eq!(bad.errors().len(), 4);
        assert_eq!(refused("[]").message(), "body must be a JSON object");
        assert_eq!(refused(r#"{"receiver_id":"b","envelope":7}"#).field(), "/envelope");
    }

    #[test]
    fn a_flat_envelope_is_shown_wrapped() {
        let flat = r#"{"receiver_id":"bob@chorus","chorus_version":"0.4","sender_id":"alice@chorus",
            "original_text":"h\u0069 \"you\"","sender_culture":"en","x\n":[1.0],"stream":false}"#;
        let bad = refused(flat);
        assert_eq!(bad.field(), "/envelope");
        assert!(bad.hint().expect("a hint").contains("envelope"));
        let wanted = r#"{"receiver_id":"bob@chorus","stream":false,"envelope":{"chorus_version":"0.4","sender_id":"alice@chorus","original_text":"h\u0069 \"you\"","sender_culture":"en","x\n":[1.0]}}"#;
        assert_eq!(bad.example(), wanted);
        assert!(
            SendRequest::read(&body(bad.example()), "chorus").is_ok(),
            "it can be sent as it is"
        );
    }

    #[test]
    fn a_bare_envelope_is_shown_wrapped_with_a_receiver() {
        let bad = refused(ENVELOPE);
        assert_eq!(bad.field(), "/receiver_id");
        let json = body(bad.example());
        assert_eq!(SendRequest::read(&json, "chorus").expect("a message").envelope.raw(), ENVELOPE);
        let none = ENVELOPE.replacen('{', r#"{"envelope":null,"receiver_id":7,"#, 1);
        assert!(SendRequest::read(&body(refused(&none).example()), "chorus").is_ok());
    }

    #[test]
    fn an_a2a_message_is_unwrapped_before_it_is_checked() {
        let wrap = |envelope: &str| {
            let mut out = Vec::new();
            a2a::write_envelope(&mut out, envelope, Some(a2a::EnvelopeFormat::A2a03), "m");
            let message = String::from_utf8(out).expect("text");
            format!(r#"{{"receiver_id":"bob","envelope":{message}}}"#)
        };
        let text = wrap(ENVELOPE);
        let json = body(&text);
        assert_eq!(SendRequest::read(&json, "chorus").expect("a message").envelope.raw(), ENVELOPE);
        let bad = refused(&wrap(r#"{"chorus_version":"0.3"}"#));
        assert_eq!(bad.field(), "/envelope/parts/0/data/chorus_version");
        let none = refused(r#"{"receiver_id":"bob","envelope":{"parts":[]}}"#);
        assert_eq!(none.field(), "/envelope/parts");
    }
}
