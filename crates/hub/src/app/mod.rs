//! The assembled hub: configuration in, a running server out.

pub mod openapi;
mod path_policy;
mod probes;
mod routes;
mod start;

pub use openapi::operations;
pub use start::{Hub, Options, ReloadHandle, StartError};
