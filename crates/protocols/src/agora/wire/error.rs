//! Errors: the eight codes of an ERROR (spec section 5), the failures that the hub answers with
//! when it does not execute an envelope, and the valid examples that they show.

use std::borrow::Cow;

use crate::kit::fields::Malformed;
use crate::kit::ijson::JsonError;
use crate::kit::jcs::CanonicalError;
use crate::kit::object::ObjectWriter;

/// An error code, with the numbers of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// 400: malformed, in the wrong state, or contradictory.
    BadRequest,
    /// 401: not proven, not fresh, blocked, or not a party.
    Unauthorized,
    /// 402: too few credits, or another currency.
    PaymentRequired,
    /// 404: no agent supports the resource, or no agent has the key.
    NotFound,
    /// 408: too late.
    Timeout,
    /// 429: too many requests.
    TooManyRequests,
    /// 500: a party failed.
    Internal,
    /// 503: a party is unavailable.
    Unavailable,
}

impl Code {
    /// All codes.
    pub const ALL: [Self; 8] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::PaymentRequired,
        Self::NotFound,
        Self::Timeout,
        Self::TooManyRequests,
        Self::Internal,
        Self::Unavailable,
    ];

    /// The number on the wire; also the HTTP status of an error (R68).
    pub const fn number(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::PaymentRequired => 402,
            Self::NotFound => 404,
            Self::Timeout => 408,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::Unavailable => 503,
        }
    }

    /// Whether a retry can succeed when only the envelope's id changes. For 500 this is unknown, so
    /// the answer is no.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Timeout | Self::TooManyRequests | Self::Unavailable)
    }

    /// The code with this number. Agents also use other numbers; each of those means that the agent
    /// failed (R59).
    pub fn read(number: i64) -> Self {
        let same = |code: &Self| i64::from(code.number()) == number;
        Self::ALL.into_iter().find(same).unwrap_or(Self::Internal)
    }
}

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
        let example = Some(example_for(&bad.field));
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

/// A valid envelope, shown in errors: the first of the published vectors.
pub const ENVELOPE_EXAMPLE: &str = r#"{"protocol":"agora/1.0","id":"11111111-1111-1111-1111-111111111111","timestamp":"2024-01-01T00:00:00Z","type":"REQUEST","sender":{"id":"OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y","signature":"jkGO8vJUoXiBmJyCt66-YXwFHLxJVraS9BFzoc6EMvVS6QiMIo88-99oKdbowynbqg7OmfkuZ0IEMb0Bn25nBw"},"payload":{"resource":"agora:search:v1","params":{"q":"weather tokyo","max_results":3},"budget":{"max":5},"timeout":10000}}"#;
/// The member `sender`.
const SENDER_EXAMPLE: &str = r#"{"sender":{"id":"did:key:z6MkiK6iPnt423Ycuhg83yfJ8PtX2HjH1Hqh3MywFmA2gB3s","signature":"jkGO8vJUoXiBmJyCt66-YXwFHLxJVraS9BFzoc6EMvVS6QiMIo88-99oKdbowynbqg7OmfkuZ0IEMb0Bn25nBw"}}"#;
/// The member `recipient`.
const RECIPIENT_EXAMPLE: &str =
    r#"{"recipient":{"id":"did:key:z6MkuXNzG7N3BdUfY3jPn8hkVYDrmV8scBpWfqMT7zytQyDP"}}"#;
/// The member `capabilities`.
const CAPABILITIES_EXAMPLE: &str = r#"{"capabilities":[{"resource":"agora:search:v1","price":0.5,"description":"Searches the web."}]}"#;

/// An example for the named field, to be inserted at its place. Its form is valid, but a signature
/// can only be made with the key.
fn example_for(field: &str) -> &'static str {
    match field {
        "/protocol" => r#"{"protocol":"agora/1.0"}"#,
        "/id" => r#"{"id":"11111111-1111-4111-8111-111111111111"}"#,
        "/timestamp" => r#"{"timestamp":"2024-01-01T00:00:00Z"}"#,
        "/type" => r#"{"type":"REQUEST"}"#,
        "/payload" => r#"{"payload":{"resource":"agora:search:v1","params":{"q":"weather"}}}"#,
        "/up_to" => r#"{"up_to":42}"#,
        _ if field.starts_with("/sender") => SENDER_EXAMPLE,
        _ if field.starts_with("/recipient") => RECIPIENT_EXAMPLE,
        _ => in_payload(field),
    }
}

fn in_payload(field: &str) -> &'static str {
    match field.strip_prefix("/payload/").unwrap_or_default() {
        "resource" => r#"{"resource":"agora:search:v1"}"#,
        "params" => r#"{"params":{"q":"weather tokyo"}}"#,
        "timeout" => r#"{"timeout":10000}"#,
        "request_id" => r#"{"request_id":"11111111-1111-1111-1111-111111111111"}"#,
        "offer_id" => r#"{"offer_id":"22222222-2222-2222-2222-222222222222"}"#,
        "payment_proof" => r#"{"payment_proof":"tx-1"}"#,
        "cost" => r#"{"cost":5.25}"#,
        "ttl" => r#"{"ttl":60000}"#,
        "eta" => r#"{"eta":10000}"#,
        "status" => r#"{"status":"success"}"#,
        "data" => r#"{"data":{"text":"It is 12:00."}}"#,
        "final" => r#"{"final":true}"#,
        "code" => r#"{"code":500}"#,
        "message" => r#"{"message":"the search engine is down"}"#,
        "name" => r#"{"name":"Searcher"}"#,
        "nonce" => r#"{"nonce":"5f0c2a9e"}"#,
        "endpoint" => r#"{"endpoint":"https://agent.example/agora"}"#,
        "inbox" => r#"{"inbox":true}"#,
        member if member.starts_with("budget") => r#"{"budget":{"max":5,"currency":"credits"}}"#,
        member if member.starts_with("capabilities") => CAPABILITIES_EXAMPLE,
        _ => ENVELOPE_EXAMPLE,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kit::ijson;

    #[test]
    fn every_code_is_found_by_its_number_and_others_are_500() {
        for code in Code::ALL {
            assert_eq!(Code::read(i64::from(code.number())), code);
        }
        for number in [0, -400, 403, 418, 501, 65_936, i64::MAX] {
            assert_eq!(Code::read(number), Code::Internal, "{number}");
        }
    }

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

    #[test]
    fn every_example_shows_the_member_it_is_for() {
        for field in [
            "/protocol",
            "/id",
            "/timestamp",
            "/type",
            "/sender",
            "/recipient",
            "/payload",
            "/up_to",
            "/payload/resource",
            "/payload/params",
            "/payload/budget",
            "/payload/timeout",
            "/payload/request_id",
            "/payload/offer_id",
            "/payload/payment_proof",
            "/payload/cost",
            "/payload/ttl",
            "/payload/eta",
            "/payload/status",
            "/payload/data",
            "/payload/final",
            "/payload/code",
            "/payload/message",
            "/payload/name",
            "/payload/nonce",
            "/payload/endpoint",
            "/payload/inbox",
            "/payload/capabilities",
        ] {
            let name = field.rsplit('/').next().expect("a name");
            let example = ijson::read(example_for(field).as_bytes()).expect(field);
            assert!(example.get(name).is_some(), "{field}");
        }
        assert_eq!(example_for("/sender/id"), SENDER_EXAMPLE);
        assert_eq!(example_for("/recipient/id"), RECIPIENT_EXAMPLE);
        assert_eq!(example_for("/payload/capabilities/0/price"), CAPABILITIES_EXAMPLE);
        assert_eq!(example_for("/payload/budget/max"), example_for("/payload/budget"));
        assert_eq!(example_for(""), ENVELOPE_EXAMPLE);
    }

    proptest! {
        #[test]
        fn every_payload_is_json(message in any::<String>(), field in any::<String>()) {
            let failure = Failure::from(Malformed { field, message });
            prop_assert!(ijson::read(failure.payload().as_bytes()).is_ok());
        }
    }
}
