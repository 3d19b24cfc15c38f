//! What an operator can set.

use rialto_core::time::Millis;

/// The relay's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host that short names belong to.
    pub host: String,
    /// Messages to nobody who reads are refused instead of kept.
    pub refuse_offline: bool,
    /// A failed delivery is an HTTP error as well.
    pub failed_is_error: bool,
    /// How long a message is kept for its receiver.
    pub retention: Millis,
    /// Public records show where agents are called.
    pub show_endpoints: bool,
    /// Strangers may hand in envelopes, marked as unproven.
    pub accept_direct: bool,
    /// How long an agent of another protocol may be silent about work, and how long work lives.
    pub lease: Millis,
    /// Writes a minute for one key, as told to clients; 0 for no limit.
    pub writes_per_minute: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: "chorus".to_owned(),
            refuse_offline: false,
            failed_is_error: false,
            retention: Millis::hours(30 * 24),
            show_endpoints: false,
            accept_direct: false,
            lease: Millis::minutes(10),
            writes_per_minute: 600,
        }
    }
}
