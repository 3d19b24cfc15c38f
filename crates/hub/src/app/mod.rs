//! The assembled hub: configuration in, a running server out.

mod apis;
mod callers;
pub mod openapi;
mod pages;
mod probes;
mod start;
#[cfg(test)]
mod tests;

pub use openapi::operations;
pub use start::{Hub, Options, ReloadHandle, StartError};
