//! The receive endpoint's answer: `{"status":"ok"}`, an error, or a stream of events.
//!
//! If a receiver answers with any JSON object, it was reached (D13). The object goes back to the
//! sender unchanged. A streamed reply reaches the sender as `chunk`, then `done` or `error`, then
//! `delivery`. The hub parses the receiver's events and writes its own frames (R81), so nothing a
//! receiver writes can pass as the hub's.

use super::error::Code;
use super::response::{DeliveryReport, write_json_string};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::sse::{self, Event};

/// The answer of a receiver without an error.
pub const OK: &str = r#"{"status":"ok"}"#;

/// A receiver's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    raw: &'a str,
    status: ReplyStatus,
}

/// The part of an answer that the protocol defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// It accepted the envelope.
    Ok,
    /// It could not use the envelope.
    Error {
        /// One of the protocol's codes, or one of the receiver's own.
        code: String,
        /// Its description of the error.
        detail: String,
    },
    /// Anything the protocol does not define.
    Other,
}

impl<'a> Reply<'a> {
    /// Reads an answer; `None` if it is not a JSON object.
    pub fn read(body: &'a [u8]) -> Option<Self> {
        let json = ijson::read(body).ok()?;
        let JsonValue::Object(_) = json.value() else { return None };
        let member = |name| match json.get(name).map(Json::value) {
            Some(JsonValue::String(text)) => text.as_ref(),
            _ => "",
        };
        let said = match member("status") {
            "ok" => ReplyStatus::Ok,
            "error" => ReplyStatus::Error {
                code: member("error_code").to_owned(),
                detail: member("detail").to_owned(),
            },
            _ => ReplyStatus::Other,
        };
        Some(Self { raw: json.raw(), status: said })
    }

    /// The object as received.
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// The part of it that the protocol defines.
    pub fn status(&self) -> &ReplyStatus {
        &self.status
    }
}

/// Writes the answer of a receiver that cannot use the envelope.
pub fn write_error_reply(code: Code, detail: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(detail.len() + 80);
    out.extend_from_slice(br#"{"status":"error","error_code":"#);
    write_json_string(&mut out, code.as_str());
    out.extend_from_slice(br#","detail":"#);
    write_json_string(&mut out, detail);
    out.push(b'}');
    out
}

/// One event of a receiver's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyEvent {
    /// A piece of the reply's text.
    Chunk {
        /// The piece.
        text: String,
    },
    /// The receiver has finished.
    Done {
        /// The whole text.
        full_text: String,
        /// Its answer as an envelope: JSON text, if there is one.
        envelope: Option<String>,
    },
    /// The receiver has failed.
    Error {
        /// One of the protocol's codes, or one of its own.
        code: String,
        /// Its description of the error.
        message: String,
    },
}

impl ReplyEvent {
    /// Reads an event of a receiver's stream; `None` for events the protocol does not define. Data
    /// in another form is taken as the text itself.
    pub fn read(event: &Event) -> Option<Self> {
        let json = ijson::read(event.data.as_bytes()).ok();
        let member = |name: &str| json.as_ref().and_then(|json| json.get(name));
        let words = |name: &str| match member(name).map(Json::value) {
            Some(JsonValue::String(text)) => Some(text.as_ref().to_owned()),
            _ => None,
        };
        let is_object =
            json.as_ref().is_some_and(|json| matches!(json.value(), JsonValue::Object(_)));
        let otherwise = || if is_object { String::new() } else { event.data.clone() };
        match event.event.as_str() {
            "chunk" => Some(Self::Chunk { text: words("text").unwrap_or_else(otherwise) }),
            "done" => Some(Self::Done {
                full_text: words("full_text").unwrap_or_else(otherwise),
                envelope: member("envelope")
                    .filter(|json| matches!(json.value(), JsonValue::Object(_)))
                    .map(|json| json.raw().to_owned()),
            }),
            "error" => Some(Self::Error {
                code: words("code").unwrap_or_default(),
                message: words("message").unwrap_or_else(otherwise),
            }),
            _ => None,
        }
    }

    /// Appends the event as the sender gets it.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Chunk { text: piece } => {
                sse::begin_frame(out, None, "chunk");
                out.extend_from_slice(b"{\"text\":");
                write_json_string(out, piece);
            }
            Self::Done { full_text, envelope } => {
                sse::begin_frame(out, None, "done");
                out.extend_from_slice(b"{\"full_text\":");
                write_json_string(out, full_text);
                out.extend_from_slice(b",\"envelope\":");
                let start = out.len();
                out.extend_from_slice(envelope.as_deref().unwrap_or("null").as_bytes());
                sse::replace_newlines(&mut out[start..]);
            }
            Self::Error { code, message } => {
                sse::begin_frame(out, None, "error");
                out.extend_from_slice(b"{\"code\":");
                write_json_string(out, code);
                out.extend_from_slice(b",\"message\":");
                write_json_string(out, message);
            }
        }
        out.push(b'}');
        sse::end_frame(out);
    }
}

/// Appends the last event of a stream: the delivery report.
pub fn write_delivery_event(out: &mut Vec<u8>, delivery: &DeliveryReport<'_>) {
    sse::begin_frame(out, None, "delivery");
    let start = out.len();
    delivery.write(out);
    sse::replace_newlines(&mut out[start..]);
    sse::end_frame(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::wire::response::DeliveryOutcome;
    use proptest::prelude::*;

    #[test]
    fn any_object_is_an_answer() {
        let said = |body: &str| Reply::read(body.as_bytes()).map(|reply| reply.status);
        assert_eq!(said(" {\"status\":\"ok\"}\n"), Some(ReplyStatus::Ok));
        assert_eq!(said("{}"), Some(ReplyStatus::Other));
        assert_eq!(said(r#"{"status":1}"#), Some(ReplyStatus::Other));
        let empty = ReplyStatus::Error { code: String::new(), detail: String::new() };
        assert_eq!(said(r#"{"status":"error"}"#), Some(empty));
        for body in ["", "[]", "\"ok\"", "ok", "<html>", "null", "{\"a\":1"] {
            assert_eq!(said(body), None, "{body}");
        }
    }

    #[test]
    fn an_answer_is_kept_as_it_came() {
        let body = b" { \"status\" : \"ok\", \"n\":1.0 }\n";
        let reply = Reply::read(body).expect("an answer");
        assert_eq!(reply.raw(), "{ \"status\" : \"ok\", \"n\":1.0 }");
        assert_eq!(reply.status(), &ReplyStatus::Ok);
    }

    #[test]
    fn a_written_error_is_read_back() {
        let detail = "missing \"sender_culture\"\n";
        let body = write_error_reply(Code::InvalidEnvelope, detail);
        let said = Reply::read(&body).expect("an answer").status;
        let code = "INVALID_ENVELOPE".to_owned();
        assert_eq!(said, ReplyStatus::Error { code, detail: detail.to_owned() });
        assert_eq!(Reply::read(OK.as_bytes()).expect("an answer").status, ReplyStatus::Ok);
    }

    fn heard(name: &str, data: &str) -> Option<ReplyEvent> {
        ReplyEvent::read(&Event { id: None, event: name.to_owned(), data: data.to_owned() })
    }

    fn written(word: &ReplyEvent) -> String {
        let mut out = Vec::new();
        word.write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn words_are_written_as_the_book_has_them() {
        let chunk = ReplyEvent::Chunk { text: "a\nb".to_owned() };
        assert_eq!(written(&chunk), "event: chunk\ndata: {\"text\":\"a\\nb\"}\n\n");
        let done =
            ReplyEvent::Done { full_text: "ab".to_owned(), envelope: Some("{\n}".to_owned()) };
        let wanted = "event: done\ndata: {\"full_text\":\"ab\",\"envelope\":{ }}\n\n";
        assert_eq!(written(&done), wanted);
        let done = ReplyEvent::Done { full_text: String::new(), envelope: None };
        assert!(written(&done).contains(r#""envelope":null}"#));
        let error = ReplyEvent::Error { code: "X".to_owned(), message: "no".to_owned() };
        assert_eq!(written(&error), "event: error\ndata: {\"code\":\"X\",\"message\":\"no\"}\n\n");
        let mut out = Vec::new();
        let outcome = DeliveryOutcome::Delivered { reply: "{\r\n}" };
        write_delivery_event(
            &mut out,
            &DeliveryReport { outcome, trace_id: "t", loop_guard: false },
        );
        let wanted = "event: delivery\ndata: {\"delivery\":\"delivered\",\
                      \"receiver_response\":{  },\"trace_id\":\"t\"}\n\n";
        assert_eq!(String::from_utf8(out).expect("text"), wanted);
    }

    #[test]
    fn receivers_that_stream_plain_text_are_understood() {
        assert_eq!(heard("chunk", "hello"), Some(ReplyEvent::Chunk { text: "hello".to_owned() }));
        assert_eq!(heard("chunk", "[1]"), Some(ReplyEvent::Chunk { text: "[1]".to_owned() }));
        assert_eq!(heard("chunk", "{}"), Some(ReplyEvent::Chunk { text: String::new() }));
        let done = ReplyEvent::Done { full_text: "bye".to_owned(), envelope: None };
        assert_eq!(heard("done", "bye"), Some(done));
        let error = ReplyEvent::Error { code: String::new(), message: "broken".to_owned() };
        assert_eq!(heard("error", "broken"), Some(error));
        let odd = ReplyEvent::Done { full_text: "x".to_owned(), envelope: None };
        assert_eq!(heard("done", r#"{"full_text":"x","envelope":"no"}"#), Some(odd));
    }

    #[test]
    fn words_that_are_not_a_receivers_to_say_are_passed_over() {
        for name in ["delivery", "message", "connected", ""] {
            assert_eq!(heard(name, r#"{"delivery":"delivered"}"#), None);
        }
    }

    proptest! {
        #[test]
        fn what_is_said_again_is_what_was_said(a in any::<String>(), b in any::<String>(), which in 0..3) {
            let envelope = Some(format!("{{\"x\":{}}}", serde_json::to_string(&b).expect("text")));
            let word = match which {
                0 => ReplyEvent::Chunk { text: a },
                1 => ReplyEvent::Done { full_text: a, envelope },
                _ => ReplyEvent::Error { code: a, message: b },
            };
            let mut events = Vec::new();
            let stream = written(&word);
            sse::Parser::new(100_000).push(stream.as_bytes(), &mut events).expect("short");
            prop_assert_eq!(events.len(), 1);
            prop_assert_eq!(ReplyEvent::read(&events[0]), Some(word));
        }
    }
}
