//! Protocol errors: the request itself is wrong, so no tool was called.

use http::StatusCode;
use rialto_protocols::kit::object::ObjectWriter;

use super::TASKS_EXTENSION;
use super::version::{Era, OFFERED};

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    /// JSON text.
    pub data: Option<String>,
    /// The status in the new era, where it is not that of the code.
    status: Option<StatusCode>,
}

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL: i64 = -32603;
/// Of the old era only.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
pub const HEADER_MISMATCH: i64 = -32020;
pub const MISSING_CAPABILITY: i64 = -32021;
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The part of a stranger's text that an error repeats.
pub fn shorten(text: &str) -> &str {
    const SHOWN_MAX: usize = 100;
    text.char_indices().nth(SHOWN_MAX).map_or(text, |(end, _)| &text[..end])
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, status: None }
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// Bad parameters that make the request unreadable, so that the HTTP status says so, too.
    pub fn bad_meta(message: impl Into<String>) -> Self {
        Self { status: Some(StatusCode::BAD_REQUEST), ..Self::invalid_params(message) }
    }

    pub fn unknown_method(name: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {name}"))
    }

    /// There is no `what`, for example no tool, with this name.
    pub fn unknown_name(what: &str, name: &str) -> Self {
        Self::invalid_params(format!("Unknown {what}: {}", shorten(name)))
    }

    pub fn unsupported_version(requested: &str) -> Self {
        let offered = serde_json::json!({"supported": OFFERED, "requested": requested});
        Self::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
            .with_data(offered.to_string())
    }

    /// The request is for clients with the tasks extension.
    pub fn tasks_not_declared() -> Self {
        let required =
            serde_json::json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}});
        Self::new(MISSING_CAPABILITY, "Missing required client capability")
            .with_data(required.to_string())
    }

    pub fn task_not_found(id: &str) -> Self {
        let data = ObjectWriter::new().text("taskId", id).finish();
        Self::invalid_params("Task not found").with_data(data)
    }

    pub fn resource_not_found(uri: &str, era: Era) -> Self {
        let code = if era == Era::Old { RESOURCE_NOT_FOUND } else { INVALID_PARAMS };
        let data = ObjectWriter::new().text("uri", uri).finish();
        Self::new(code, "Resource not found").with_data(data)
    }

    /// The request is for callers with the key of an agent.
    pub fn no_key() -> Self {
        let data = ObjectWriter::new().text("code", "no_key").raw("retryable", "false").finish();
        let text = "no_key: this needs the key of an agent. Fix: connect with one: rialto connect \
                    <client> --apply writes it.";
        Self::new(INVALID_REQUEST, text).with_data(data)
    }

    /// The key was valid when the request came.
    pub fn key_revoked() -> Self {
        let data =
            ObjectWriter::new().text("code", "unauthorized").raw("retryable", "false").finish();
        Self::new(INVALID_REQUEST, "the key is not valid any more").with_data(data)
    }

    /// Adds JSON text for programs.
    pub fn with_data(self, data: String) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The HTTP status of an error that answers a request.
    pub fn status(&self, era: Era) -> StatusCode {
        match (era, self.code) {
            (Era::Old, _) => StatusCode::OK,
            (Era::New, METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
            (Era::New, HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION) => {
                StatusCode::BAD_REQUEST
            }
            (Era::New, _) => self.status.unwrap_or(StatusCode::OK),
        }
    }

    /// The whole message; `id` is JSON text, and absent where it could not be read.
    pub fn write(&self, id: Option<&str>) -> String {
        let error = ObjectWriter::new()
            .integer("code", self.code)
            .text("message", &self.message)
            .maybe_raw("data", self.data.as_deref())
            .finish();
        ObjectWriter::new().text("jsonrpc", "2.0").maybe_raw("id", id).raw("error", &error).finish()
    }
}
