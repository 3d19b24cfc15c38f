//! A client of MCP servers, in both eras: over the pipes of a child process and over Streamable HTTP.
//!
//! [`Connection`] finds out which era a server speaks and hides the difference: the tools, a call, its
//! progress, its cancellation and the news of a changed list look the same. Arguments and results stay
//! JSON text, so that numbers keep their digits.

mod connection;
mod era;
pub mod http;
pub mod message;
mod news;
pub mod stdio;
mod task;
mod tool;

pub use connection::{CallEvent, Connection};
pub use era::{Era, NEWEST, NEWEST_OLD};
pub use message::{McpError, Request, ServerError};
pub use tool::{ContentBlocks, Tool, ToolHints, ToolResult};

/// The prefix of the protocol's own names in `_meta`.
pub const META_PREFIX: &str = "io.modelcontextprotocol/";
/// The extension for long calls.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

#[cfg(test)]
mod tests;
