//! The demo's agents: their roles, protocols and prices.

use std::fmt;

use rialto_core::money::Credits;
use serde::{Serialize, Serializer};

/// An agent of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
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
pub const ALL: [Who; 10] = [
    Who::Reader,
    Who::Editor,
    Who::Scout,
    Who::Checker,
    Who::Verifier,
    Who::Polyglot,
    Who::Newsstand,
    Who::Crier,
    Who::Herald,
    Who::Courier,
];

impl Who {
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
    pub fn named(name: &str) -> Option<Self> {
        let name = name.strip_prefix("chimera-").unwrap_or(name);
        ALL.into_iter().find(|who| who.name().eq_ignore_ascii_case(name))
    }

    /// Credits it is granted at the start: agents that hire need something to pay with.
    pub fn granted(self) -> Credits {
        match self {
            Self::Reader => credits(100),
            Self::Editor => credits(20),
            Self::Newsstand => credits(6),
            _ => Credits::ZERO,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Who {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// The Reader's price for a bulletin.
pub const BULLETIN: Credits = credits(20);
/// The Editor's maximum price for news, and the Scout's price: agora and openclaw count in
/// micro-credits.
pub const NEWS_BID: Credits = credits(5);
pub const NEWS: Credits = Credits::from_micros(3_141_593);
/// Prices of the two fact checkers.
pub const CHECK: Credits = credits(2);
pub const SECOND_CHECK: Credits = Credits::from_micros(2_500_000);
/// The Newsstand's price.
pub const SPREADING: Credits = credits(8);
/// The Newsstand's maximum price for its announcement, the Herald's bid, and the Courier's listed
/// price.
pub const CRYING_BID: Credits = credits(6);
pub const HERALD_BID: Credits = credits(5);
pub const COURIER_BID: Credits = Credits::from_micros(3_600_000);
/// The Courier's price in clara's whole credits, which is what is paid.
pub const COURIER_SHOWN: Credits = credits(4);

const fn credits(whole: i64) -> Credits {
    Credits::from_micros(whole * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_known_by_its_name_as_each_protocol_writes_it() {
        for (name, who) in [("Scout", Who::Scout), ("chimera-editor", Who::Editor)] {
            assert_eq!(Who::named(name), Some(who));
        }
        assert_eq!(Who::named("polyglot"), Some(Who::Polyglot));
        assert_eq!(Who::named("stranger"), None);
    }
}
