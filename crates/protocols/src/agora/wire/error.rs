//! An error that the hub answers with when it does not execute an envelope.

use std::borrow::Cow;

use super::codes::Code;
use super::examples;
use crate::kit::fields::Malformed;
use crate::kit::ijson::JsonError;
use crate::kit::jcs::CanonicalError;
use crate::kit::object::ObjectWriter;

/// Why an envelope was not executed. It becomes the payload of an ERROR of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error code.
    pub code: Code,
    /// The HTTP status: that of the code, except for 413, 415 and 507 (section 5).
    pub http_status: u16,
    /// The error as text for people.
    pub message: Cow<'static, str>,
    /// JSON pointer to the invalid member; empty for the whole body.
    pub field: Option<Box<str>>,
    /// What to do about it.
    pub hint: Option<Box<str>>,
    /// JSON text of a valid value.
    pub example: Option<&'static str>,
    /// Whether a retry can succeed.
    pub retryable: bool,
    /// How long to wait before a retry.
    pub retry_after_seconds: Option<u32>,
    /// The request it is about.
    pub request_id: Option<Box<str>>,
    /// The message that was not accepted.
    pub message_id: Option<Box<str>>,
}

impl Failure {
    /// A failure with its code's status and a message only.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            http_status: code.number(),
            message: message.into(),
            field: None,
            hint: None,
            example: None,
            retryable: code.is_retryable(),
            retry_after_seconds: None,
            request_id: None,
            message_id: None,
        }
    }

    /// 400 without a field, such as for a message in the wrong state.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    /// 400 for one field. `message` follows the field's name, as in "must be a number".
    pub fn bad_field(pointer: &str, message: &str) -> Self {
        let name = pointer.rsplit('/').next().unwrap_or_default();
        Malformed { field: pointer.to_owned(), message: format!("{name} {message}") }.into()
    }

    /// 401.
    pub fn unauthorized(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Unauthorized, message)
    }

    /// Code 400 with HTTP status 413.
    pub fn too_large() -> Self {
        Self { http_status: 413, ..Self::bad_request("an envelope has at most 1048576 bytes") }
    }

    /// Code 400 with HTTP status 415.
    pub fn encoded_body() -> Self {
        let message = "encoded bodies are not supported; remove Content-Encoding";
        Self { http_status: 415, ..Self::bad_request(message) }
    }

    /// 429 with the number of seconds to wait.
    pub fn rate_limited(message: impl Into<Cow<'static, str>>, retry_after_seconds: u32) -> Self {
        let retry_after_seconds = Some(retry_after_seconds);
        Self { retry_after_seconds, ..Self::new(Code::TooManyRequests, message) }
    }

    /// Code 503 with HTTP status 507: the disk is full.
    pub fn disk_full() -> Self {
        Self { http_status: 507, ..Self::new(Code::Unavailable, "the hub's disk is full") }
    }

    /// 500: an internal error. The log has the details under this id. Envelopes are executed at
    /// most once, so the same envelope may be sent again (R25).
    pub fn internal(error_id: &str) -> Self {
        let message = format!("internal error: {error_id}");
        Self { retryable: true, ..Self::new(Code::Internal, message) }
    }

    /// The same failure with a hint, unless it already has one.
    pub fn with_hint(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// The same failure, for one request.
    pub fn for_request(mut self, request_id: &str) -> Self {
        self.request_id = Some(request_id.into());
        self
    }

    /// The same failure in answer to one message, so that it differs from answers to others.
    pub fn in_answer_to(mut self, message_id: &str) -> Self {
        self.message_id = Some(message_id.into());
        self
    }

    /// The payload of the ERROR.
    pub fn payload(&self) -> String {
        ObjectWriter::new()
            .integer("code", i64::from(self.code.number()))
            .text("message", &self.message)
            .maybe_text("request_id", self.request_id.as_deref())
            .maybe_text("message_id", self.message_id.as_deref())
            .flag("retryable", self.retryable)
            .maybe_integer("retry_after_seconds", self.retry_after_seconds.map(i64::from))
            .maybe_text("hint", self.hint.as_deref())
            .maybe_text("field", self.field.as_deref())
            .maybe_raw("example", self.example)
            .finish()
    }
}

/// An invalid value is refused with everything that helps to correct it (C10). The message names
/// the field as people write it: `payload.cost`.
impl From<Malformed> for Failure {
    fn from(bad: Malformed) -> Self {
        let last = bad.field.rsplit('/').next().unwrap_or_default();
        let message = match bad.message.strip_prefix(&unescaped(last)) {
            Some(rest) if !bad.field.is_empty() => {
                let names: Vec<_> = bad.field.split('/').skip(1).map(unescaped).collect();
                names.join(".") + rest
            }
            _ => bad.message,
        };
        let example = Some(examples::example_for(&bad.field));
        Self { field: Some(bad.field.into()), example, ..Self::bad_request(message) }
    }
}

impl From<JsonError> for Failure {
    fn from(bad: JsonError) -> Self {
        Malformed::from(bad).into()
    }
}

impl From<CanonicalError> for Failure {
    fn from(bad: CanonicalError) -> Self {
        let hint = "numbers are doubles: write larger ones as text, or with a fraction or exponent";
        Self::from(Malformed::from(bad)).with_hint(hint)
    }
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::ijson;
    use proptest::prelude::*;

    #[test]
    fn a_bad_field_is_named_pointed_at_and_shown_right() {
        let failure = Failure::bad_field("/payload/cost", "must be a number");
        assert_eq!((failure.code, failure.http_status), (Code::BadRequest, 400));
        assert_eq!(failure.message, "payload.cost must be a number");
        assert_eq!(failure.field.as_deref(), Some("/payload/cost"));
        let example = failure.example.expect("an example");
        assert!(ijson::read(example.as_bytes()).expect("JSON").get("cost").is_some());
        let whole = Failure::from(ijson::read(b"{").expect_err("cut"));
        assert_eq!(whole.message, "body is not valid JSON: unexpected end at byte 1");
        assert_eq!(whole.field.as_deref(), Some(""));
    }

    #[test]
    fn the_payload_says_all_that_is_known() {
        let plain = Failure::unauthorized("stale timestamp").payload();
        assert_eq!(plain, r#"{"code":401,"message":"stale timestamp","retryable":false}"#);
        let full = Failure {
            hint: Some("slow \"down\"".into()),
            field: Some("/id".into()),
            example: Some(r#"{"id":"x"}"#),
            ..Failure::rate_limited("too many", 7).for_request("r-1")
        };
        assert_eq!(
            full.payload(),
            r#"{"code":429,"message":"too many","request_id":"r-1","retryable":true,"retry_after_seconds":7,"hint":"slow \"down\"","field":"/id","example":{"id":"x"}}"#
        );
    }

    #[test]
    fn three_statuses_differ_from_their_codes() {
        for (failure, http, code) in [
            (Failure::too_large(), 413, 400),
            (Failure::encoded_body(), 415, 400),
            (Failure::disk_full(), 507, 503),
        ] {
            assert_eq!((failure.http_status, failure.code.number()), (http, code));
        }
    }

    proptest! {
        #[test]
        fn every_payload_is_json(message in any::<String>(), field in any::<String>()) {
            let failure = Failure::from(Malformed { field, message });
            prop_assert!(ijson::read(failure.payload().as_bytes()).is_ok());
        }
    }
}
