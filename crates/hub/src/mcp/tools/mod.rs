//! The tools at `/mcp`: what each is called with, what it does, and what it answers.

mod catalog;
mod error;
mod output;
mod whoami;

pub use catalog::{INSTRUCTIONS, ToolGroups, group_names, list, list_named};
pub use error::ToolError;
pub use output::ToolOutput;

use rialto_core::id::AgentId;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::ijson::Json;

use super::caller::McpCaller;
use super::wire::message::ClientCapabilities;
use super::wire::progress::Progress;
use super::wire::version::Era;

/// One call of a tool.
pub struct ToolCall {
    pub context: HubContext,
    pub caller: McpCaller,
    pub era: Era,
    pub client: ClientCapabilities,
    pub progress: Progress,
}

impl ToolCall {
    /// The agent that calls, for tools that need one.
    pub fn agent(&self) -> Result<AgentId, ToolError> {
        self.caller.agent().ok_or_else(ToolError::no_key)
    }
}

/// The result of a tool.
pub type ToolResult = Result<ToolOutput, ToolError>;

/// Calls a tool by its name; `None` if there is no such tool.
pub async fn call(name: &str, arguments: &Json<'_>, call: ToolCall) -> Option<ToolResult> {
    let _ = arguments;
    Some(match name {
        "whoami" => whoami::call(&call),
        _ => return None,
    })
}
