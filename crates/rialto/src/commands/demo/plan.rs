//! The plan: every step of the demo, each happening once, in an order that is easy to follow; and
//! what the hub's own history must contain.

use rialto_core::money::Credits;

use super::role::{self, Who};
use super::event::Beat::{
    self, Accepts, Auctions, Declines, Defers, Delivers, Fails, Hires, IsRefunded, IsTaken, Offers,
    Pays,
};
use super::event::Event;
use super::history::Fact;
use super::history::What::{self, Completed, Declined, Deferred, Failed, Offered};

/// One planned step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub who: Who,
    pub beat: Beat,
    pub with: Option<Who>,
    pub amount: Option<Credits>,
}

impl Step {
    /// Whether an event is this step.
    pub fn is(&self, event: &Event) -> bool {
        (self.who, self.beat, self.with) == (event.who, event.beat, event.with)
    }

    /// A description, for reporting a missing step.
    pub fn told(&self) -> String {
        let what = match self.beat {
            Hires => "hires",
            Defers => "defers",
            Accepts => "accepts the job of",
            Offers => "offers its price to",
            IsTaken => "has its offer accepted by",
            Declines => "declines the job of",
            Auctions => "asks the market for prices",
            Fails => "fails as planned for",
            IsRefunded => "is refunded what it held for",
            Delivers => "delivers to",
            Pays => "gets and pays for the work of",
        };
        let with = self.with.map(|other| format!(" {other}")).unwrap_or_default();
        format!("{} {what}{with}", self.who)
    }
}

const fn step(who: Who, beat: Beat, with: Who, amount: Option<Credits>) -> Step {
    Step { who, beat, with: Some(with), amount }
}

const fn free(who: Who, beat: Beat, with: Who) -> Step {
    step(who, beat, with, None)
}

const fn paid(who: Who, beat: Beat, with: Who, amount: Credits) -> Step {
    step(who, beat, with, Some(amount))
}

/// All steps.
pub const STEPS: [Step; 29] = {
    use Who::{
        Checker, Courier, Crier, Editor, Herald, Newsstand, Polyglot, Reader, Scout, Verifier,
    };
    [
        paid(Reader, Hires, Editor, role::BULLETIN),
        free(Editor, Defers, Reader),
        free(Editor, Accepts, Reader),
        paid(Editor, Hires, Scout, role::NEWS_BID),
        paid(Scout, Offers, Editor, role::NEWS),
        paid(Scout, IsTaken, Editor, role::NEWS),
        free(Scout, Delivers, Editor),
        paid(Editor, Pays, Scout, role::NEWS),
        paid(Editor, Hires, Checker, role::CHECK),
        free(Checker, Fails, Editor),
        paid(Editor, IsRefunded, Checker, role::CHECK),
        paid(Editor, Hires, Verifier, role::SECOND_CHECK),
        free(Verifier, Delivers, Editor),
        paid(Editor, Pays, Verifier, role::SECOND_CHECK),
        paid(Editor, Hires, Polyglot, Credits::ZERO),
        free(Polyglot, Delivers, Editor),
        paid(Editor, Pays, Polyglot, Credits::ZERO),
        paid(Editor, Hires, Newsstand, role::SPREADING),
        free(Newsstand, Accepts, Editor),
        Step { who: Newsstand, beat: Auctions, with: None, amount: Some(role::CRYING_BID) },
        free(Crier, Declines, Newsstand),
        paid(Herald, Offers, Newsstand, role::HERALD_BID),
        paid(Courier, IsTaken, Newsstand, role::COURIER_BID),
        free(Courier, Delivers, Newsstand),
        paid(Newsstand, Pays, Courier, role::COURIER_SHOWN),
        free(Newsstand, Delivers, Editor),
        paid(Editor, Pays, Newsstand, role::SPREADING),
        free(Editor, Delivers, Reader),
        paid(Reader, Pays, Editor, role::BULLETIN),
    ]
};

/// One event that the hub's history must contain.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    pub name: &'static str,
    of: Who,
    what: What,
    by: Who,
    paid: Option<Credits>,
}

impl Planned {
    /// Whether a fact is this event.
    pub fn is(&self, fact: &Fact) -> bool {
        (self.of, self.what, Some(self.by)) == (fact.of, fact.what, fact.by)
            && self.paid == fact.paid.map(|paid| paid.0)
    }
}

const fn word(name: &'static str, of: Who, what: What, by: Who) -> Planned {
    Planned { name, of, what, by, paid: None }
}

const fn end(name: &'static str, of: Who, what: What, by: Who, paid: Credits) -> Planned {
    Planned { name, of, what, by, paid: Some(paid) }
}

/// The deferral, the accepted offer, the decline, the bids and their winner, the failure, and the
/// payments.
pub const FACTS: [Planned; 12] = {
    use Who::{
        Checker, Courier, Crier, Editor, Herald, Newsstand, Polyglot, Reader, Scout, Verifier,
    };
    [
        word("one deferral", Reader, Deferred, Editor),
        word("one offer on a hire", Editor, Offered, Scout),
        end("the offer is accepted and paid", Editor, Completed, Scout, role::NEWS),
        end("one failure", Editor, Failed, Checker, Credits::ZERO),
        end("the second check", Editor, Completed, Verifier, role::SECOND_CHECK),
        end("the reply counts as work", Editor, Completed, Polyglot, Credits::ZERO),
        word("one decline", Newsstand, Declined, Crier),
        word("one bid from clara", Newsstand, Offered, Herald),
        word("one bid from agora", Newsstand, Offered, Courier),
        end("the lowest bid wins", Newsstand, Completed, Courier, role::COURIER_SHOWN),
        end("the announcement", Editor, Completed, Newsstand, role::SPREADING),
        end("the bulletin", Reader, Completed, Editor, role::BULLETIN),
    ]
};

/// The first planned step that has not happened.
pub fn next(told: &[Event]) -> Option<&'static Step> {
    STEPS.iter().find(|step| !told.iter().any(|event| step.is(event)))
}
