//! registry: Chorus Protocol 0.1. Agents sell skills; orchestrators hire them by the job.
//!
//! The protocol's own terms stay in this folder. It shares a word in its name with the relay
//! protocol, and nothing else.

pub mod wire;

#[cfg(feature = "server")]
mod auth;
#[cfg(feature = "server")]
mod delivery;
#[cfg(feature = "server")]
mod errors;
#[cfg(feature = "server")]
mod examples;
#[cfg(feature = "server")]
mod fields;
#[cfg(feature = "server")]
pub mod job;
#[cfg(feature = "server")]
pub mod lent;
#[cfg(feature = "server")]
pub mod operations;
#[cfg(feature = "server")]
pub mod owners;
#[cfg(feature = "server")]
mod shape;
#[cfg(all(test, feature = "server"))]
mod tests;
#[cfg(feature = "server")]
mod token;
#[cfg(feature = "server")]
mod translate;

use rialto_core::alias::Protocol;
use rialto_core::time::Millis;

/// The protocol's id.
pub const ID: Protocol = Protocol::new("registry");

/// Operator settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Accept the identity that a body claims, without proof.
    pub open: bool,
    /// How long a request waits for its job's result.
    pub sync_wait: Millis,
    /// How long an assigned worker may stay silent.
    pub lease: Millis,
    /// Show the hub's URL instead of the agent's own.
    pub hide_endpoints: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            open: false,
            sync_wait: Millis::seconds(30),
            lease: Millis::minutes(10),
            hide_endpoints: false,
        }
    }
}
