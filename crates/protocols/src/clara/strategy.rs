//! How the market chooses the agent for a task (R25).

use serde::Deserialize;

/// A matching strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Round robin. Also the default (D16).
    #[default]
    RoundRobin,
    /// The lowest fee.
    Cheapest,
    /// The lowest bid in a sealed auction.
    Query,
    /// The agent with the fewest open tasks.
    LeastOccupied,
    /// All agents that can do it.
    Broadcast,
}

impl Strategy {
    /// All strategies: the spec's first, then the hub's own.
    pub const ALL: [Self; 5] =
        [Self::RoundRobin, Self::Cheapest, Self::Query, Self::LeastOccupied, Self::Broadcast];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "roundRobin",
            Self::Cheapest => "cheapest",
            Self::Query => "query",
            Self::LeastOccupied => "leastOccupied",
            Self::Broadcast => "broadcast",
        }
    }

    /// Reads the name on the wire.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == text)
    }
}
