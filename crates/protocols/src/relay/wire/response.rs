//! The response envelope, which is the form of every answer of this protocol, and the delivery report
//! of a message, as its sender gets it.
//!
//! Answers are written by hand from JSON texts, since sends are answered tens of thousands of times
//! a second.

use std::borrow::Cow;

use rialto_core::time::Timestamp;

use super::error::{Code, InvalidBody};
use crate::kit::rfc3339;

/// Capacity for what surrounds the data.
const AROUND: usize = 96;

/// A successful request. `data` is JSON text.
pub fn success_response(data: &str, at: Timestamp) -> Vec<u8> {
    success_response_with(at, data.len(), |out| out.extend_from_slice(data.as_bytes()))
}

/// A successful request whose data is written by the caller, in about `size` bytes.
pub fn success_response_with(
    at: Timestamp,
    size: usize,
    data: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(AROUND + size);
    out.extend_from_slice(b"{\"success\":true,\"data\":");
    data(&mut out);
    metadata(&mut out, at, None);
    out
}

/// One page of a list; `next_cursor` leads to the next page, if there is one.
pub fn page_response(data: &str, next_cursor: Option<&str>, at: Timestamp) -> Vec<u8> {
    let mut out = Vec::with_capacity(AROUND + data.len() + next_cursor.map_or(0, str::len));
    out.extend_from_slice(b"{\"success\":true,\"data\":");
    out.extend_from_slice(data.as_bytes());
    metadata(&mut out, at, next_cursor);
    out
}

/// A failed request, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status; the code's own unless a caller sets another.
    pub status: u16,
    /// What went wrong.
    pub code: Code,
    /// The same as text for people.
    pub message: Cow<'static, str>,
    /// The wrong field.
    pub field: Option<Box<str>>,
    /// What to do about it.
    pub hint: Option<Cow<'static, str>>,
    /// JSON text that would be valid.
    pub example: Option<Cow<'static, str>>,
    /// Additional JSON text, such as [`REJECTED`].
    pub data: Option<Box<str>>,
    /// When to retry.
    pub retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure with its code's status and only a message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status: code.status(),
            code,
            message: message.into(),
            field: None,
            hint: None,
            example: None,
            data: None,
            retry_after_seconds: None,
        }
    }

    /// The body of the answer.
    pub fn write(&self, at: Timestamp) -> Vec<u8> {
        let texts = [self.example.as_deref(), self.data.as_deref(), self.hint.as_deref()];
        let extra: usize = texts.into_iter().flatten().map(str::len).sum();
        let mut out = Vec::with_capacity(AROUND * 2 + self.message.len() + extra);
        out.extend_from_slice(b"{\"success\":false,\"error\":{\"code\":");
        write_json_string(&mut out, self.code.as_str());
        out.extend_from_slice(b",\"message\":");
        write_json_string(&mut out, &self.message);
        out.extend_from_slice(b",\"retryable\":");
        out.extend_from_slice(if self.code.is_retryable() { b"true" } else { b"false" });
        if let Some(seconds) = self.retry_after_seconds {
            out.extend_from_slice(b",\"retry_after_seconds\":");
            out.extend_from_slice(seconds.to_string().as_bytes());
        }
        for (name, value) in [("field", self.field.as_deref()), ("hint", self.hint.as_deref())] {
            let Some(value) = value else { continue };
            out.push(b',');
            write_json_string(&mut out, name);
            out.push(b':');
            write_json_string(&mut out, value);
        }
        if let Some(example) = &self.example {
            out.extend_from_slice(b",\"example\":");
            out.extend_from_slice(example.as_bytes());
        }
        out.push(b'}');
        if let Some(data) = &self.data {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.as_bytes());
        }
        metadata(&mut out, at, None);
        out
    }
}

/// An invalid body is refused with everything that helps to correct it.
impl From<InvalidBody> for Failure {
    fn from(bad: InvalidBody) -> Self {
        Self {
            field: Some(bad.field().into()),
            hint: bad.hint().map(|hint| Cow::Owned(hint.to_owned())),
            example: Some(Cow::Owned(bad.example().to_owned())),
            ..Self::new(Code::Validation, bad.message())
        }
    }
}

/// Writes a JSON string.
pub fn write_json_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("memory can be written to, and text is JSON");
}

/// Ends an answer.
fn metadata(out: &mut Vec<u8>, at: Timestamp, next_cursor: Option<&str>) {
    out.extend_from_slice(b",\"metadata\":{\"timestamp\":\"");
    out.extend_from_slice(&rfc3339::format_millis_bytes(at));
    out.push(b'"');
    if let Some(cursor) = next_cursor {
        out.extend_from_slice(b",\"next_cursor\":");
        write_json_string(out, cursor);
    }
    out.extend_from_slice(b"}}");
}

/// The data of a refused message: nothing was stored or attempted.
pub const REJECTED: &str = r#"{"delivery":"rejected"}"#;

/// How far a message got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome<'a> {
    /// Handed to an open inbox stream.
    Streamed,
    /// The receiver's endpoint accepted it and answered with this JSON object.
    Delivered {
        /// JSON text as received.
        reply: &'a str,
    },
    /// It waits for the receiver.
    Queued,
    /// The receiver's endpoint did not accept it.
    Failed {
        /// [`Code::AgentUnreachable`] or [`Code::Timeout`].
        code: Code,
        /// What happened, and what happens next.
        detail: &'a str,
    },
}

/// An accepted message, and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryReport<'a> {
    /// How far it got.
    pub outcome: DeliveryOutcome<'a>,
    /// The message's public id.
    pub trace_id: &'a str,
    /// Whether it is held back because two agents seem to be in a loop (R89).
    pub loop_guard: bool,
}

impl DeliveryReport<'_> {
    /// The outcome on the wire.
    pub fn as_str(&self) -> &'static str {
        match self.outcome {
            DeliveryOutcome::Streamed => "delivered_sse",
            DeliveryOutcome::Delivered { .. } => "delivered",
            DeliveryOutcome::Queued => "queued",
            DeliveryOutcome::Failed { .. } => "failed",
        }
    }

    /// The HTTP status: a failed delivery is not a failed request (D1).
    pub fn status(&self) -> u16 {
        if self.outcome == DeliveryOutcome::Queued { 202 } else { 200 }
    }

    /// The approximate number of bytes [`Self::write`] adds.
    pub fn size_hint(&self) -> usize {
        let extra = match self.outcome {
            DeliveryOutcome::Delivered { reply } => reply.len() + 24,
            DeliveryOutcome::Failed { detail, .. } => detail.len() + 64,
            DeliveryOutcome::Streamed | DeliveryOutcome::Queued => 0,
        };
        // Both names, the longest outcome, the loop guard's flag.
        self.trace_id.len() + extra + 64
    }

    /// Writes the report as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"delivery\":\"");
        out.extend_from_slice(self.as_str().as_bytes());
        out.push(b'"');
        match self.outcome {
            DeliveryOutcome::Delivered { reply } => {
                out.extend_from_slice(b",\"receiver_response\":");
                out.extend_from_slice(reply.as_bytes());
            }
            DeliveryOutcome::Failed { code, detail } => {
                out.extend_from_slice(b",\"error_code\":");
                write_json_string(out, code.as_str());
                out.extend_from_slice(b",\"detail\":");
                write_json_string(out, detail);
            }
            DeliveryOutcome::Streamed | DeliveryOutcome::Queued => {}
        }
        out.extend_from_slice(b",\"trace_id\":");
        write_json_string(out, self.trace_id);
        if self.loop_guard {
            out.extend_from_slice(b",\"loop_guard\":true");
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;
    use proptest::prelude::*;

    const AT: Timestamp = Timestamp(1_774_000_800_000);

    fn shown(body: Vec<u8>) -> String {
        String::from_utf8(body).expect("text")
    }

    #[test]
    fn a_success_has_data_and_a_time() {
        assert_eq!(
            shown(success_response("{}", AT)),
            r#"{"success":true,"data":{},"metadata":{"timestamp":"2026-03-20T10:00:00.000Z"}}"#
        );
        assert_eq!(
            shown(page_response("[1]", Some("a\"b"), AT)),
            r#"{"success":true,"data":[1],"metadata":{"timestamp":"2026-03-20T10:00:00.000Z","next_cursor":"a\"b"}}"#
        );
        assert_eq!(page_response("[]", None, AT), success_response("[]", AT));
    }

    #[test]
    fn the_buffer_of_an_answer_is_large_enough_from_the_start() {
        let data = "x".repeat(70);
        assert_eq!(success_response(&data, AT).capacity(), AROUND + 70);
    }

    #[test]
    fn a_failure_says_all_it_knows() {
        let plain = Failure::new(Code::NotFound, "no such path");
        assert_eq!(plain.status, 404);
        assert_eq!(
            shown(plain.write(AT)),
            r#"{"success":false,"error":{"code":"ERR_NOT_FOUND","message":"no such path","retryable":false},"metadata":{"timestamp":"2026-03-20T10:00:00.000Z"}}"#
        );
        let full = Failure {
            field: Some("/a".into()),
            hint: Some("do \"this\"".into()),
            example: Some(r#"{"a":1}"#.into()),
            data: Some(REJECTED.into()),
            retry_after_seconds: Some(7),
            ..Failure::new(Code::RateLimited, "slow\ndown")
        };
        assert_eq!(
            shown(full.write(AT)),
            r#"{"success":false,"error":{"code":"ERR_RATE_LIMITED","message":"slow\ndown","retryable":true,"retry_after_seconds":7,"field":"/a","hint":"do \"this\"","example":{"a":1}},"data":{"delivery":"rejected"},"metadata":{"timestamp":"2026-03-20T10:00:00.000Z"}}"#
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_field_and_example() {
        let bad = InvalidBody::from(ijson::read(b"{").expect_err("cut"));
        let failure = Failure::from(bad.with_hint("close it"));
        assert_eq!((failure.status, failure.code), (400, Code::Validation));
        assert_eq!(failure.message, "body is not valid JSON: unexpected end at byte 1");
        assert_eq!(failure.field.as_deref(), Some(""));
        assert_eq!(failure.hint.as_deref(), Some("close it"));
        assert!(failure.example.is_some());
    }

    proptest! {
        #[test]
        fn every_failure_is_json(message in any::<String>(), hint in any::<String>()) {
            let mut failure = Failure::new(Code::Validation, message);
            failure.hint = Some(hint.into());
            prop_assert!(ijson::read(&failure.write(AT)).is_ok());
        }
    }

    fn told(outcome: DeliveryOutcome<'_>) -> (u16, String) {
        let delivery = DeliveryReport { outcome, trace_id: "t-1", loop_guard: false };
        let mut out = Vec::with_capacity(delivery.size_hint());
        delivery.write(&mut out);
        assert_eq!(out.capacity(), delivery.size_hint(), "the size was enough");
        (delivery.status(), String::from_utf8(out).expect("text"))
    }

    #[test]
    fn every_outcome_is_told_as_the_book_has_it() {
        let presented = r#"{"delivery":"delivered_sse","trace_id":"t-1"}"#;
        assert_eq!(told(DeliveryOutcome::Streamed), (200, presented.to_owned()));
        let queued = r#"{"delivery":"queued","trace_id":"t-1"}"#;
        assert_eq!(told(DeliveryOutcome::Queued), (202, queued.to_owned()));
        let delivered =
            r#"{"delivery":"delivered","receiver_response":{ "status":"ok" },"trace_id":"t-1"}"#;
        let outcome = DeliveryOutcome::Delivered { reply: r#"{ "status":"ok" }"# };
        assert_eq!(told(outcome), (200, delivered.to_owned()));
        let failed = r#"{"delivery":"failed","error_code":"ERR_TIMEOUT","detail":"no \"answer\"","trace_id":"t-1"}"#;
        let outcome = DeliveryOutcome::Failed { code: Code::Timeout, detail: "no \"answer\"" };
        assert_eq!(told(outcome), (200, failed.to_owned()));
    }

    #[test]
    fn a_guarded_message_says_so() {
        let mut out = Vec::new();
        DeliveryReport { outcome: DeliveryOutcome::Queued, trace_id: "t", loop_guard: true }
            .write(&mut out);
        assert_eq!(out, br#"{"delivery":"queued","trace_id":"t","loop_guard":true}"#);
    }
}
