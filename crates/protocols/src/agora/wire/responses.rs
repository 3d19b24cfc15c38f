//! The JSON of the hub's responses: its key and endpoints, the directory (section 2.6), inboxes and
//! requests.
//!
//! An inbox has envelopes as their senders signed them, each with the hub's receipt. Both are
//! copied as text, byte for byte.

use std::collections::BTreeMap;

use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::api_doc::SignedEnvelope;
use super::error::Failure;
use super::status::RequestState;
use crate::agora::DECIMALS;
use crate::kit::fields::Fields;
use crate::kit::ijson::Json;
use crate::kit::raw_json::Number;
use crate::kit::{jcs, raw_json, rfc3339};

/// `GET /agora`: the hub's key and its endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HubInfo {
    /// `agora/1.0`.
    pub protocol: String,
    /// The hub's own key, as did:key.
    pub hub: String,
    /// The largest difference between a timestamp and the hub's clock.
    pub window_ms: i64,
    /// Paths by purpose.
    pub endpoints: BTreeMap<String, String>,
}

/// One agent, native or bridged.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentEntry {
    /// Its key as did:key; for a bridged agent, the key that the hub holds for it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its capabilities.
    pub capabilities: Vec<CapabilityEntry>,
    /// Its status: `idle`, `busy`, `error`, `maintenance` or `offline`.
    pub status: String,
    /// Its home protocol.
    pub protocol: String,
    /// The hub that holds its key, as did:key; `null` for an agent with its own key.
    pub held_by: Option<String>,
    /// For a bridged agent: its id in its home protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
}

/// One capability.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityEntry {
    /// Its name.
    pub resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price: Option<Number>,
    /// Its description, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl CapabilityEntry {
    /// A capability as the hub shows it.
    pub fn new(resource: String, price: Option<Credits>, description: Option<String>) -> Self {
        Self { resource, price: price.map(|price| raw_json::amount(price, 0)), description }
    }

    /// Its price; `None` if it has none, or if the price is not a valid amount.
    pub fn price(&self) -> Option<Credits> {
        read_amount(self.price.as_ref()?)
    }
}

/// `GET /agents`: one page of agents.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DirectoryPage {
    /// The agents.
    pub agents: Vec<AgentEntry>,
    /// The cursor of the next page; `null` on the last.
    pub next_cursor: Option<String>,
}

/// `GET /messages`: one page of an inbox.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InboxPage<'a> {
    /// The waiting envelopes, oldest first.
    #[serde(borrow)]
    pub messages: Vec<InboxMessage<'a>>,
    /// The position after which the next page begins.
    pub next_after: u64,
}

/// One envelope and its position in the inbox.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InboxMessage<'a> {
    /// Its position, which never changes.
    pub position: u64,
    /// The envelope as it was received.
    #[serde(borrow)]
    #[schemars(with = "SignedEnvelope")]
    pub envelope: &'a RawValue,
    /// The hub's receipt; `null` for envelopes of the hub itself.
    #[serde(borrow)]
    #[schemars(with = "Option<SignedEnvelope>")]
    pub receipt: Option<&'a RawValue>,
}

/// The data of an SSE event `envelope`. The event's id is its position.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct InboxEvent<'a> {
    /// The envelope as it was received.
    #[serde(borrow)]
    #[schemars(with = "SignedEnvelope")]
    pub envelope: &'a RawValue,
    /// The hub's receipt; `null` for envelopes of the hub itself.
    #[serde(borrow)]
    #[schemars(with = "Option<SignedEnvelope>")]
    pub receipt: Option<&'a RawValue>,
}

/// Writes the data of an SSE event from JSON texts, without parsing them again.
pub fn write_event(envelope: &str, receipt: Option<&str>) -> String {
    ["{\"envelope\":", envelope, ",\"receipt\":", receipt.unwrap_or("null"), "}"].concat()
}

/// Writes one item of [`InboxPage`] in the same way.
pub fn write_message(position: u64, envelope: &str, receipt: Option<&str>) -> String {
    let receipt = receipt.unwrap_or("null");
    format!("{{\"position\":{position},\"envelope\":{envelope},\"receipt\":{receipt}}}")
}

/// Writes a whole page from its items.
pub fn write_page(items: &[String], next_after: u64) -> String {
    format!("{{\"messages\":[{}],\"next_after\":{next_after}}}", items.join(","))
}

/// The body of `POST /inbox/ack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ack {
    /// The last position that was processed.
    pub up_to: u64,
}

impl Ack {
    /// Reads the body.
    pub fn read(json: &Json<'_>) -> Result<Self, Failure> {
        let f = Fields::read(json, "")?;
        let up_to = f.required("up_to", f.integer("up_to")?)?;
        match u64::try_from(up_to) {
            Ok(up_to) => Ok(Self { up_to }),
            Err(_) => Err(f.malformed("up_to", "must not be negative").into()),
        }
    }
}

/// The answer of `POST /inbox/ack`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AckAnswer {
    /// The position up to which everything is acknowledged.
    pub acked_to: u64,
    /// The number of envelopes after it.
    pub pending: u64,
}

/// `GET /requests/{id}`: the state of a request, for its parties.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
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
        let is_its = |view: &Self| view.requester.as_deref().is_none_or(|one| one == requester);
        if is_its(&self) { Some(self) } else { self.others.into_iter().find(is_its) }
    }
}

/// One of the offers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OfferView {
    /// The id of the OFFER.
    pub offer_id: String,
    /// The agent that made it, as did:key.
    pub provider: String,
    cost: Number,
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
        read_amount(&self.cost)
    }
}

/// An amount; `None` if it is not a valid one.
fn read_amount(number: &Number) -> Option<Credits> {
    Credits::parse(&jcs::canonical_number(number.get()).ok()?, DECIMALS).ok()
}
