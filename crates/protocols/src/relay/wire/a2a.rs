//! Envelopes inside A2A messages: unwrapped on arrival, wrapped for receivers that ask for it.
//!
//! The envelope text is unchanged; A2A only wraps it.

use std::borrow::Cow;

use super::response::write_json_string;
use crate::kit::fields::Malformed;
use crate::kit::ijson::{Json, JsonValue};

/// The media type of an envelope.
pub const MEDIA_TYPE: &str = "application/vnd.chorus.envelope+json";

/// How a receiver wants its envelopes wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnvelopeFormat {
    /// A2A 1.0: the members of a part tell its type.
    A2a10,
    /// A2A 0.3: `kind` tells the type of a part.
    A2a03,
}

impl EnvelopeFormat {
    /// The format with this text.
    pub fn read(text: &str) -> Option<Self> {
        [Self::A2a10, Self::A2a03].into_iter().find(|format| format.as_str() == text)
    }

    /// Its value in `envelope_format`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::A2a10 => "a2a-1.0",
            Self::A2a03 => "a2a-0.3",
        }
    }
}

/// The envelope in a body, perhaps inside an A2A message.
#[derive(Clone, Debug)]
pub struct EnvelopeLocation<'a, 'b, 'c> {
    /// The envelope itself.
    pub envelope: &'b Json<'a>,
    /// The JSON pointer to it.
    pub pointer: Cow<'c, str>,
}

/// Finds the envelope at the JSON pointer `at`, inside an A2A message if there is one: the message
/// itself, the request that sends one, or its data part alone.
pub fn find_envelope<'a, 'b, 'c>(
    json: &'b Json<'a>,
    at: &'c str,
) -> Result<EnvelopeLocation<'a, 'b, 'c>, Malformed> {
    // A plain envelope may have members of these names too: unknown members are allowed.
    if json.get("chorus_version").is_some() {
        return Ok(EnvelopeLocation { envelope: json, pointer: Cow::Borrowed(at) });
    }
    let Some((parts, path)) = parts(json) else {
        return Ok(match data(json) {
            Some((envelope, path)) => {
                EnvelopeLocation { envelope, pointer: Cow::Owned(format!("{at}{path}")) }
            }
            None => EnvelopeLocation { envelope: json, pointer: Cow::Borrowed(at) },
        });
    };
    let mut found = parts.iter().enumerate().filter_map(|(n, part)| Some((n, data(part)?)));
    let fail = |how_many: &str| Malformed {
        field: format!("{at}{path}"),
        message: format!("parts must hold exactly one part of {MEDIA_TYPE}, and there {how_many}"),
    };
    let (n, (envelope, inside)) = found.next().ok_or_else(|| fail("is none"))?;
    match found.next() {
        None => Ok(EnvelopeLocation {
            envelope,
            pointer: Cow::Owned(format!("{at}{path}/{n}{inside}")),
        }),
        Some(_) => Err(fail("are several")),
    }
}

/// The parts of an A2A message and their place: in the message, or in the parameters of a
/// `SendMessage` request, with or without the JSON-RPC request around them.
fn parts<'a, 'b>(json: &'b Json<'a>) -> Option<(&'b [Json<'a>], &'static str)> {
    let message = json.get("message").map(|message| (message, "/message/parts"));
    let request = || Some((json.get("params")?.get("message")?, "/params/message/parts"));
    let inner = message.or_else(request);
    [Some((json, "/parts")), inner].into_iter().flatten().find_map(|(message, path)| match message
        .get("parts")
        .map(Json::value)
    {
        Some(JsonValue::Array(parts)) => Some((parts.as_slice(), path)),
        _ => None,
    })
}

/// The envelope in a part that declares one, and its place in the part. The media type is a member
/// of the part in A2A 1.0, and is in the metadata in 0.3, which has no such member.
fn data<'a, 'b>(part: &'b Json<'a>) -> Option<(&'b Json<'a>, &'static str)> {
    let own = part.get("mediaType");
    let declared = own.or_else(|| part.get("metadata")?.get("mediaType"))?;
    let JsonValue::String(declared) = declared.value() else { return None };
    let essence = declared.split(';').next().unwrap_or_default().trim();
    let data = part.get("data").filter(|_| essence.eq_ignore_ascii_case(MEDIA_TYPE))?;
    // A2A over protocol buffers nests the data of a data part one level deeper.
    let inner = data.get("data").filter(|_| data.get("chorus_version").is_none());
    Some(inner.map_or((data, "/data"), |inner| (inner, "/data/data")))
}

/// Writes an envelope, wrapped if a format is given. `message_id` is the id of the A2A message.
pub fn write_envelope(
    out: &mut Vec<u8>,
    envelope: &str,
    format: Option<EnvelopeFormat>,
    message_id: &str,
) {
    let Some(format) = format else {
        out.extend_from_slice(envelope.as_bytes());
        return;
    };
    let (kind, role, part) = match format {
        EnvelopeFormat::A2a10 => ("", "ROLE_USER", ""),
        EnvelopeFormat::A2a03 => (r#""kind":"message","#, "user", r#""kind":"data","#),
    };
    let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
    for piece in ["{", kind, r#""role":""#, role, r#"","parts":[{"#, part, r#""data":"#, envelope] {
        put(piece);
    }
    match format {
        EnvelopeFormat::A2a10 => put(",\"mediaType\":\""),
        EnvelopeFormat::A2a03 => put(",\"metadata\":{\"mediaType\":\""),
    }
    put(MEDIA_TYPE);
    put(if format == EnvelopeFormat::A2a10 { "\"}]" } else { "\"}}]" });
    put(",\"messageId\":");
    write_json_string(out, message_id);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;
    use proptest::prelude::*;

    const ENVELOPE: &str = r#"{"chorus_version":"0.4", "x":[1.0]}"#;

    fn unwrapped(body: &str) -> Result<(String, String), String> {
        let json = ijson::read(body.as_bytes()).expect(body);
        match find_envelope(&json, "/envelope") {
            Ok(inner) => Ok((inner.envelope.raw().to_owned(), inner.pointer.into_owned())),
            Err(malformed) => Err(format!("{}: {malformed}", malformed.field)),
        }
    }

    fn message(parts: &[&str]) -> String {
        format!(r#"{{"messageId":"m","role":"user","parts":[{}]}}"#, parts.join(","))
    }

    fn part_1_0() -> String {
        format!(r#"{{"data":{ENVELOPE},"mediaType":"{MEDIA_TYPE}"}}"#)
    }

    fn part_0_3() -> String {
        format!(r#"{{"kind":"data","data":{ENVELOPE},"metadata":{{"mediaType":"{MEDIA_TYPE}"}}}}"#)
    }

    #[test]
    fn both_shapes_are_unwrapped() {
        let talk = r#"{"text":"hello"}"#;
        for part in [part_1_0(), part_0_3()] {
            let first = Ok((ENVELOPE.to_owned(), "/envelope/parts/0/data".to_owned()));
            assert_eq!(unwrapped(&message(&[&part])), first);
            let second = Ok((ENVELOPE.to_owned(), "/envelope/parts/1/data".to_owned()));
            assert_eq!(unwrapped(&message(&[talk, &part])), second);
        }
        let loud =
            part_1_0().replace(MEDIA_TYPE, "Application/vnd.chorus.envelope+JSON; charset=utf-8");
        assert!(unwrapped(&message(&[&loud])).is_ok());
    }

    #[test]
    fn a_message_in_the_request_that_sends_it_and_a_data_part_alone_are_unwrapped() {
        let (message, part) =
            (message(&[r#"{"text":"hi","mediaType":"text/plain"}"#, &part_1_0()]), part_1_0());
        for (wrapped, at) in [
            (format!(r#"{{"message":{message}}}"#), "/envelope/message/parts/1/data"),
            (
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{message}}}}}"#
                ),
                "/envelope/params/message/parts/1/data",
            ),
            (part.clone(), "/envelope/data"),
            (part_0_3(), "/envelope/data"),
            (part.replace(ENVELOPE, &format!(r#"{{"data":{ENVELOPE}}}"#)), "/envelope/data/data"),
        ] {
            assert_eq!(unwrapped(&wrapped), Ok((ENVELOPE.to_owned(), at.to_owned())), "{wrapped}");
        }
        let two = format!(r#"{{"message":{{"parts":[{part},{part}]}}}}"#);
        let refused = unwrapped(&two).expect_err("two of them");
        assert!(refused.starts_with("/envelope/message/parts: "), "{refused}");
    }

    #[test]
    fn a_message_holds_exactly_one_envelope() {
        let wrong = |how_many| {
            Err(format!(
                "/envelope/parts: parts must hold exactly one part of {MEDIA_TYPE}, and there {how_many}"
            ))
        };
        assert_eq!(unwrapped(&message(&[&part_1_0(), &part_0_3()])), wrong("are several"));
        assert_eq!(unwrapped(&message(&[])), wrong("is none"));
        assert_eq!(
            unwrapped(&message(&[r#"{"data":{},"mediaType":"a/b"}"#, "7"])),
            wrong("is none")
        );
    }

    #[test]
    fn a_plain_envelope_is_left_as_it_is() {
        let own = r#"{"chorus_version":"0.4","parts":[]}"#;
        for plain in [
            ENVELOPE,
            own,
            "{}",
            "[]",
            "7",
            r#"{"parts":7}"#,
            r#"{"message":"hi"}"#,
            r#"{"params":{"message":{}}}"#,
            r#"{"data":{"a":1}}"#,
        ] {
            assert_eq!(unwrapped(plain), Ok((plain.to_owned(), "/envelope".to_owned())));
        }
    }

    #[test]
    fn formats_are_read_as_they_are_written() {
        for format in [EnvelopeFormat::A2a10, EnvelopeFormat::A2a03] {
            assert_eq!(EnvelopeFormat::read(format.as_str()), Some(format));
        }
        assert_eq!(EnvelopeFormat::read("a2a-0.2"), None);
    }

    #[test]
    fn wrapped_envelopes_look_like_their_version() {
        let wrapped = |format| {
            let mut out = Vec::new();
            write_envelope(&mut out, "{}", format, "m\"1");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(wrapped(None), "{}");
        assert_eq!(
            wrapped(Some(EnvelopeFormat::A2a10)),
            r#"{"role":"ROLE_USER","parts":[{"data":{},"mediaType":"application/vnd.chorus.envelope+json"}],"messageId":"m\"1"}"#
        );
        assert_eq!(
            wrapped(Some(EnvelopeFormat::A2a03)),
            r#"{"kind":"message","role":"user","parts":[{"kind":"data","data":{},"metadata":{"mediaType":"application/vnd.chorus.envelope+json"}}],"messageId":"m\"1"}"#
        );
    }

    proptest! {
        #[test]
        fn what_was_wrapped_is_unwrapped_to_the_same_text(said in any::<String>(), id in any::<String>(), old in any::<bool>()) {
            let said = serde_json::to_string(&said).expect("a string");
            let envelope = format!("{{ \"chorus_version\" : \"0.4\",\n\"original_text\":{said}}}");
            let mut out = Vec::new();
            let format = if old { EnvelopeFormat::A2a03 } else { EnvelopeFormat::A2a10 };
            write_envelope(&mut out, &envelope, Some(format), &id);
            let (inner, _) = unwrapped(std::str::from_utf8(&out).expect("text")).expect("wrapped");
            prop_assert_eq!(inner, envelope);
        }
    }
}
