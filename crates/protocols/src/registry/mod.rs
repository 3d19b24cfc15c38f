//! registry: Chorus Protocol 0.1. Agents sell skills; orchestrators hire them by the job.
//!
//! Everything this protocol calls by its own words stays in this folder. What it shares with the
//! relay protocol is a word in a name, nothing else.

pub mod wire;

#[cfg(feature = "server")]
mod codes;
#[cfg(feature = "server")]
mod courier;
#[cfg(feature = "server")]
mod examples;
#[cfg(feature = "server")]
pub mod face;
#[cfg(feature = "server")]
pub mod lent;
#[cfg(feature = "server")]
pub mod opening;
#[cfg(feature = "server")]
pub mod owners;
#[cfg(feature = "server")]
mod proof;
#[cfg(feature = "server")]
mod routes;
#[cfg(feature = "server")]
mod shape;
#[cfg(feature = "server")]
mod sides;
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

/// What an operator can set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Take everybody's word for who they are.
    pub open: bool,
    /// How long a job's answer is waited for.
    pub sync_wait: Millis,
    /// How long an assigned worker may be silent.
    pub lease: Millis,
    /// Show the hub's address instead of the agent's own.
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
