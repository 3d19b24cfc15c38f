//! What the message unit and the compute unit say when they do not take a request at all. The status
//! is read at the first only; both have a JSON body, since clients read nothing else.

use std::borrow::Cow;

use crate::kit::ans104::{BadItem, Unproven};
use crate::kit::fields::Malformed;
use crate::kit::ijson::Unreadable;
use crate::kit::object::Object;

/// A request that is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    /// Why, for people.
    pub text: Cow<'static, str>,
    /// When to come back.
    pub retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure with nothing but a status and a text.
    pub fn new(status: u16, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, text: text.into(), retry_after_seconds: None }
    }

    /// 400.
    pub fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, text)
    }

    /// 400: there is one process here, and no other can be made.
    pub fn spawn() -> Self {
        Self::bad_request("spawn is not supported")
    }

    /// 400: data that is no text cannot be shown to any handler.
    pub fn not_text() -> Self {
        Self::bad_request("the data of a message must be UTF-8 text")
    }

    /// 404: the message is for somebody else (R67).
    pub fn unknown_process() -> Self {
        Self::new(404, "unknown process")
    }

    /// 404: no such message has arrived.
    pub fn unknown_message() -> Self {
        Self::new(404, "unknown message")
    }

    /// 404: nothing is at this path.
    pub fn not_found() -> Self {
        Self::new(404, "not found; the message unit is at /clara/mu, the compute unit at /clara/cu")
    }

    /// 405: the path has other methods.
    pub fn method() -> Self {
        Self::new(405, "method not allowed for this path")
    }

    /// 413.
    pub fn too_large() -> Self {
        Self::new(413, "a body has at most 1048576 bytes")
    }

    /// 415.
    pub fn encoded() -> Self {
        Self::new(415, "encoded bodies are not supported; remove Content-Encoding")
    }

    /// 429: come back after some seconds.
    pub fn too_many(text: impl Into<Cow<'static, str>>, retry_after_seconds: u32) -> Self {
        Self { retry_after_seconds: Some(retry_after_seconds), ..Self::new(429, text) }
    }

    /// 500: the hub broke, and the log knows more under this id.
    pub fn fault(error_id: &str) -> Self {
        Self::new(500, format!("internal error: {error_id}"))
    }

    /// 503: the store cannot write.
    pub fn unavailable(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(503, text)
    }

    /// 507: the disk is full.
    pub fn disk_full() -> Self {
        Self::new(507, "the hub's disk is full")
    }

    /// Whether the same request can be taken later.
    pub const fn retryable(&self) -> bool {
        matches!(self.status, 429 | 503 | 507)
    }

    /// The body.
    pub fn body(&self) -> String {
        Object::new().text("error", &self.text).finish()
    }
}

impl From<BadItem> for Failure {
    fn from(bad: BadItem) -> Self {
        match bad {
            BadItem::TooLong => Self::too_large(),
            _ => Self::bad_request(bad.to_string()),
        }
    }
}

impl From<Unproven> for Failure {
    fn from(bad: Unproven) -> Self {
        Self::new(401, bad.to_string())
    }
}

impl From<Malformed> for Failure {
    fn from(bad: Malformed) -> Self {
        Self::bad_request(bad.message)
    }
}

impl From<Unreadable> for Failure {
    fn from(bad: Unreadable) -> Self {
        Malformed::from(bad).into()
    }
}
