//! The assembled hub: configuration in, a running server out.

mod apis;
mod callers;
pub mod openapi;
mod probes;
mod start;

pub use openapi::operations;
pub use start::{Hub, Options, ReloadHandle, StartError};
