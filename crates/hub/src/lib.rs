//! The assembled hub. So far it only knows how to be configured.

pub mod config;
pub mod edge;
pub mod shutdown;
pub mod telemetry;
