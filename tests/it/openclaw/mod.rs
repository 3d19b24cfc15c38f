//! openclaw over the wire: a real hub, real agents, a clock that can be set forward.

mod client;
pub mod kit;
mod smoke;
