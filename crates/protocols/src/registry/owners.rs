//! Owner names: which are free, and which are confusable with others (T3).
//!
//! A new name must not be confusable with another owner's, in any case or script. An existing owner
//! is found only by its exact spelling (`adapter::naming::canonical_owner_name`).

use std::sync::LazyLock;

use super::wire::{RESERVED_OWNERS, reserved_prefix};
use crate::kit::confusables;

/// The skeleton of the hub's own names.
const HUB: &str = "hub:";

/// The skeletons of name prefixes that only the hub gives.
static RESERVED_LOOKS: LazyLock<Vec<String>> =
    LazyLock::new(|| RESERVED_OWNERS.into_iter().flat_map(confusables::skeletons).collect());

/// The skeletons of an owner's name; none for names the hub gives to owners of other protocols,
/// which check their names themselves.
pub fn owner_skeletons(name: &str) -> Vec<String> {
    match reserved_prefix(name) {
        Some(HUB) => vec![HUB.to_owned()],
        Some(_) => Vec::new(),
        None => {
            let looks = confusables::skeletons(name);
            let reserved =
                |look: &String| RESERVED_LOOKS.iter().any(|begins| look.starts_with(begins));
            // A name that imitates a reserved prefix gets the hub's skeleton, and is never free.
            if looks.iter().any(reserved) { vec![HUB.to_owned()] } else { looks }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_protocols_are_compared_as_they_are_written() {
        for name in ["relay:Bob@chorus", "clara:AbC", "openclaw:x", "agora:did:key:z6Mk"] {
            assert!(owner_skeletons(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn what_dresses_up_as_the_hubs_name_looks_like_the_hub() {
        let hub = owner_skeletons("hub:issuance");
        assert!(!hub.is_empty());
        for name in
            ["Relay:bob@chorus", "reIay:bob", "CLARA:x", "с1ara:x", "HUB:x", "agora\u{a789}x"]
        {
            assert_eq!(owner_skeletons(name), hub, "{name}");
        }
        for name in ["acme", "relay", "relays:x", "my relay:x", "hub"] {
            assert_ne!(owner_skeletons(name), hub, "{name}");
        }
    }
}
