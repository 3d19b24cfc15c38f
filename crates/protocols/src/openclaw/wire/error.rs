//! Errors and rejections: every code of section 5 with its HTTP status and whether a retry can succeed,
//! and the error object (section 2.4), written by the hub and read by clients.

use std::borrow::Cow;

use rialto_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::words::{ErrorType, string_enum};
use super::{CommonMembers, read_correlation_id};
use crate::kit::fields::Malformed;
use crate::kit::ijson::{Json, JsonError};
use crate::kit::object::{ObjectWriter, string_array};

string_enum! {
    /// The code of an error answer.
    Code {
        /// The message violates its schema or a condition, is of no known kind, or is not valid
        /// JSON.
        Validation = "VALIDATION_ERROR",
        /// The message has another major version.
        UnsupportedVersion = "UNSUPPORTED_PROTOCOL_VERSION",
        /// The key is missing, unknown or revoked.
        Unauthorized = "UNAUTHORIZED",
        /// The body names another agent than the key.
        Forbidden = "FORBIDDEN",
        /// The thing is unknown, or belongs to another caller.
        NotFound = "NOT_FOUND",
        /// The path does not allow this method.
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        /// The id is taken, or the state no longer allows this.
        Conflict = "CONFLICT",
        /// The id or key was used before with other content.
        IdempotencyConflict = "IDEMPOTENCY_CONFLICT",
        /// The body is too large.
        TooLarge = "TOO_LARGE",
        /// The body is compressed.
        UnsupportedEncoding = "UNSUPPORTED_ENCODING",
        /// Too many requests.
        RateLimited = "RATE_LIMITED",
        /// The hub cannot accept writes now.
        Unavailable = "UNAVAILABLE",
    }
}

impl Code {
    /// The HTTP status. A full disk uses status 507 with the code `UNAVAILABLE`.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Validation | Self::UnsupportedVersion => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedEncoding => 415,
            Self::IdempotencyConflict => 422,
            Self::RateLimited => 429,
            Self::Unavailable => 503,
        }
    }

    /// Whether the same request can succeed later. A conflict with something that is still running
    /// can; its error says so itself.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Unavailable)
    }
}

string_enum! {
    /// Why a request is rejected.
    Rejected {
        /// No such agent or capability, or the agent is in a permanent error state.
        CapabilityNotAvailable = "capability_not_available",
        /// The input violates its schema.
        InvalidInput = "invalid_input",
        /// The agent is at capacity or unreachable, or the requester has too few credits.
        ResourceExhausted = "resource_exhausted",
        /// Not approved, or the budget is too low.
        PolicyViolation = "policy_violation",
        /// The work cannot be done by the deadline.
        DeadlineTooSoon = "deadline_too_soon",
    }
}

impl Rejected {
    /// Whether the same request can be accepted later.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::ResourceExhausted)
    }
}

/// The error code of a result that did not arrive in time (R82).
pub const DEADLINE_EXCEEDED: &str = "DEADLINE_EXCEEDED";

/// Why an operation failed. [`Self::write`] writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The error code.
    pub code: Code,
    /// The HTTP status: that of the code, except for a full disk and internal errors.
    pub http_status: u16,
    /// The error as text for people.
    pub message: Cow<'static, str>,
    /// Whether a retry can succeed.
    pub retryable: bool,
    /// How long to wait before a retry.
    pub retry_after_seconds: Option<u32>,
    /// Everything that is wrong with the message, one sentence each.
    pub violations: Vec<String>,
    /// JSON text of a valid message.
    pub example: Option<&'static str>,
    /// The correlation id of the message, if it has one.
    pub correlation_id: Option<Uuid>,
}

impl Failure {
    /// A failure with its code's status and a message only.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            http_status: code.http_status(),
            message: message.into(),
            retryable: code.is_retryable(),
            retry_after_seconds: None,
            violations: Vec::new(),
            example: None,
            correlation_id: None,
        }
    }

    /// 400 without a list of violations.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Validation, message)
    }

    /// 400 with every violation (R77).
    pub fn with_violations(violations: Vec<String>) -> Self {
        let message = match violations.as_slice() {
            [only] => only.clone(),
            [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
            [] => "the message is not valid".to_owned(),
        };
        Self { violations, ..Self::invalid(message) }
    }

    /// 404: unknown, or owned by another caller; the answer is the same (C4).
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("no such {what}"))
    }

    /// 409: the conflict is with something that is still running.
    pub fn still_running(message: impl Into<Cow<'static, str>>) -> Self {
        Self { retryable: true, ..Self::new(Code::Conflict, message) }
    }

    /// 413.
    pub fn too_large() -> Self {
        Self::new(Code::TooLarge, "a message has at most 1048576 bytes")
    }

    /// 415.
    pub fn encoded_body() -> Self {
        let message = "encoded bodies are not supported; remove Content-Encoding";
        Self::new(Code::UnsupportedEncoding, message)
    }

    /// 429 with the number of seconds to wait.
    pub fn rate_limited(message: impl Into<Cow<'static, str>>, retry_after_seconds: u32) -> Self {
        let retry_after_seconds = Some(retry_after_seconds);
        Self { retry_after_seconds, ..Self::new(Code::RateLimited, message) }
    }

    /// HTTP status 507: the disk is full.
    pub fn disk_full() -> Self {
        Self { http_status: 507, ..Self::new(Code::Unavailable, "the hub's disk is full") }
    }

    /// HTTP status 500: an internal error. The log has the details under this id.
    pub fn internal(error_id: &str) -> Self {
        let message = format!("internal error: {error_id}");
        Self { http_status: 500, ..Self::new(Code::Unavailable, message) }
    }

    /// The same failure, with the correlation id of the message it answers.
    pub fn in_answer_to(mut self, json: &Json<'_>) -> Self {
        self.correlation_id = read_correlation_id(json);
        self
    }

    /// The same failure with an example, unless it already has one.
    pub fn with_example(mut self, example: &'static str) -> Self {
        self.example.get_or_insert(example);
        self
    }
}

impl From<JsonError> for Failure {
    fn from(bad: JsonError) -> Self {
        Self::with_violations(vec![format!("body cannot be read: {bad}")])
    }
}

/// For queries and small bodies, which are read member by member.
impl From<Malformed> for Failure {
    fn from(bad: Malformed) -> Self {
        Self::with_violations(vec![bad.message])
    }
}

/// An error body as a client reads it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    /// The protocol version of the answer.
    pub protocol_version: String,
    /// The correlation id of the message it answers.
    pub correlation_id: String,
    /// When the answer was written.
    pub timestamp: String,
    /// The error.
    pub error: ErrorObject,
}

/// The error.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ErrorObject {
    /// One of [`Code`]; other hubs may use other codes.
    pub code: String,
    /// The error as text for people.
    pub message: String,
    /// Whether the error is transient.
    pub error_type: ErrorType,
    /// Whether a retry can succeed.
    pub retryable: bool,
    /// How long to wait before a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
    /// Details such as `StatusDetails`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<RawValue>>,
}

/// The details of an invalid message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetails {
    /// Every violation, one sentence each.
    #[serde(default)]
    pub validation_errors: Vec<String>,
}

impl ErrorObject {
    /// The violations that a 400 lists; empty for other errors.
    pub fn violations(&self) -> Vec<String> {
        let details =
            self.details.as_ref().map(|raw| serde_json::from_str::<ErrorDetails>(raw.get()));
        details.and_then(Result::ok).unwrap_or_default().validation_errors
    }
}

impl Failure {
    /// The body of the answer. `made` is the correlation id for a message that had none (R4).
    pub fn write(&self, made: Uuid, at: Timestamp) -> String {
        let details = (!self.violations.is_empty() || self.example.is_some()).then(|| {
            let listed = string_array(self.violations.iter().map(String::as_str));
            let listed = (!self.violations.is_empty()).then_some(listed);
            ObjectWriter::new()
                .maybe_raw("validation_errors", listed.as_deref())
                .maybe_raw("example", self.example)
                .finish()
        });
        let error = ObjectWriter::new()
            .text("code", self.code.as_str())
            .text("message", &self.message)
            .text("error_type", ErrorType::of(self.retryable).as_str())
            .flag("retryable", self.retryable)
            .maybe_integer("retry_after_seconds", self.retry_after_seconds.map(i64::from))
            .maybe_raw("details", details.as_deref())
            .finish();
        let correlation_id = self.correlation_id.unwrap_or(made);
        CommonMembers { correlation_id, timestamp: at }
            .write_to(ObjectWriter::new())
            .raw("error", &error)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_statuses_and_retries_are_those_of_the_book() {
        for (text, http, retryable) in [
            ("VALIDATION_ERROR", 400, false),
            ("UNSUPPORTED_PROTOCOL_VERSION", 400, false),
            ("UNAUTHORIZED", 401, false),
            ("FORBIDDEN", 403, false),
            ("NOT_FOUND", 404, false),
            ("METHOD_NOT_ALLOWED", 405, false),
            ("CONFLICT", 409, false),
            ("IDEMPOTENCY_CONFLICT", 422, false),
            ("TOO_LARGE", 413, false),
            ("UNSUPPORTED_ENCODING", 415, false),
            ("RATE_LIMITED", 429, true),
            ("UNAVAILABLE", 503, true),
        ] {
            let code = Code::read(text).expect(text);
            assert_eq!((code.http_status(), code.is_retryable()), (http, retryable), "{text}");
        }
        assert_eq!(Code::ALL.len(), 12);
        for rejected in Rejected::ALL {
            let retryable = rejected.as_str() == "resource_exhausted";
            assert_eq!(rejected.retryable(), retryable, "{rejected}");
            assert_eq!(Rejected::read(rejected.as_str()), Some(*rejected));
        }
    }
}
