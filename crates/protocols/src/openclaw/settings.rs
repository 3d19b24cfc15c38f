//! What an operator may change.

use rialto_core::time::Millis;

/// The protocol's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether callers without a key are taken at their word, as agents of this protocol.
    pub open: bool,
    /// The response time that is worth nothing any more (R43).
    pub response_scale: Millis,
    /// How long accepted work may take that has neither deadline nor estimate (R82).
    pub lease: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        Self { open: false, response_scale: Millis::seconds(10), lease: Millis::hours(1) }
    }
}
