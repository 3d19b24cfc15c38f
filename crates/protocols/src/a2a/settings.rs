//! The settings of this protocol.

use std::sync::Arc;

use rialto_config::{ConfigDuration, Layers, NonZeroDuration};
use rialto_core::time::Millis;
use rialto_engine::secret::HubSecret;

use super::A2aState;
use crate::adapter::OpenProtocol;
use crate::adapter::settings::{Authentication, ProtocolSettings};

rialto_config::choices! {
    /// Which members cards have unless their reader asks for version 1.0.
    CardMembers {
        /// Those of 1.0 and those of 0.3.
        Both = "both",
        /// Those of 1.0 alone.
        Strict = "1.0",
    }
}

/// The protocol's settings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub authentication: Authentication,
    pub card: CardMembers,
    /// How long a send waits for the end of its task.
    pub sync_wait: Millis,
    /// When a task without a deadline expires.
    pub task_ttl: Millis,
}

impl Settings {
    pub fn read(layers: &mut Layers<'_>) -> Self {
        let sync_wait: ConfigDuration = layers.resolve("a2a.sync_wait", "10m");
        let task_ttl: NonZeroDuration = layers.resolve("a2a.task_ttl", "24h");
        Self {
            authentication: layers.resolve("auth.a2a", ("key", "open")),
            card: layers.resolve("a2a.card", "both"),
            sync_wait: sync_wait.millis(),
            task_ttl: task_ttl.millis(),
        }
    }

    /// Whether callers without a key are served as a guest.
    pub fn is_open(&self) -> bool {
        self.authentication == Authentication::Open
    }
}

impl ProtocolSettings for Settings {
    fn open(&self, secret: &HubSecret) -> Arc<dyn OpenProtocol> {
        Arc::new(A2aState::new(*self, secret))
    }
}
