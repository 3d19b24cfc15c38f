//! The plan: the agents, their protocols and prices, and every step of the demo, each happening once, in
//! an order that is easy to follow.

use std::fmt;

use rialto_core::money::Credits;
use serde::Serialize;

use crate::commands::v1::Amount;
use ActionKind::*;
use Role::*;

/// An agent of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
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
pub const ALL: [Role; 10] =
    [Reader, Editor, Scout, Checker, Verifier, Polyglot, Newsstand, Crier, Herald, Courier];

impl Role {
    /// Its display name, and the protocol it speaks.
    const fn about(self) -> (&'static str, &'static str) {
        match self {
            Reader => ("Reader", "a2a"),
            Editor => ("Editor", "openclaw"),
            Scout => ("Scout", "agora"),
            Checker => ("Checker", "registry"),
            Verifier => ("Verifier", "registry"),
            Polyglot => ("Polyglot", "relay"),
            Newsstand => ("Newsstand", "clara"),
            Crier => ("Crier", "clara"),
            Herald => ("Herald", "clara"),
            Courier => ("Courier", "agora"),
        }
    }

    pub fn name(self) -> &'static str {
        self.about().0
    }

    pub fn protocol(self) -> &'static str {
        self.about().1
    }

    /// The role with this name in any protocol's spelling: `chimera-editor` is the Editor.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("chimera-").unwrap_or(name);
        ALL.into_iter().find(|role| role.name().eq_ignore_ascii_case(name))
    }

    /// Credits it is granted at the start: agents that hire need something to pay with.
    pub fn initial_credits(self) -> Credits {
        match self {
            Reader => credits(100),
            Editor => credits(20),
            Newsstand => credits(6),
            _ => Credits::ZERO,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// Posts a job for another agent.
    Hires,
    /// Defers a request: it will decide later.
    Defers,
    Accepts,
    /// Offers a price.
    Offers,
    #[serde(rename = "is_taken")]
    OfferAccepted,
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

/// One planned step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub role: Role,
    pub kind: ActionKind,
    pub with: Option<Role>,
    pub amount: Option<Credits>,
}

impl Step {
    /// Whether an event is this step.
    pub fn matches(&self, event: &Event) -> bool {
        (self.role, self.kind, self.with) == (event.role, event.kind, event.with)
    }

    /// A description, for reporting a missing step.
    pub fn describe(&self) -> String {
        let action = match self.kind {
            Hires => "hires",
            Defers => "defers",
            Accepts => "accepts the job of",
            Offers => "offers its price to",
            OfferAccepted => "has its offer accepted by",
            Declines => "declines the job of",
            Auctions => "asks the market for prices",
            Fails => "fails as planned for",
            Refunded => "is refunded what it held for",
            Delivers => "delivers to",
            Pays => "gets and pays for the work of",
        };
        let with = self.with.map(|other| format!(" {other}")).unwrap_or_default();
        format!("{} {action}{with}", self.role)
    }
}

const fn free(role: Role, kind: ActionKind, with: Role) -> Step {
    Step { role, kind, with: Some(with), amount: None }
}

const fn paid(role: Role, kind: ActionKind, with: Role, amount: Credits) -> Step {
    Step { role, kind, with: Some(with), amount: Some(amount) }
}

/// All steps.
pub const STEPS: [Step; 29] = [
    paid(Reader, Hires, Editor, BULLETIN_PRICE),
    free(Editor, Defers, Reader),
    free(Editor, Accepts, Reader),
    paid(Editor, Hires, Scout, NEWS_BUDGET),
    paid(Scout, Offers, Editor, NEWS_PRICE),
    paid(Scout, OfferAccepted, Editor, NEWS_PRICE),
    free(Scout, Delivers, Editor),
    paid(Editor, Pays, Scout, NEWS_PRICE),
    paid(Editor, Hires, Checker, CHECK_PRICE),
    free(Checker, Fails, Editor),
    paid(Editor, Refunded, Checker, CHECK_PRICE),
    paid(Editor, Hires, Verifier, SECOND_CHECK_PRICE),
    free(Verifier, Delivers, Editor),
    paid(Editor, Pays, Verifier, SECOND_CHECK_PRICE),
    paid(Editor, Hires, Polyglot, Credits::ZERO),
    free(Polyglot, Delivers, Editor),
    paid(Editor, Pays, Polyglot, Credits::ZERO),
    paid(Editor, Hires, Newsstand, ANNOUNCEMENT_PRICE),
    free(Newsstand, Accepts, Editor),
    Step { role: Newsstand, kind: Auctions, with: None, amount: Some(AUCTION_BUDGET) },
    free(Crier, Declines, Newsstand),
    paid(Herald, Offers, Newsstand, HERALD_BID),
    paid(Courier, OfferAccepted, Newsstand, COURIER_PRICE),
    free(Courier, Delivers, Newsstand),
    paid(Newsstand, Pays, Courier, COURIER_SHOWN_PRICE),
    free(Newsstand, Delivers, Editor),
    paid(Editor, Pays, Newsstand, ANNOUNCEMENT_PRICE),
    free(Editor, Delivers, Reader),
    paid(Reader, Pays, Editor, BULLETIN_PRICE),
];

/// The first planned step that has not happened.
pub fn next_step(events: &[Event]) -> Option<&'static Step> {
    STEPS.iter().find(|step| !events.iter().any(|event| step.matches(event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_a_name_in_each_protocols_form() {
        for (name, role) in [("Scout", Scout), ("chimera-editor", Editor), ("polyglot", Polyglot)] {
            assert_eq!(Role::from_name(name), Some(role));
        }
        assert_eq!(Role::from_name("stranger"), None);
    }
}
