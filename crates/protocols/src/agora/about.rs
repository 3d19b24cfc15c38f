//! `GET /agora`: which hub this is and where it listens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// `agora/1.0`.
    pub protocol: String,
    /// The hub's own key, as did:key.
    pub hub: String,
    /// How far a timestamp may be from the hub's clock.
    pub window_ms: i64,
    /// Paths by what they are for.
    pub endpoints: BTreeMap<String, String>,
}
