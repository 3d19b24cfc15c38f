//! The JSON of `GET /requests/{id}`: the state of a request, for its parties.

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::DECIMALS;
use crate::kit::{jcs, raw_json, rfc3339};

/// The state of a request (section 2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RequestState {
    /// It was sent.
    Pending,
    /// There are offers.
    Negotiating,
    /// An agent is working on it.
    Processing,
    /// The work is done.
    Completed,
    /// The work failed; this is final.
    Failed,
}

impl RequestState {
    /// All states.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Negotiating, Self::Processing, Self::Completed, Self::Failed];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Negotiating => "NEGOTIATING",
            Self::Processing => "PROCESSING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
        }
    }

    /// Reads the name on the wire.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// The answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequestView {
    /// The id of the REQUEST.
    pub request_id: String,
    /// Its state.
    pub state: RequestState,
    /// The agent that works on it, as did:key.
    pub provider: Option<String>,
    /// The offers, oldest first.
    pub offers: Vec<OfferView>,
    /// When it times out, as RFC 3339.
    pub deadline: Option<String>,
    /// The requester, as did:key. Present where several requesters use the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<String>,
    /// Requests of other requesters with the same id to the same reader.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<RequestView>,
}

impl RequestView {
    /// Of all requests with this id, the one of this requester.
    pub fn for_requester(self, requester: &str) -> Option<Self> {
        let Self { others, .. } = &self;
        let is_its = |thread: &Self| thread.requester.as_deref().is_none_or(|one| one == requester);
        match is_its(&self) {
            true => Some(self),
            false => others.iter().find(|thread| is_its(thread)).cloned(),
        }
    }
}

/// One of the offers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OfferView {
    /// The id of the OFFER.
    pub offer_id: String,
    /// The agent that made it, as did:key.
    pub provider: String,
    cost: Box<RawValue>,
    /// How long the work would take, in milliseconds.
    pub eta: i64,
    /// Until when it can be accepted, as RFC 3339.
    pub expires_at: String,
}

impl OfferView {
    /// An offer as the hub shows it.
    pub fn new(
        offer_id: String,
        provider: String,
        cost: Credits,
        eta: Millis,
        expires_at: Timestamp,
    ) -> Self {
        let (cost, expires_at) = (raw_json::amount(cost, 0), rfc3339::format_millis(expires_at));
        Self { offer_id, provider, cost, eta: eta.0, expires_at }
    }

    /// Its price; `None` if it is not a valid amount.
    pub fn cost(&self) -> Option<Credits> {
        Credits::parse(&jcs::canonical_number(self.cost.get()).ok()?, DECIMALS).ok()
    }
}
