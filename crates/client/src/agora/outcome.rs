//! The outcome of a request.

use rialto_core::money::Credits;
use rialto_protocols::agora::Code;
use rialto_protocols::kit::ed25519::PublicKey;

use super::negotiation_options::ReceivedOffer;

/// How a request ended.
#[derive(Clone, Debug)]
pub enum RequestOutcome {
    /// The work is done.
    Done(CompletedWork),
    /// The provider or the hub says that the work will not be done.
    Failed(RequestFailure),
    /// None of these offers was accepted, and the request was withdrawn.
    NoOfferAccepted {
        /// The id of the REQUEST.
        request_id: String,
        /// The offers.
        offers: Vec<ReceivedOffer>,
    },
    /// Nothing arrived in time.
    TimedOut {
        /// The id of the REQUEST.
        request_id: String,
    },
}

/// Completed work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedWork {
    /// The id of the REQUEST.
    pub request_id: String,
    /// The provider.
    pub provider: PublicKey,
    /// The result: a JSON object, as text. Earlier partial results went to the callback.
    pub data: String,
    /// Whether the provider marked it as complete, rather than as the last part.
    pub is_complete: bool,
    /// The agreed price; `None` without a negotiation.
    pub cost: Option<Credits>,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFailure {
    /// The id of the REQUEST.
    pub request_id: String,
    /// The sender of the ERROR.
    pub by: PublicKey,
    /// The error code.
    pub code: Code,
    /// The code's number as received, which may be none of the eight.
    pub number: i64,
    /// The error message, for people to read.
    pub message: String,
    /// The hub's advice on what to do.
    pub hint: Option<String>,
}
