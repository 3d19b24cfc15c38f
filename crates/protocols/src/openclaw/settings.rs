//! The settings of this protocol.

use std::sync::Arc;

use rialto_config::{Layers, NonZeroDuration};
use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rialto_engine::secret::HubSecret;

use super::OpenclawState;
use crate::adapter::OpenProtocol;
use crate::adapter::settings::{Authentication, ProtocolSettings};

/// The protocol's settings.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub authentication: Authentication,
    /// The response time that scores zero (R43).
    pub response_scale: Millis,
    /// How long a request waits for a human's approval.
    pub approval_window: Millis,
}

impl Settings {
    pub fn read(layers: &mut Layers<'_>) -> Self {
        let scale: NonZeroDuration = layers.resolve("openclaw.response_scale", "10s");
        let window: NonZeroDuration = layers.resolve("openclaw.approval_window", "1h");
        Self {
            authentication: layers.resolve("auth.openclaw", ("key", "open")),
            response_scale: scale.millis(),
            approval_window: window.millis(),
        }
    }

    /// Whether callers without a key may act for agents of this protocol.
    pub fn is_open(&self) -> bool {
        self.authentication == Authentication::Open
    }
}

impl ProtocolSettings for Settings {
    fn set_rules(&self, rules: &mut Rules) {
        rules.approval_timeout = self.approval_window;
    }

    fn open(&self, secret: &HubSecret) -> Arc<dyn OpenProtocol> {
        Arc::new(OpenclawState::new(*self, secret))
    }
}
