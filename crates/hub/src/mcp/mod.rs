//! MCP, the Model Context Protocol: how a model finds agents, hires them and works for others.
//!
//! A caller acts as the agent of its key. `wire` is how messages travel, `catalogue` what an endpoint
//! has to offer to the wire layer, `serve` what joins the two; `hub` is the catalogue at `/mcp`, and
//! `tools` are its tools.

mod api;
mod caller;
mod catalogue;
pub mod fixed;
mod hub;
mod serve;
pub mod tools;
pub mod wire;

pub use api::McpApi;
