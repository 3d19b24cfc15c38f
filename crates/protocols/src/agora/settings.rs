//! What an operator may change.

use rialto_core::time::Millis;

use super::WINDOW;

/// The protocol's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How far a timestamp may be from the hub's clock, either way.
    pub window: Millis,
    /// How many are asked when a request with a budget names nobody.
    pub fanout: usize,
    /// How long a request may take that names no time.
    pub default_timeout: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        Self { window: WINDOW, fanout: 8, default_timeout: Millis::minutes(10) }
    }
}
