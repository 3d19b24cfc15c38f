//! An error that the hub answers with where no message of the protocol fits.

use std::borrow::Cow;

use uuid::Uuid;

use super::codes::Code;
use super::common;
use crate::kit::fields::Malformed;
use crate::kit::ijson::{Json, JsonError};

/// Why an operation failed. [`super::shape`] writes it.
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
        self.correlation_id = common::read_correlation_id(json);
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
