//! The settings that an operator may change.

use rialto_core::time::Millis;

use super::WINDOW;

/// The protocol's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The largest difference between a timestamp and the hub's clock, either way.
    pub window: Millis,
    /// How many agents are asked for offers when a request with a budget names none.
    pub fanout: usize,
    /// The timeout of a request that has none.
    pub default_timeout: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        Self { window: WINDOW, fanout: 8, default_timeout: Millis::minutes(10) }
    }
}
