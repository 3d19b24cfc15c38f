//! Settings: what every protocol declares of its own, and what the hub tells all protocols.

use std::fmt::Debug;
use std::sync::Arc;

use rialto_config::{Layers, Profile};
use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rialto_engine::secret::HubSecret;

use super::OpenProtocol;

rialto_config::choices! {
    /// How callers of a protocol authenticate.
    Authentication {
        /// Always with a key.
        Key = "key",
        /// With the agent id in the body, without a key: for development only.
        Open = "open",
    }
}

/// The settings of one protocol, read and ready to open it.
pub trait ProtocolSettings: Debug + Send + Sync {
    /// Sets the rules of core that its settings determine.
    fn set_rules(&self, _: &mut Rules) {}

    /// Opens the protocol at the hub with this secret.
    fn open(&self, secret: &HubSecret) -> Arc<dyn OpenProtocol>;
}

/// The settings of the hub that concern every protocol.
#[derive(Clone, Copy, Debug)]
pub struct HubSettings {
    /// How long an assigned worker may be silent; `None` leaves it to each protocol.
    pub lease: Option<Millis>,
    /// How long offers are collected before one is accepted.
    pub auction_window: Millis,
    /// Writes per minute of one agent; 0 for no limit.
    pub writes_per_minute: u64,
}

impl HubSettings {
    /// How long an assigned worker may be silent, in a protocol with this default.
    pub fn lease_or(&self, default: Millis) -> Millis {
        self.lease.unwrap_or(default)
    }
}

impl Default for HubSettings {
    fn default() -> Self {
        Self { lease: None, auction_window: Millis::seconds(2), writes_per_minute: 600 }
    }
}

/// Reads the settings of every protocol.
pub fn read_all(layers: &mut Layers<'_>) -> Vec<Arc<dyn ProtocolSettings>> {
    crate::ALL.iter().map(|adapter| adapter.read_settings(layers)).collect()
}

/// Every protocol, opened with its default settings.
pub fn open_with_defaults(secret: &HubSecret) -> Vec<Arc<dyn OpenProtocol>> {
    let settings = read_all(&mut Layers::new(Profile::Serve));
    settings.iter().map(|settings| settings.open(secret)).collect()
}
