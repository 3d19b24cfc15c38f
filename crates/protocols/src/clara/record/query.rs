//! Query records: a task in an auction, the data of `Agent-Task-Query` (2.7).

use std::borrow::Cow;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use serde::Deserialize;

use super::read;
use crate::clara::price;
use crate::clara::strategy::Strategy;
use crate::kit::object::ObjectWriter;

/// A query that asks an agent for an offer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskQuery<'a> {
    /// The task's id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The agent that is asked.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// The requester's address.
    #[serde(borrow)]
    pub requester: Cow<'a, str>,
    /// The highest reward.
    #[serde(deserialize_with = "read::price")]
    pub max_reward: Credits,
    /// JSON text for the agent. Left out where it is not public (R20).
    #[serde(borrow, default, deserialize_with = "read::maybe_raw")]
    pub payload: Option<&'a str>,
    /// The topic that an agent must have.
    #[serde(borrow)]
    pub topic: Cow<'a, str>,
    /// When the task was registered.
    pub timestamp: Timestamp,
    /// The number of messages that the market had received by then.
    pub block: u64,
    /// When the auction closes.
    pub closes_at: Timestamp,
}

impl TaskQuery<'_> {
    /// Writes the record.
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("id", &self.id)
            .text("agentId", &self.agent_id)
            .text("requester", &self.requester)
            .text("maxReward", &price::format_price(self.max_reward))
            .text("matchingStrategy", Strategy::Query.as_str())
            .maybe_raw("payload", self.payload)
            .text("topic", &self.topic)
            .integer("timestamp", self.timestamp.0)
            .raw("block", &self.block.to_string())
            .integer("closesAt", self.closes_at.0)
            .finish()
    }
}
