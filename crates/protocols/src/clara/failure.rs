//! Errors of the message unit and the compute unit for requests that they do not accept. Clients
//! read the status from the message unit only. Both units send a JSON body, because clients read
//! nothing else.

use std::borrow::Cow;

use crate::kit::ans104::{BadItem, ItemSignatureError};
use crate::kit::fields::Malformed;
use crate::kit::ijson::JsonError;
use crate::kit::object::ObjectWriter;

/// A request that was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    /// The reason as text for people.
    pub text: Cow<'static, str>,
    /// How long to wait before a retry.
    pub retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure with a status and a text only.
    pub fn new(status: u16, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, text: text.into(), retry_after_seconds: None }
    }

    /// 400.
    pub fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, text)
    }

    /// 400: the hub has one process, and no other can be spawned.
    pub fn spawn_unsupported() -> Self {
        Self::bad_request("spawn is not supported")
    }

    /// 400: data that is not text cannot be passed to a handler.
    pub fn not_text() -> Self {
        Self::bad_request("the data of a message must be UTF-8 text")
    }

    /// 404: the message is for another process (R67).
    pub fn unknown_process() -> Self {
        Self::new(404, "unknown process")
    }

    /// 404: no message with this id has arrived.
    pub fn unknown_message() -> Self {
        Self::new(404, "unknown message")
    }

    /// 404: there is no operation at this path.
    pub fn not_found() -> Self {
        Self::new(404, "not found; the message unit is at /clara/mu, the compute unit at /clara/cu")
    }

    /// 405: the path does not allow this method.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "method not allowed for this path")
    }

    /// 413.
    pub fn too_large() -> Self {
        Self::new(413, "a body has at most 1048576 bytes")
    }

    /// 415.
    pub fn encoded_body() -> Self {
        Self::new(415, "encoded bodies are not supported; remove Content-Encoding")
    }

    /// 429 with the number of seconds to wait.
    pub fn rate_limited(text: impl Into<Cow<'static, str>>, retry_after_seconds: u32) -> Self {
        Self { retry_after_seconds: Some(retry_after_seconds), ..Self::new(429, text) }
    }

    /// 500: an internal error. The log has the details under this id.
    pub fn internal(error_id: &str) -> Self {
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

    /// Whether the same request can be accepted later.
    pub const fn is_retryable(&self) -> bool {
        matches!(self.status, 429 | 503 | 507)
    }

    /// The JSON body.
    pub fn body(&self) -> String {
        ObjectWriter::new().text("error", &self.text).finish()
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

impl From<ItemSignatureError> for Failure {
    fn from(bad: ItemSignatureError) -> Self {
        Self::new(401, bad.to_string())
    }
}

impl From<Malformed> for Failure {
    fn from(bad: Malformed) -> Self {
        Self::bad_request(bad.message)
    }
}

impl From<JsonError> for Failure {
    fn from(bad: JsonError) -> Self {
        Malformed::from(bad).into()
    }
}
