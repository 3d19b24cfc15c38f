//! Markets: protocols with a public record of every step.
//!
//! A signer submits an order under its own id, and the order is executed exactly once. Its result,
//! and the notices the market then sends to its agents, are one record. Timers and requests from
//! other protocols produce records as well. The protocol writes the text through a [`MarketRecorder`] while
//! the step is decided, so a published record never changes.

pub mod publish;
pub mod submission;
#[cfg(test)]
mod tests;

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
pub use submission::{MarketJobRequest, MarketOrder, MarketSubmission};

/// A protocol with a public record, and its recorder.
#[derive(Clone, Debug)]
pub struct Market {
    pub protocol: Protocol,
    pub recorder: Arc<dyn MarketRecorder>,
}

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
    /// The result of the order, if there was one.
    pub outcome: Option<Result<&'a Answer, &'a Refusal>>,
    /// The notices to agents of the market.
    pub notices: Vec<Arc<Notice>>,
    /// The number of orders submitted before this one, or until now.
    pub order_count: u64,
    /// The number of the first message that is sent.
    pub first_message: u64,
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
