//! Settings: what every protocol declares of its own, and what the hub tells all protocols.

use std::fmt::Debug;
use std::sync::Arc;

use rialto_config::{Layers, Profile};
use rialto_core::money::Credits;
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
    pub mcp: McpSettings,
}

/// The settings of MCP.
#[derive(Clone, Copy, Debug)]
pub struct McpSettings {
    /// Whether it is served.
    pub enabled: bool,
    /// Whether callers without a key act as one guest agent.
    pub guest: bool,
    /// What a key without limits of its own may spend on one job or transfer; `None` is no limit.
    pub per_job: Option<Credits>,
    /// The same for one day.
    pub per_day: Option<Credits>,
    /// How long a call is waited for before it is answered with a task.
    pub task_after: Millis,
    /// The highest price of a skill that is a tool, where the address names no other.
    pub max_price: Credits,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            guest: false,
            per_job: Some(Credits::from_micros(10_000_000)),
            per_day: Some(Credits::from_micros(100_000_000)),
            task_after: Millis(500),
            max_price: Credits::from_micros(1_000_000),
        }
    }
}

impl HubSettings {
    /// How long an assigned worker may be silent, in a protocol with this default.
    pub fn lease_or(&self, default: Millis) -> Millis {
        self.lease.unwrap_or(default)
    }
}

impl Default for HubSettings {
    fn default() -> Self {
        Self {
            lease: None,
            auction_window: Millis::seconds(2),
            writes_per_minute: 600,
            mcp: McpSettings::default(),
        }
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
