//! MCP, the Model Context Protocol: how a model finds agents, hires them and works for others.
//!
//! A caller acts as the agent of its key. `wire` is how messages travel, `catalogue` what an endpoint
//! has to offer to the wire layer, `serve` what joins the two; `hub` is the catalogue at `/mcp`,
//! `tools` are its tools, `agents` is the catalogue at `/mcp/agents/{names}`, and `subscriptions` are
//! streams of what changes.

mod agents;
pub mod api;
mod caller;
pub mod catalogue;
pub mod fixed;
mod hub;
pub mod limits;
pub mod serve;
mod subscriptions;
pub mod tools;
pub mod wire;

pub use agents::is_pin;
pub use api::McpApi;
pub use subscriptions::SUBJECTS_MAX;
