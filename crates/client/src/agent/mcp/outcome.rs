//! What a call's answer means for its job.

use rialto_protocols::kit::object::ObjectWriter;

use super::OUTCOME_UNKNOWN;
use crate::agent::job::Outcome;
use crate::mcp::message::INVALID_PARAMS;
use crate::mcp::{McpError, Tool, ToolResult};

/// The longest reason that a requester gets, in characters.
const REASON_MAX: usize = 2_000;

/// The outcome of a call that was answered.
pub(super) fn of_result(tool: &Tool, result: ToolResult) -> Outcome {
    let ToolResult { is_error, structured, content } = result;
    if is_error {
        let text = content.text();
        let text = if text.is_empty() { structured.unwrap_or_default() } else { text };
        let text = if text.is_empty() { "the tool failed without a reason" } else { &text };
        return Outcome::Failed(shorten(text));
    }
    if tool.output_schema.is_some() {
        return match structured {
            Some(structured) => Outcome::from_json_text(&structured),
            None => Outcome::Failed(
                "the tool returned no structured content, which its output schema asks for"
                    .to_owned(),
            ),
        };
    }
    let output = ObjectWriter::new().text("text", &content.text());
    let output = match content.only_text {
        true => output,
        false => output.raw("content", &content.raw),
    };
    Outcome::from_json_text(&output.finish())
}

/// The outcome of a call that was not answered with a result.
pub(super) fn of_error(error: McpError) -> Outcome {
    match error {
        McpError::Server(error) if error.code == INVALID_PARAMS => {
            Outcome::InvalidInput(shorten(&error.message))
        }
        McpError::Server(error) => Outcome::Failed(shorten(&error.to_string())),
        McpError::NotSent(_) | McpError::Refused(_) | McpError::SessionOver => {
            Outcome::Declined("the MCP server is not connected".to_owned())
        }
        McpError::Lost(_) => Outcome::Failed(OUTCOME_UNKNOWN.to_owned()),
        error @ (McpError::Failed(_) | McpError::Unreadable(_) | McpError::InputRequired) => {
            Outcome::Failed(shorten(&error.to_string()))
        }
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(REASON_MAX).collect()
}
