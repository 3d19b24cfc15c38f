//! A refusal: what the hub says when it cannot answer in one of the protocol's own messages.

use std::borrow::Cow;

use uuid::Uuid;

use super::codes::Code;
use super::common;
use crate::kit::fields::Malformed;
use crate::kit::ijson::{Json, Unreadable};

/// Why something is not done. [`super::shape`] writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub code: Code,
    /// The HTTP status: the code's own, but for a full disk and the hub's own mistakes.
    pub http: u16,
    /// The same for people.
    pub message: Cow<'static, str>,
    /// Whether trying again can help.
    pub retryable: bool,
    /// When to come back.
    pub retry_after_seconds: Option<u32>,
    /// Everything that is wrong with the message, a sentence each.
    pub violations: Vec<String>,
    /// JSON text that would have been right.
    pub example: Option<&'static str>,
    /// The correlation id of the message, when it had one.
    pub correlation_id: Option<Uuid>,
}

impl Failure {
    /// A failure with its code's status, and nothing but a message.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            http: code.http(),
            message: message.into(),
            retryable: code.retryable(),
            retry_after_seconds: None,
            violations: Vec::new(),
            example: None,
            correlation_id: None,
        }
    }

    /// 400 without a list.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Validation, message)
    }

    /// 400 with everything that is wrong (R77).
    pub fn violated(violations: Vec<String>) -> Self {
        let message = match violations.as_slice() {
            [only] => only.clone(),
            [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
            [] => "the message is not valid".to_owned(),
        };
        Self { violations, ..Self::invalid(message) }
    }

    /// 404: unknown and not yours are the same (C4).
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("no such {what}"))
    }

    /// 409 with something that is still running.
    pub fn still_running(message: impl Into<Cow<'static, str>>) -> Self {
        Self { retryable: true, ..Self::new(Code::Conflict, message) }
    }

    /// 413.
    pub fn too_large() -> Self {
        Self::new(Code::TooLarge, "a message has at most 1048576 bytes")
    }

    /// 415.
    pub fn encoded() -> Self {
        let message = "encoded bodies are not supported; remove Content-Encoding";
        Self::new(Code::UnsupportedEncoding, message)
    }

    /// 429: come back after some seconds.
    pub fn too_many(message: impl Into<Cow<'static, str>>, retry_after_seconds: u32) -> Self {
        let retry_after_seconds = Some(retry_after_seconds);
        Self { retry_after_seconds, ..Self::new(Code::RateLimited, message) }
    }

    /// 507 to those who read the status: the disk is full.
    pub fn disk_full() -> Self {
        Self { http: 507, ..Self::new(Code::Unavailable, "the hub's disk is full") }
    }

    /// 500 to those who read the status: the hub broke, and the log knows more under this id.
    pub fn fault(error_id: &str) -> Self {
        let message = format!("internal error: {error_id}");
        Self { http: 500, ..Self::new(Code::Unavailable, message) }
    }

    /// The same in answer to a message.
    pub fn about(mut self, json: &Json<'_>) -> Self {
        self.correlation_id = common::correlation_id(json);
        self
    }

    /// The same with an example, unless there is one.
    pub fn with_example(mut self, example: &'static str) -> Self {
        self.example.get_or_insert(example);
        self
    }
}

impl From<Unreadable> for Failure {
    fn from(bad: Unreadable) -> Self {
        Self::violated(vec![format!("body cannot be read: {bad}")])
    }
}

/// For queries and small bodies, which are read member by member.
impl From<Malformed> for Failure {
    fn from(bad: Malformed) -> Self {
        Self::violated(vec![bad.message])
    }
}
