//! What the agents tell while they play: who did what, with whom, and for how much.

use rialto_core::money::Credits;
use serde::Serialize;

use super::cast::Who;
use super::purse::Amount;

/// A kind of thing that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beat {
    /// It asks somebody for work.
    Hires,
    /// It will look at the request again later.
    Defers,
    /// It takes the work on.
    Accepts,
    /// It names its price.
    Offers,
    /// Its price is taken.
    IsTaken,
    /// It does not want the work.
    Declines,
    /// It asks the market for prices.
    Auctions,
    /// It could not do what it was hired for.
    Fails,
    /// What was set aside for work that failed is its own again.
    IsRefunded,
    /// It delivers.
    Delivers,
    /// It has what it asked for, and has paid for it.
    Pays,
}

/// One thing that was done, as whoever did it tells it.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    pub at_ms: u64,
    pub who: Who,
    pub protocol: &'static str,
    pub beat: Beat,
    /// The other one, if there is one.
    pub with: Option<Who>,
    pub amount: Option<Amount>,
    /// The same for people.
    pub said: String,
}

/// An event before it is told.
#[derive(Clone, Debug)]
pub struct Deed {
    pub beat: Beat,
    pub with: Option<Who>,
    pub amount: Option<Credits>,
}

impl Beat {
    /// Done to or for somebody.
    pub fn with(self, other: Who) -> Deed {
        Deed { beat: self, with: Some(other), amount: None }
    }

    /// Done to nobody in particular.
    pub fn alone(self) -> Deed {
        Deed { beat: self, with: None, amount: None }
    }
}

impl Deed {
    /// The same for so much.
    pub fn of(self, amount: Credits) -> Self {
        Self { amount: Some(amount), ..self }
    }
}
