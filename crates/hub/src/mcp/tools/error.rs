//! Failures of tools, in words that tell a model what to do next.

use rialto_protocols::kit::object::ObjectWriter;

use crate::mcp::wire::result::{ResultObject, json_array, text_block};

/// Why a tool failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    pub code: &'static str,
    pub what: String,
    pub fix: String,
    pub retryable: bool,
    pub retry_after_seconds: Option<u64>,
    /// A JSON pointer into the arguments.
    pub field: Option<String>,
}

impl ToolError {
    pub fn new(code: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            code,
            what: what.into(),
            fix: fix.into(),
            retryable: false,
            retry_after_seconds: None,
            field: None,
        }
    }

    /// The tool acts as an agent, and the request has no key.
    pub fn no_key() -> Self {
        let fix = "connect with a key of an agent: rialto connect <client> --apply writes one";
        Self::new("no_key", "this tool needs the key of an agent", fix)
    }

    pub fn into_result(self) -> ResultObject {
        let text = format!("{}: {}. Fix: {}.", self.code, self.what, self.fix);
        let error = ObjectWriter::new()
            .text("code", self.code)
            .raw("retryable", if self.retryable { "true" } else { "false" })
            .maybe_integer("retry_after_seconds", self.retry_after_seconds.map(u64::cast_signed))
            .maybe_text("field", self.field.as_deref());
        ResultObject::default()
            .raw("content", json_array([text_block(&text)]))
            .flag("isError", true)
            .meta("rialto/error", error.finish())
    }
}
