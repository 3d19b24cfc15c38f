//! What the agents report during the demo: who did what, with which other agent, for how much.

use rialto_core::money::Credits;
use serde::Serialize;

use super::balance::Amount;
use super::role::Role;

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// Posts a job for another agent.
    Hires,
    /// Defers a request: it will decide later.
    Defers,
    /// Accepts a job.
    Accepts,
    /// Offers a price.
    Offers,
    /// Its offer is accepted.
    #[serde(rename = "is_taken")]
    OfferAccepted,
    /// Declines a job.
    Declines,
    /// Posts an auction.
    Auctions,
    /// Fails to do its job.
    Fails,
    /// Gets back the credits held for a failed job.
    #[serde(rename = "is_refunded")]
    Refunded,
    /// Delivers a result.
    Delivers,
    /// Receives a result and pays for it.
    Pays,
}

/// One action, as reported by the agent that did it.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    pub at_ms: u64,
    #[serde(rename = "who")]
    pub role: Role,
    pub protocol: &'static str,
    #[serde(rename = "beat")]
    pub kind: ActionKind,
    /// The other agent, if there is one.
    pub with: Option<Role>,
    pub amount: Option<Amount>,
    /// The same as text for people.
    #[serde(rename = "said")]
    pub text: String,
}

/// An action before it is reported.
#[derive(Clone, Debug)]
pub struct Action {
    pub beat: ActionKind,
    pub with: Option<Role>,
    pub amount: Option<Credits>,
}

impl ActionKind {
    /// An action that involves another agent.
    pub fn with_party(self, other: Role) -> Action {
        Action { beat: self, with: Some(other), amount: None }
    }

    /// An action that involves no other agent.
    pub fn without_party(self) -> Action {
        Action { beat: self, with: None, amount: None }
    }
}

impl Action {
    /// Adds an amount.
    pub fn for_amount(self, amount: Credits) -> Self {
        Self { amount: Some(amount), ..self }
    }
}
