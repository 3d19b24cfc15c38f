//! An MCP server as an agent: each of its tools is a skill, and each job a call.
//!
//! [`McpServer`] keeps the server running. [`McpTool`] is the handler of one tool. [`CallJournal`] knows
//! which calls were begun, so that one that may have had an effect is not made twice.

mod call;
mod journal;
mod outcome;
mod server;
mod skill;
#[cfg(test)]
mod tests;

pub use call::McpTool;
pub use journal::CallJournal;
pub use server::{McpServer, McpSource, OfferedTools, ServerEvent};
pub use skill::tool_skill;

/// What a requester reads when a call may or may not have had an effect.
const OUTCOME_UNKNOWN: &str =
    "the connection to the MCP server was lost during the call: outcome unknown";
