//! Confusables: which names a reader could mistake for each other.
//!
//! Core knows nothing about scripts. The hub's setup supplies the skeleton functions. The world
//! builds its index from the rows it already has, so names given before the index existed count
//! too.

use crate::alias::Protocol;

/// Functions that compute the skeletons of a name. Two names with a common skeleton are confusable.
/// A name without skeletons is compared as written.
#[derive(Clone, Copy, Debug)]
pub struct Confusables {
    /// The skeletons of an owner's name.
    pub owner_skeletons: fn(&str) -> Vec<String>,
    /// The skeletons of an agent's native id in its protocol.
    pub agent_skeletons: fn(Protocol, &str) -> Vec<String>,
}

/// Each name is confusable only with itself.
impl Default for Confusables {
    fn default() -> Self {
        Self { owner_skeletons: |_| Vec::new(), agent_skeletons: |_, _| Vec::new() }
    }
}
