//! `GET /agora`: the hub's key and its endpoints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubInfo {
    /// `agora/1.0`.
    pub protocol: String,
    /// The hub's own key, as did:key.
    pub hub: String,
    /// The largest difference between a timestamp and the hub's clock.
    pub window_ms: i64,
    /// Paths by purpose.
    pub endpoints: BTreeMap<String, String>,
}
