//! The assembled hub: configuration in, a running server out.

mod routes;
mod path_policy;
pub mod openapi;
mod probes;
mod settings;
mod start;

pub use openapi::listed;
pub use start::{Hub, Options, Reload, StartError};
