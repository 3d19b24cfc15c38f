//! What the agents report during the demo: who did what, with which other agent, for how much.

use rialto_core::money::Credits;
use serde::Serialize;

use super::role::Who;
use super::balance::Amount;

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beat {
    /// Posts a job for another agent.
    Hires,
    /// Defers a request: it will decide later.
    Defers,
    /// Accepts a job.
    Accepts,
    /// Offers a price.
    Offers,
    /// Its offer is accepted.
    IsTaken,
    /// Declines a job.
    Declines,
    /// Posts an auction.
    Auctions,
    /// Fails to do its job.
    Fails,
    /// Gets back the credits held for a failed job.
    IsRefunded,
    /// Delivers a result.
    Delivers,
    /// Receives a result and pays for it.
    Pays,
}

/// One action, as reported by the agent that did it.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    pub at_ms: u64,
    pub who: Who,
    pub protocol: &'static str,
    pub beat: Beat,
    /// The other agent, if there is one.
    pub with: Option<Who>,
    pub amount: Option<Amount>,
    /// The same as text for people.
    pub said: String,
}

/// An action before it is reported.
#[derive(Clone, Debug)]
pub struct Deed {
    pub beat: Beat,
    pub with: Option<Who>,
    pub amount: Option<Credits>,
}

impl Beat {
    /// An action that involves another agent.
    pub fn with(self, other: Who) -> Deed {
        Deed { beat: self, with: Some(other), amount: None }
    }

    /// An action that involves no other agent.
    pub fn alone(self) -> Deed {
        Deed { beat: self, with: None, amount: None }
    }
}

impl Deed {
    /// Adds an amount.
    pub fn of(self, amount: Credits) -> Self {
        Self { amount: Some(amount), ..self }
    }
}
