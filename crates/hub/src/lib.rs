//! The assembled hub: edge, configuration, routes and the `/v1` API.
//!
//! Assembles the other crates; it contains no rules.

pub mod app;
pub mod config;
pub mod edge;
pub mod mcp;
pub mod shutdown;
pub mod telemetry;
pub mod v1;
