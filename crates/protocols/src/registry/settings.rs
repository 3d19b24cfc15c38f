//! Operator settings of this protocol.

use rialto_core::time::Millis;

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
