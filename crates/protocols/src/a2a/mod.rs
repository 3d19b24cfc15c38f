//! a2a: the adapter of Agent2Agent 1.0 and 0.3. Every agent of the hub is an A2A agent: a card says
//! what it does, a message opens a task, and a task is a job.

pub mod wire;

#[cfg(test)]
mod tests;

use rialto_core::alias::Protocol;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("a2a");

/// The longest id of a message, in characters (R29).
pub const MESSAGE_ID_MAX: usize = 256;
/// The longest id of a context, in characters.
pub const CONTEXT_ID_MAX: usize = 128;
/// The most parts of a message or artifact.
pub const PARTS_MAX: usize = 100;

/// The extensions of this hub (section 2.4 of the requirements).
pub mod extensions {
    pub const HIRE: &str = "urn:rialto:a2a:hire:v1";
    pub const SCHEMAS: &str = "urn:rialto:a2a:schemas:v1";
    pub const TRUST: &str = "urn:rialto:a2a:trust:v1";
    pub const RESUME: &str = "urn:rialto:a2a:resume:v1";
}
