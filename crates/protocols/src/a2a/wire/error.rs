//! Errors, as JSON-RPC and as HTTP responses (section 5 of the requirements).

use super::Version;
use super::message::write_array;
use super::reader::{Violation, Violations};
use crate::kit::fields::Malformed;
use crate::kit::object::ObjectWriter;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    TaskNotFound,
    TaskNotCancelable,
    UnsupportedOperation,
    ContentTypeNotSupported,
    ExtensionSupportRequired,
    VersionNotSupported,
    ParseError,
    InvalidRequest,
    InvalidParams,
    MethodNotFound,
    InternalError,
    Unauthenticated,
    Forbidden,
    RateLimited,
    Unavailable,
    Conflict,
    IdempotencyConflict,
    TooLarge,
    UnsupportedEncoding,
    /// A path or agent that does not exist.
    NotFound,
}

/// The code, the HTTP status and the status name of a reason.
struct ReasonRow {
    name: &'static str,
    code: i32,
    http: u16,
    status: &'static str,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 20] = [
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::ExtensionSupportRequired,
        Self::VersionNotSupported,
        Self::ParseError,
        Self::InvalidRequest,
        Self::InvalidParams,
        Self::MethodNotFound,
        Self::InternalError,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::RateLimited,
        Self::Unavailable,
        Self::Conflict,
        Self::IdempotencyConflict,
        Self::TooLarge,
        Self::UnsupportedEncoding,
        Self::NotFound,
    ];

    fn row(self) -> ReasonRow {
        let row = |name, code, http, status| ReasonRow { name, code, http, status };
        let (unmet, invalid) = ("FAILED_PRECONDITION", "INVALID_ARGUMENT");
        match self {
            Self::TaskNotFound => row("TASK_NOT_FOUND", -32001, 404, "NOT_FOUND"),
            Self::TaskNotCancelable => row("TASK_NOT_CANCELABLE", -32002, 400, unmet),
            Self::UnsupportedOperation => row("UNSUPPORTED_OPERATION", -32004, 400, unmet),
            Self::ContentTypeNotSupported => {
                row("CONTENT_TYPE_NOT_SUPPORTED", -32005, 400, invalid)
            }
            Self::ExtensionSupportRequired => row("EXTENSION_SUPPORT_REQUIRED", -32008, 400, unmet),
            Self::VersionNotSupported => row("VERSION_NOT_SUPPORTED", -32009, 400, unmet),
            Self::ParseError => row("PARSE_ERROR", -32700, 400, invalid),
            Self::InvalidRequest => row("INVALID_REQUEST", -32600, 400, invalid),
            Self::InvalidParams => row("INVALID_PARAMS", -32602, 400, invalid),
            Self::MethodNotFound => row("METHOD_NOT_FOUND", -32601, 404, "NOT_FOUND"),
            Self::InternalError => row("INTERNAL_ERROR", -32603, 500, "INTERNAL"),
            Self::Unauthenticated => row("UNAUTHENTICATED", -32050, 401, "UNAUTHENTICATED"),
            Self::Forbidden => row("FORBIDDEN", -32051, 403, "PERMISSION_DENIED"),
            Self::RateLimited => row("RATE_LIMITED", -32052, 429, "RESOURCE_EXHAUSTED"),
            Self::Unavailable => row("UNAVAILABLE", -32053, 503, "UNAVAILABLE"),
            Self::Conflict => row("CONFLICT", -32054, 409, "ABORTED"),
            Self::IdempotencyConflict => row("IDEMPOTENCY_CONFLICT", -32055, 422, unmet),
            Self::TooLarge => row("TOO_LARGE", -32056, 413, invalid),
            Self::UnsupportedEncoding => row("UNSUPPORTED_ENCODING", -32056, 415, invalid),
            Self::NotFound => row("NOT_FOUND", -32601, 404, "NOT_FOUND"),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its code in JSON-RPC 1.0.
    pub fn rpc_code(self) -> i32 {
        self.row().code
    }

    /// Its HTTP status.
    pub fn http_status(self) -> u16 {
        self.row().http
    }

    /// Whether JSON-RPC also has its HTTP status, and not 200.
    fn is_transport(self) -> bool {
        matches!(self.rpc_code(), -32056..=-32050)
    }
}

/// An error of this protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct A2aError {
    pub reason: Reason,
    pub message: String,
    pub violations: Violations,
    /// What the error is about, for programs.
    pub metadata: Vec<(&'static str, String)>,
    /// An HTTP status other than that of the reason.
    pub http_status: Option<u16>,
    pub retry_after_seconds: Option<u64>,
}

/// The longest list of violations that is returned: more than one for each part of a message.
const VIOLATIONS_MAX: usize = 500;
/// How many of them the text of the error names.
const NAMED_MAX: usize = 8;

impl A2aError {
    /// An error with a text.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let (violations, metadata) = (Vec::new(), Vec::new());
        Self {
            reason,
            message: message.into(),
            violations,
            metadata,
            http_status: None,
            retry_after_seconds: None,
        }
    }

    /// Bad parameters.
    pub fn invalid(mut violations: Violations) -> Self {
        let others = violations.len().saturating_sub(NAMED_MAX);
        let text = |one: &Violation| format!("{} {}", one.field, one.description);
        let mut texts: Vec<String> = violations.iter().take(NAMED_MAX).map(text).collect();
        texts.extend((others > 0).then(|| format!("and {others} more")));
        violations.truncate(VIOLATIONS_MAX);
        Self { violations, ..Self::new(Reason::InvalidParams, texts.join("; ")) }
    }

    /// One bad parameter.
    pub fn invalid_field(field: &str, description: impl Into<String>) -> Self {
        let (field, description) = (field.to_owned(), description.into());
        Self::invalid(vec![Violation { field, description }])
    }

    /// One bad parameter, with a text that may begin with its name.
    pub fn malformed(field: &str, bad: &Malformed) -> Self {
        let text = bad.to_string();
        let rest = text.strip_prefix(field).and_then(|rest| rest.strip_prefix(' '));
        Self::invalid_field(field, rest.unwrap_or(&text))
    }

    /// A task that does not exist, or belongs to another caller.
    pub fn task_not_found(id: &str) -> Self {
        let id: String = id.chars().take(128).collect();
        let error = Self::new(Reason::TaskNotFound, "task not found");
        Self { metadata: vec![("taskId", id)], ..error }
    }

    /// The HTTP status of the HTTP+JSON binding.
    pub fn http_status(&self) -> u16 {
        self.http_status.unwrap_or(self.reason.http_status())
    }

    /// The HTTP status of the JSON-RPC binding.
    pub fn rpc_http_status(&self) -> u16 {
        if self.reason.is_transport() { self.http_status() } else { 200 }
    }

    /// The whole JSON-RPC response. `id` is JSON text.
    pub fn write_rpc(&self, id: &str, version: Version) -> String {
        // 0.3 does not have these codes (R81).
        let code = match (version, self.reason.rpc_code()) {
            (Version::V03, -32008 | -32009) => -32603,
            (_, code) => code,
        };
        let data = match version {
            Version::V1 => self.write_details(),
            Version::V03 => {
                let violations = (!self.violations.is_empty()).then(|| self.write_violations());
                ObjectWriter::new()
                    .text("reason", self.reason.name())
                    .maybe_raw("fieldViolations", violations.as_deref())
                    .finish()
            }
        };
        let error = ObjectWriter::new()
            .integer("code", code.into())
            .text("message", &self.message)
            .raw("data", &data)
            .finish();
        ObjectWriter::new().text("jsonrpc", "2.0").raw("id", id).raw("error", &error).finish()
    }

    /// The body of the HTTP+JSON binding.
    pub fn write_http(&self) -> String {
        let error = ObjectWriter::new()
            .integer("code", self.http_status().into())
            .text("status", self.reason.row().status)
            .text("message", &self.message)
            .raw("details", &self.write_details())
            .finish();
        ObjectWriter::new().raw("error", &error).finish()
    }

    fn write_details(&self) -> String {
        let own = self.reason.is_transport() || self.reason == Reason::NotFound;
        let metadata = self.metadata.iter();
        let metadata = metadata.fold(ObjectWriter::new(), |all, (name, text)| all.text(name, text));
        let info = ObjectWriter::new()
            .text("@type", "type.googleapis.com/google.rpc.ErrorInfo")
            .text("reason", self.reason.name())
            .text("domain", if own { "rialto" } else { "a2a-protocol.org" })
            .raw("metadata", &metadata.finish())
            .finish();
        let violations = (!self.violations.is_empty()).then(|| {
            ObjectWriter::new()
                .text("@type", "type.googleapis.com/google.rpc.BadRequest")
                .raw("fieldViolations", &self.write_violations())
                .finish()
        });
        write_array([Some(info), violations].into_iter().flatten())
    }

    fn write_violations(&self) -> String {
        write_array(self.violations.iter().map(|one| {
            ObjectWriter::new()
                .text("field", &one.field)
                .text("description", &one.description)
                .finish()
        }))
    }
}
