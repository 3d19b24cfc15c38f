//! The receive endpoint's request, `{"envelope":…}`: written for agents, read by the hub.

use super::a2a::{self, EnvelopeFormat};
use super::bad::InvalidBody;
use super::envelope::{Envelope, InvalidEnvelope};
use super::event::Annotations;
use crate::kit::fields::Fields;
use crate::kit::ijson::Json;

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
    use crate::relay::codes::Code;

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
