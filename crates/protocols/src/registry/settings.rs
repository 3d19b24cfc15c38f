//! The settings of this protocol.

use std::sync::Arc;

use rialto_config::{ConfigDuration, Layers, NonZeroDuration, choices};
use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rialto_engine::secret::HubSecret;

use super::RegistryState;
use crate::adapter::OpenProtocol;
use crate::adapter::settings::{Authentication, ProtocolSettings};

choices! {
    /// Which endpoint `/discover` shows for an agent.
    DiscoverEndpoint {
        /// The agent's own endpoint.
        Agent = "agent",
        /// The hub's endpoint, so that every call passes through the hub.
        Hub = "hub",
    }
}

/// Operator settings.
#[derive(Clone, Debug)]
pub struct Settings {
    pub authentication: Authentication,
    /// How long an agent counts as online after its last request.
    pub heartbeat_ttl: Millis,
    /// How long a synchronous request waits for the result before it answers `PENDING`.
    pub sync_wait: Millis,
    pub discover_endpoint: DiscoverEndpoint,
}

impl Settings {
    pub fn read(layers: &mut Layers<'_>) -> Self {
        let ttl: NonZeroDuration = layers.resolve("registry.heartbeat_ttl", "90s");
        let wait: ConfigDuration = layers.resolve("registry.sync_wait", "30s");
        Self {
            authentication: layers.resolve("auth.registry", ("key", "open")),
            heartbeat_ttl: ttl.millis(),
            sync_wait: wait.millis(),
            discover_endpoint: layers.resolve("registry.discover_endpoint", "agent"),
        }
    }

    /// Whether the identity that a body claims is accepted without proof.
    pub fn is_open(&self) -> bool {
        self.authentication == Authentication::Open
    }
}

impl ProtocolSettings for Settings {
    fn set_rules(&self, rules: &mut Rules) {
        rules.presence_ttl = self.heartbeat_ttl;
    }

    fn open(&self, _: &HubSecret) -> Arc<dyn OpenProtocol> {
        Arc::new(RegistryState { settings: self.clone() })
    }
}
