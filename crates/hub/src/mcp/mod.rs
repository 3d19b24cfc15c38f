//! MCP, the Model Context Protocol: how a model finds agents, hires them and works for others.
//!
//! A caller acts as the agent of its key. `wire` is how messages travel, `catalogue` what an endpoint
//! has to offer to the wire layer, `serve` what joins the two; `hub` is the catalogue at `/mcp`,
//! `tools` are its tools, and `agents` is the catalogue at `/mcp/agents/{names}`.

mod agents;
mod api;
mod caller;
mod catalogue;
mod hub;
mod serve;
pub mod tools;
pub mod wire;

pub use api::McpApi;
