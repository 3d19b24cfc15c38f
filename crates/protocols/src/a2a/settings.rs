//! The settings of this protocol.

use std::sync::Arc;

use rialto_config::{ConfigDuration, InvalidValue, Layers, NonZeroDuration, Setting, quote_toml};
use rialto_core::time::Millis;
use rialto_engine::secret::HubSecret;
use url::Url;

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
#[derive(Clone, Debug)]
pub struct Settings {
    pub authentication: Authentication,
    pub card: CardMembers,
    /// How long a send waits for the end of its task.
    pub sync_wait: Millis,
    /// When a task without a deadline expires.
    pub task_ttl: Millis,
    /// How often the cards of agents with a server of their own are fetched again.
    pub refresh: Millis,
    /// Whether prices count only for agents whose card shows that it is their owner's.
    pub owner_proof: bool,
    /// Whether a card must be signed.
    pub require_signed: bool,
    /// Key sets that may sign cards of other hosts.
    pub trust_jku: Vec<KeySetUrl>,
}

/// The URL of a key set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySetUrl(String);

impl KeySetUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for KeySetUrl {
    const EXAMPLE: &'static str = "https://keys.example/jwks.json";

    fn expected() -> String {
        "a URL that begins with https:// or http://".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        let url = Url::parse(text).ok();
        match url.filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host()) {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(InvalidValue::new(text, "is not such a URL")),
        }
    }

    fn to_toml(&self) -> String {
        quote_toml(&self.0)
    }
}

impl Settings {
    pub fn read(layers: &mut Layers<'_>) -> Self {
        let sync_wait: ConfigDuration = layers.resolve("a2a.sync_wait", "10m");
        let task_ttl: NonZeroDuration = layers.resolve("a2a.task_ttl", "24h");
        let refresh: NonZeroDuration = layers.resolve("a2a.refresh", "1h");
        Self {
            authentication: layers.resolve("auth.a2a", ("key", "open")),
            card: layers.resolve("a2a.card", "both"),
            sync_wait: sync_wait.millis(),
            task_ttl: task_ttl.millis(),
            refresh: refresh.millis(),
            owner_proof: layers.resolve("a2a.owner_proof", ("true", "false")),
            require_signed: layers.resolve("a2a.require_signed", "false"),
            trust_jku: layers.resolve("a2a.trust_jku", ""),
        }
    }

    /// Whether callers without a key are served as a guest.
    pub fn is_open(&self) -> bool {
        self.authentication == Authentication::Open
    }
}

impl ProtocolSettings for Settings {
    fn open(&self, secret: &HubSecret) -> Arc<dyn OpenProtocol> {
        Arc::new(A2aState::new(self.clone(), secret))
    }
}
