//! JSON-RPC messages: what is sent to a server, and what it sends.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rialto_protocols::kit::object::ObjectWriter;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The longest message that is read, in bytes. Larger than any result that can be sold.
pub(super) const MESSAGE_BYTES_MAX: usize = 32 << 20;
/// The code of a method that does not exist.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The code of arguments that a server does not accept.
pub const INVALID_PARAMS: i64 = -32_602;
/// The code of a version that a server of the new era does not offer.
pub const UNSUPPORTED_VERSION: i64 = -32_022;
/// What surrounds a value of a header that is not plain text.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// A request to a server. The transport chooses its id.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its method.
    pub method: Cow<'static, str>,
    /// Its parameters: a JSON object, as text. `None` if it has none.
    pub params: Option<String>,
    /// Headers of Streamable HTTP, beside those of the transport.
    pub headers: Vec<(String, String)>,
    /// Whether the server is told when the caller does not wait any more.
    pub is_cancellable: bool,
}

impl Request {
    /// A request with parameters.
    pub fn new(method: impl Into<Cow<'static, str>>, params: impl Into<String>) -> Self {
        let (method, params) = (method.into(), Some(params.into()));
        Self { method, params, headers: Vec::new(), is_cancellable: true }
    }

    /// Adds a header, encoded if its value is not plain text.
    pub fn header(mut self, name: impl Into<String>, value: &str) -> Self {
        self.headers.push((name.into(), encode_header(value).into_owned()));
        self
    }

    /// The message with its id: one line.
    pub(super) fn write(&self, id: i64) -> String {
        let message = ObjectWriter::new().text("jsonrpc", "2.0").integer("id", id);
        one_line(message.text("method", &self.method).maybe_raw("params", self.params.as_deref()))
    }
}

/// A notification, as one line.
pub(super) fn notification(method: &str, params: Option<&str>) -> String {
    let message = ObjectWriter::new().text("jsonrpc", "2.0").text("method", method);
    one_line(message.maybe_raw("params", params))
}

/// The notification that a request's result is no longer wanted.
pub(super) fn cancelled(id: i64) -> String {
    let params = ObjectWriter::new().integer("requestId", id);
    let params = params.text("reason", "the result is no longer wanted").finish();
    notification("notifications/cancelled", Some(&params))
}

/// The response to a request of the server: this client offers only `ping`.
pub(super) fn response_to(id: &str, method: &str) -> String {
    let response = ObjectWriter::new().text("jsonrpc", "2.0").raw("id", id);
    one_line(match method {
        "ping" => response.raw("result", "{}"),
        _ => {
            let error = ObjectWriter::new().integer("code", METHOD_NOT_FOUND);
            let error = error.text("message", "this client offers only ping").finish();
            response.raw("error", &error)
        }
    })
}

/// Line breaks in JSON occur only between tokens, where a space means the same.
fn one_line(message: ObjectWriter) -> String {
    message.finish().replace(['\n', '\r'], " ")
}

/// A value that a header can carry: as it is, or in base64.
pub(super) fn encode_header(value: &str) -> Cow<'_, str> {
    let is_plain = value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
    let looks_encoded = value.starts_with(ENCODED.0) && value.ends_with(ENCODED.1);
    if is_plain && !looks_encoded && value.trim() == value {
        return value.into();
    }
    format!("{}{}{}", ENCODED.0, STANDARD.encode(value), ENCODED.1).into()
}

/// What a server sends.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The response to a request of this client; an error may lack its id.
    Response { id: Option<i64>, result: Result<String, ServerError> },
    /// A request of the server, with its id as JSON text.
    Request { id: String, method: String },
    /// A notification, with its parameters as JSON text.
    Notification { method: String, params: String },
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Incoming {
    /// Reads a message. `None` for a text that is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
        let raw = |value: Option<&RawValue>| value.map_or("{}", RawValue::get).to_owned();
        if let Some(method) = envelope.method {
            let (method, params) = (method.into_owned(), raw(envelope.params));
            return Some(match envelope.id {
                Some(id) => Self::Request { id: id.get().to_owned(), method },
                None => Self::Notification { method, params },
            });
        }
        let id = envelope.id.and_then(|id| id.get().parse().ok());
        let result = match (envelope.result, envelope.error) {
            (_, Some(error)) => Err(ServerError::read(error.get())),
            (Some(result), None) => Ok(result.get().to_owned()),
            (None, None) => return None,
        };
        Some(Self::Response { id, result })
    }
}

/// A server's own error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct ServerError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// JSON text.
    pub data: Option<String>,
}

impl ServerError {
    fn read(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(default)]
            code: i64,
            #[serde(borrow, default)]
            message: Cow<'a, str>,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        match serde_json::from_str::<Body<'_>>(text) {
            Ok(Body { code, message, data }) => Self {
                code,
                message: message.into_owned(),
                data: data.map(|data| data.get().to_owned()),
            },
            Err(_) => Self { code: 0, message: text.to_owned(), data: None },
        }
    }
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The server did not get the request.
    #[error("{0}")]
    NotSent(String),
    /// The server refused the request with an HTTP status, and did not act on it.
    #[error("{0}")]
    Refused(String),
    /// The server may have got the request; whether it acted on it is unknown.
    #[error("{0}")]
    Lost(String),
    /// The server answered with an HTTP status that says nothing of what it did. It is still there.
    #[error("{0}")]
    Failed(String),
    /// The server answered with an error.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The answer is not in the expected form.
    #[error("{0}")]
    Unreadable(String),
    /// The server has forgotten the session of the old era, and did not act on the request.
    #[error("the server has ended the session")]
    SessionOver,
    /// The server wants to ask the user.
    #[error("the server asks for input, which an agent cannot give")]
    InputRequired,
}
