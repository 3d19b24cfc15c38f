//! The settings of this protocol.

use std::num::NonZeroU32;
use std::sync::Arc;

use rialto_config::{Layers, NonZeroDuration};
use rialto_core::time::Millis;
use rialto_engine::secret::HubSecret;

use super::AgoraState;
use crate::adapter::OpenProtocol;
use crate::adapter::settings::ProtocolSettings;

/// The protocol's settings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest difference between a timestamp and the hub's clock, either way.
    pub window: Millis,
    /// How many agents are asked for offers when a request with a budget names none.
    pub fanout: usize,
    /// The timeout of a request that has none.
    pub default_timeout: Millis,
}

impl Settings {
    pub fn read(layers: &mut Layers<'_>) -> Self {
        let window: NonZeroDuration = layers.resolve("agora.window", "60s");
        let fanout: NonZeroU32 = layers.resolve("agora.fanout", "8");
        let timeout: NonZeroDuration = layers.resolve("agora.default_timeout", "10m");
        Self {
            window: window.millis(),
            fanout: fanout.get() as usize,
            default_timeout: timeout.millis(),
        }
    }
}

impl ProtocolSettings for Settings {
    fn open(&self, secret: &HubSecret) -> Arc<dyn OpenProtocol> {
        Arc::new(AgoraState::new(*self, secret))
    }
}
