//! Operator settings of the relay.

use rialto_core::time::Millis;

/// The relay's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host that short names belong to.
    pub host: String,
    /// Refuse messages to receivers that cannot be reached, instead of storing them.
    pub refuse_offline: bool,
    /// Report a failed delivery as an HTTP error as well.
    pub failed_is_error: bool,
    /// How long a message is kept for its receiver.
    pub retention: Millis,
    /// Public records show agents' endpoints.
    pub show_endpoints: bool,
    /// Accept envelopes from unknown senders, flagged as unverified.
    pub accept_direct: bool,
    /// How long an agent of another protocol may stay silent about a job, and how long a job lives.
    pub lease: Millis,
    /// Writes per minute for one key, as reported to clients; 0 for no limit.
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
