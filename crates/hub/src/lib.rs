//! The assembled hub: edge, configuration, front door, our own API.
//!
//! This is the room where everything meets; it holds no rules of its own.

pub mod app;
pub mod config;
pub mod edge;
pub mod shutdown;
pub mod telemetry;
pub mod v1;
