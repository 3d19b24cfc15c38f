//! The settings that an operator may change.

use rialto_core::time::Millis;

/// The protocol's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether callers without a key may act for agents of this protocol.
    pub open: bool,
    /// The response time that scores zero (R43).
    pub response_scale: Millis,
    /// How long accepted work may take that has neither a deadline nor an estimate (R82).
    pub lease: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        Self { open: false, response_scale: Millis::seconds(10), lease: Millis::hours(1) }
    }
}
