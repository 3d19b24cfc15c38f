//! The settings of this protocol.

use std::sync::Arc;

use rialto_config::{Layers, NonZeroDuration, choices, names};
use rialto_core::time::Millis;
use rialto_engine::secret::HubSecret;

use super::RelayState;
use super::wire::address::RESERVED_HOSTS;
use crate::adapter::OpenProtocol;
use crate::adapter::settings::ProtocolSettings;

/// An address has at most 128 characters; the longest name and the `@` leave this many.
const HOST_MAX: usize = 63;

choices! {
    /// What happens to a message whose receiver is offline.
    Offline {
        /// It is queued.
        Queue = "queue",
        /// It fails at once.
        Fail = "fail",
    }

    /// The HTTP status of a response that reports a failed delivery.
    FailedStatus {
        /// 200, as the protocol specifies: the failure is in the body.
        Ok = "ok",
        /// An error status, for clients that check only the status.
        Error = "error",
    }
}

names! {
    /// The host that short names belong to.
    Host by read_host, "at most 63 letters, digits, dots, dashes and underscores", "chorus";
}

fn read_host(text: &str) -> Result<String, &'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if text.is_empty() || text.len() > HOST_MAX || !text.bytes().all(allowed) {
        return Err("is empty, too long or has a character that is not allowed");
    }
    if text.ends_with('.') {
        return Err("ends in a dot");
    }
    if RESERVED_HOSTS.iter().any(|reserved| text.eq_ignore_ascii_case(reserved)) {
        return Err("is reserved for the hub's bridges");
    }
    Ok(text.to_owned())
}

/// The relay's settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host that short names belong to.
    pub host: String,
    pub offline: Offline,
    pub failed_status: FailedStatus,
    /// How long a message is kept for its receiver.
    pub retention: Millis,
    /// Public records show agents' endpoints.
    pub show_endpoints: bool,
    /// Accept envelopes from unknown senders, flagged as unverified.
    pub accept_direct: bool,
}

impl Settings {
    pub fn read(layers: &mut Layers<'_>) -> Self {
        let host: Host = layers.resolve("relay.host", "chorus");
        let retention: NonZeroDuration = layers.resolve("relay.retention", "30d");
        Self {
            host: host.to_string(),
            offline: layers.resolve("relay.offline", "queue"),
            failed_status: layers.resolve("relay.failed_status", "ok"),
            retention: retention.millis(),
            show_endpoints: layers.resolve("relay.show_endpoints", ("false", "true")),
            accept_direct: layers.resolve("relay.accept_direct", ("false", "true")),
        }
    }
}

impl ProtocolSettings for Settings {
    fn open(&self, secret: &HubSecret) -> Arc<dyn OpenProtocol> {
        Arc::new(RelayState::new(self.clone(), secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_never_collides_with_a_bridge() {
        assert!(read_host("chorus").is_ok());
        for text in ["", "agora", "Bridge", "a.", "a@b", "münchen", &"a".repeat(64)] {
            assert!(read_host(text).is_err(), "{text}");
        }
    }
}
