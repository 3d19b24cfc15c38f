//! What became of an order.

use rialto_core::money::Credits;
use rialto_protocols::agora::Code;
use rialto_protocols::kit::ed25519::PublicKey;

use super::negotiation::Proposal;

/// How an order ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The work is here.
    Done(Work),
    /// Whoever was to do it says that it will not be done, or the hub does.
    Failed(Failed),
    /// None of these offers was taken, and the order was withdrawn.
    NoDeal {
        /// The id of the REQUEST.
        request_id: String,
        /// What was offered.
        offers: Vec<Proposal>,
    },
    /// Nothing came in time.
    TimedOut {
        /// The id of the REQUEST.
        request_id: String,
    },
}

/// Work that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The id of the REQUEST.
    pub request_id: String,
    /// Who did it.
    pub provider: PublicKey,
    /// The work: JSON text of an object. Parts that came before it went to the callback.
    pub data: String,
    /// Whether its provider calls it the whole of it, rather than the last part.
    pub whole: bool,
    /// What was agreed on; `None` where nobody negotiated.
    pub cost: Option<Credits>,
}

/// Work that will not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The id of the REQUEST.
    pub request_id: String,
    /// Who says so.
    pub by: PublicKey,
    /// What it means.
    pub code: Code,
    /// The number that was given, which may be none of the eight.
    pub number: i64,
    /// The same for people.
    pub message: String,
    /// What to do about it, if the hub knows.
    pub hint: Option<String>,
}
