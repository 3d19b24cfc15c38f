//! The JSON of the inbox: envelopes as their senders signed them, each with the hub's receipt.
//!
//! Both are copied as text, byte for byte.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::Failure;
use crate::kit::fields::Fields;
use crate::kit::ijson::Json;

/// `GET /messages`: one page of an inbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InboxPage<'a> {
    /// The waiting envelopes, oldest first.
    #[serde(borrow)]
    pub messages: Vec<InboxMessage<'a>>,
    /// The position after which the next page begins.
    pub next_after: u64,
}

/// One envelope and its position in the inbox.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct InboxMessage<'a> {
    /// Its position, which never changes.
    pub position: u64,
    /// The envelope as it was received.
    #[serde(borrow)]
    pub envelope: &'a RawValue,
    /// The hub's receipt; `null` for envelopes of the hub itself.
    #[serde(borrow)]
    pub receipt: Option<&'a RawValue>,
}

/// The data of an SSE event `envelope`. The event's id is its position.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct InboxEvent<'a> {
    /// The envelope as it was received.
    #[serde(borrow)]
    pub envelope: &'a RawValue,
    /// The hub's receipt; `null` for envelopes of the hub itself.
    #[serde(borrow)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckAnswer {
    /// The position up to which everything is acknowledged.
    pub acked_to: u64,
    /// The number of envelopes after it.
    pub pending: u64,
}
