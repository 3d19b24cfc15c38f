//! Markets: protocols with a public record of every step.
//!
//! A signer submits an order under its own id, and the order is executed exactly once. Its result,
//! and the notices the market then sends to its agents, are one record. Timers and requests from
//! other protocols produce records as well. The hub that decides has a [`MarketRecorder`] for each of
//! its markets, which writes the text while the step is decided, so a published record never changes.

pub mod publish;
pub mod submission;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::alias::Protocol;
use crate::answer::Answer;
use crate::draft::Draft;
use crate::id::PostingId;
use crate::notice::Notice;
use crate::refusal::Refusal;
use crate::time::Timestamp;

/// The protocols with a public record, and their recorders.
pub type Markets = BTreeMap<Protocol, Arc<dyn MarketRecorder>>;

/// One step, as published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketRecord {
    pub id: PostingId,
    pub at: Timestamp,
    /// The order it results from; `None` for a step without an order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "of")]
    pub order_id: Option<String>,
    /// Whether it is in the public list.
    #[serde(rename = "shown")]
    pub is_public: bool,
    /// In the protocol's own format.
    pub text: String,
    /// The query, if part of the answer is not stored but computed at each read: an order that only
    /// reads must not make the record longer than itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "question")]
    pub query: Option<String>,
}

/// Writes what a market publishes.
pub trait MarketRecorder: Send + Sync + fmt::Debug {
    /// The content for a step.
    fn write(&self, step: &MarketStep<'_, '_>) -> RecordContent;
}

/// What happened in one step.
pub struct MarketStep<'a, 'w> {
    /// The state after the step.
    pub draft: &'a Draft<'w>,
    /// The order that was executed, if there was one.
    pub order: Option<OrderOutcome<'a>>,
    /// The notices to agents of the market.
    pub notices: Vec<Arc<Notice>>,
    /// The number of orders submitted before this one, or until now.
    pub order_count: u64,
    /// The number of the first message that is sent.
    pub first_message: u64,
}

/// An order and its result.
#[derive(Clone, Copy, Debug)]
pub struct OrderOutcome<'a> {
    /// How the market replies, as the order says in the market's own format.
    pub reply: &'a str,
    pub result: Result<&'a Answer, &'a Refusal>,
}

/// The text of a step, and how many messages it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordContent {
    pub text: String,
    pub messages: u64,
    pub shown: bool,
    /// The query, if part of the answer is not in the text.
    pub question: Option<String>,
}
