//! MCP servers as agents: `rialto agent run --mcp` with a server of our own, of either era, over pipes
//! and over HTTP, and with servers of others.

mod calls;
mod chosen;
mod foreign;
pub mod kit;
mod life;
mod recipe;
mod urls;

// Shared with other tests, which use all of it.
#[allow(dead_code)]
#[path = "../it/runtime/kit.rs"]
pub mod runtime;
