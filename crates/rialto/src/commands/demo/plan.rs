//! The plan: every step of the demo, each happening once, in an order that is easy to follow; and
//! what the hub's own history must contain.

use rialto_core::money::Credits;

use super::event::ActionKind::{
    self, Accepts, Auctions, Declines, Defers, Delivers, Fails, Hires, OfferAccepted, Offers, Pays,
    Refunded,
};
use super::event::Event;
use super::history::Fact;
use super::history::FactKind::{self, Completed, Declined, Deferred, Failed, Offered};
use super::role::{self, Role};

/// One planned step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub who: Role,
    pub beat: ActionKind,
    pub with: Option<Role>,
    pub amount: Option<Credits>,
}

impl Step {
    /// Whether an event is this step.
    pub fn matches(&self, event: &Event) -> bool {
        (self.who, self.beat, self.with) == (event.role, event.kind, event.with)
    }

    /// A description, for reporting a missing step.
    pub fn describe(&self) -> String {
        let what = match self.beat {
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
        format!("{} {what}{with}", self.who)
    }
}

const fn step(who: Role, beat: ActionKind, with: Role, amount: Option<Credits>) -> Step {
    Step { who, beat, with: Some(with), amount }
}

const fn free(who: Role, beat: ActionKind, with: Role) -> Step {
    step(who, beat, with, None)
}

const fn paid(who: Role, beat: ActionKind, with: Role, amount: Credits) -> Step {
    step(who, beat, with, Some(amount))
}

/// All steps.
pub const STEPS: [Step; 29] = {
    use Role::{
        Checker, Courier, Crier, Editor, Herald, Newsstand, Polyglot, Reader, Scout, Verifier,
    };
    [
        paid(Reader, Hires, Editor, role::BULLETIN_PRICE),
        free(Editor, Defers, Reader),
        free(Editor, Accepts, Reader),
        paid(Editor, Hires, Scout, role::NEWS_BUDGET),
        paid(Scout, Offers, Editor, role::NEWS_PRICE),
        paid(Scout, OfferAccepted, Editor, role::NEWS_PRICE),
        free(Scout, Delivers, Editor),
        paid(Editor, Pays, Scout, role::NEWS_PRICE),
        paid(Editor, Hires, Checker, role::CHECK_PRICE),
        free(Checker, Fails, Editor),
        paid(Editor, Refunded, Checker, role::CHECK_PRICE),
        paid(Editor, Hires, Verifier, role::SECOND_CHECK_PRICE),
        free(Verifier, Delivers, Editor),
        paid(Editor, Pays, Verifier, role::SECOND_CHECK_PRICE),
        paid(Editor, Hires, Polyglot, Credits::ZERO),
        free(Polyglot, Delivers, Editor),
        paid(Editor, Pays, Polyglot, Credits::ZERO),
        paid(Editor, Hires, Newsstand, role::ANNOUNCEMENT_PRICE),
        free(Newsstand, Accepts, Editor),
        Step { who: Newsstand, beat: Auctions, with: None, amount: Some(role::AUCTION_BUDGET) },
        free(Crier, Declines, Newsstand),
        paid(Herald, Offers, Newsstand, role::HERALD_BID),
        paid(Courier, OfferAccepted, Newsstand, role::COURIER_PRICE),
        free(Courier, Delivers, Newsstand),
        paid(Newsstand, Pays, Courier, role::COURIER_SHOWN_PRICE),
        free(Newsstand, Delivers, Editor),
        paid(Editor, Pays, Newsstand, role::ANNOUNCEMENT_PRICE),
        free(Editor, Delivers, Reader),
        paid(Reader, Pays, Editor, role::BULLETIN_PRICE),
    ]
};

/// One event that the hub's history must contain.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFact {
    pub name: &'static str,
    of: Role,
    what: FactKind,
    by: Role,
    paid: Option<Credits>,
}

impl PlannedFact {
    /// Whether a fact is this event.
    pub fn is(&self, fact: &Fact) -> bool {
        (self.of, self.what, Some(self.by)) == (fact.requester, fact.kind, fact.by)
            && self.paid == fact.paid.map(|paid| paid.0)
    }
}

const fn planned_fact(name: &'static str, of: Role, what: FactKind, by: Role) -> PlannedFact {
    PlannedFact { name, of, what, by, paid: None }
}

const fn planned_end(
    name: &'static str,
    of: Role,
    what: FactKind,
    by: Role,
    paid: Credits,
) -> PlannedFact {
    PlannedFact { name, of, what, by, paid: Some(paid) }
}

/// The deferral, the accepted offer, the decline, the bids and their winner, the failure, and the
/// payments.
pub const FACTS: [PlannedFact; 12] = {
    use Role::{
        Checker, Courier, Crier, Editor, Herald, Newsstand, Polyglot, Reader, Scout, Verifier,
    };
    [
        planned_fact("one deferral", Reader, Deferred, Editor),
        planned_fact("one offer on a hire", Editor, Offered, Scout),
        planned_end("the offer is accepted and paid", Editor, Completed, Scout, role::NEWS_PRICE),
        planned_end("one failure", Editor, Failed, Checker, Credits::ZERO),
        planned_end("the second check", Editor, Completed, Verifier, role::SECOND_CHECK_PRICE),
        planned_end("the reply counts as work", Editor, Completed, Polyglot, Credits::ZERO),
        planned_fact("one decline", Newsstand, Declined, Crier),
        planned_fact("one bid from clara", Newsstand, Offered, Herald),
        planned_fact("one bid from agora", Newsstand, Offered, Courier),
        planned_end(
            "the lowest bid wins",
            Newsstand,
            Completed,
            Courier,
            role::COURIER_SHOWN_PRICE,
        ),
        planned_end("the announcement", Editor, Completed, Newsstand, role::ANNOUNCEMENT_PRICE),
        planned_end("the bulletin", Reader, Completed, Editor, role::BULLETIN_PRICE),
    ]
};

/// The first planned step that has not happened.
pub fn next_step(told: &[Event]) -> Option<&'static Step> {
    STEPS.iter().find(|step| !told.iter().any(|event| step.matches(event)))
}
