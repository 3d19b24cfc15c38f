//! The wire layer: JSON-RPC over Streamable HTTP, in both eras.
//!
//! It knows how requests and responses travel, and nothing of what is offered: a
//! [`Catalogue`](super::catalogue::Catalogue) is called with what was read.

pub mod error;
pub mod message;
pub mod method;
pub mod progress;
pub mod response;
pub mod result;
pub mod version;

/// The prefix of the protocol's own names in `_meta`.
pub const META_PREFIX: &str = "io.modelcontextprotocol/";
/// The extension for long calls.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
