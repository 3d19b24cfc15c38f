//! The demo's agents: their roles, protocols and prices.

use std::fmt;

use rialto_core::money::Credits;
use serde::{Serialize, Serializer};

/// An agent of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    Reader,
    Editor,
    Scout,
    Checker,
    Verifier,
    Polyglot,
    Newsstand,
    Crier,
    Herald,
    Courier,
}

/// All agents, in the order in which they start.
pub const ALL: [Role; 10] = [
    Role::Reader,
    Role::Editor,
    Role::Scout,
    Role::Checker,
    Role::Verifier,
    Role::Polyglot,
    Role::Newsstand,
    Role::Crier,
    Role::Herald,
    Role::Courier,
];

impl Role {
    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reader => "Reader",
            Self::Editor => "Editor",
            Self::Scout => "Scout",
            Self::Checker => "Checker",
            Self::Verifier => "Verifier",
            Self::Polyglot => "Polyglot",
            Self::Newsstand => "Newsstand",
            Self::Crier => "Crier",
            Self::Herald => "Herald",
            Self::Courier => "Courier",
        }
    }

    /// The name in lower case.
    pub fn slug(self) -> String {
        self.name().to_lowercase()
    }

    /// The protocol it speaks.
    pub fn protocol(self) -> &'static str {
        match self {
            Self::Reader | Self::Checker | Self::Verifier => "registry",
            Self::Editor => "openclaw",
            Self::Scout | Self::Courier => "agora",
            Self::Polyglot => "relay",
            Self::Newsstand | Self::Crier | Self::Herald => "clara",
        }
    }

    /// The role with this name in any protocol's spelling: `chimera-editor` is the Editor.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("chimera-").unwrap_or(name);
        ALL.into_iter().find(|who| who.name().eq_ignore_ascii_case(name))
    }

    /// Credits it is granted at the start: agents that hire need something to pay with.
    pub fn initial_credits(self) -> Credits {
        match self {
            Self::Reader => credits(100),
            Self::Editor => credits(20),
            Self::Newsstand => credits(6),
            _ => Credits::ZERO,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// The Reader's price for a bulletin.
pub const BULLETIN_PRICE: Credits = credits(20);
/// The Editor's maximum price for news, and the Scout's price: agora and openclaw count in
/// micro-credits.
pub const NEWS_BUDGET: Credits = credits(5);
pub const NEWS_PRICE: Credits = Credits::from_micros(3_141_593);
/// Prices of the two fact checkers.
pub const CHECK_PRICE: Credits = credits(2);
pub const SECOND_CHECK_PRICE: Credits = Credits::from_micros(2_500_000);
/// The Newsstand's price.
pub const ANNOUNCEMENT_PRICE: Credits = credits(8);
/// The Newsstand's maximum price for its announcement, the Herald's bid, and the Courier's listed
/// price.
pub const AUCTION_BUDGET: Credits = credits(6);
pub const HERALD_BID: Credits = credits(5);
pub const COURIER_PRICE: Credits = Credits::from_micros(3_600_000);
/// The Courier's price in clara's whole credits, which is what is paid.
pub const COURIER_SHOWN_PRICE: Credits = credits(4);

const fn credits(whole: i64) -> Credits {
    Credits::from_micros(whole * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_known_by_its_name_as_each_protocol_writes_it() {
        for (name, who) in [("Scout", Role::Scout), ("chimera-editor", Role::Editor)] {
            assert_eq!(Role::from_name(name), Some(who));
        }
        assert_eq!(Role::from_name("polyglot"), Some(Role::Polyglot));
        assert_eq!(Role::from_name("stranger"), None);
    }
}
