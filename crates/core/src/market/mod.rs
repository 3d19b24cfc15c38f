//! Markets: protocols with a public record of every step they take.
//!
//! An order is posted under an id of its own by whoever signed it, and is carried out once, for ever. What
//! came of it, and what the market then tells its agents, is one posting; what happens by itself or is
//! asked for elsewhere gives a posting as well. The words are the protocol's: it writes them through a
//! [`Scribe`] while the step is being decided, so what was published never changes afterwards.

pub mod post;
pub mod publish;
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
pub use post::{Deed, Opening, Post};

/// A protocol with a public record, and who writes it.
#[derive(Clone, Debug)]
pub struct Market {
    pub protocol: Protocol,
    pub scribe: Arc<dyn Scribe>,
}

/// One step, as it was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    pub id: PostingId,
    pub at: Timestamp,
    /// The order it came of; `None` for what happened by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Whether it is part of the list that everybody may read.
    pub shown: bool,
    /// In the protocol's own words.
    pub text: String,
    /// What was asked, in those words, where a part of the answer is not kept but worked out whenever it is
    /// read: an order that only reads must not make the record longer than itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}

/// Writes what a market publishes.
pub trait Scribe: Send + Sync + fmt::Debug {
    /// The words for a step.
    fn write(&self, step: &Step<'_, '_>) -> Written;
}

/// What happened in one step.
pub struct Step<'a, 'w> {
    /// Everything as it stands after the step.
    pub draft: &'a Draft<'w>,
    /// What came of the order, if there was one.
    pub outcome: Option<Result<&'a Answer, &'a Refusal>>,
    /// What agents of the market are told.
    pub notices: Vec<Arc<Notice>>,
    /// How many orders were posted before this one, or until now.
    pub posts: u64,
    /// The number of the first message that is sent.
    pub first_message: u64,
}

/// The words for a step, and how many messages they contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub text: String,
    pub messages: u64,
    pub shown: bool,
    /// What was asked, if a part of the answer is not in the text.
    pub question: Option<String>,
}
