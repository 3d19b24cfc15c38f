//! How the market picks who does a task (R25).

use serde::Deserialize;

/// A way to pick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Whoever's turn it is. Also what is meant when nothing is said (D16).
    #[default]
    RoundRobin,
    /// The lowest fee.
    Cheapest,
    /// Whoever offers to do it for least, in a sealed auction.
    Query,
    /// Whoever has least to do.
    LeastOccupied,
    /// Everybody who can.
    Broadcast,
}

impl Strategy {
    /// All of them: the spec's first, then ours.
    pub const ALL: [Self; 5] =
        [Self::RoundRobin, Self::Cheapest, Self::Query, Self::LeastOccupied, Self::Broadcast];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "roundRobin",
            Self::Cheapest => "cheapest",
            Self::Query => "query",
            Self::LeastOccupied => "leastOccupied",
            Self::Broadcast => "broadcast",
        }
    }

    /// What a word means.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == text)
    }
}
