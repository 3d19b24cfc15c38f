//! A task that is put to auction: the data of `Agent-Task-Query` (2.7).

use std::borrow::Cow;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use serde::Deserialize;

use super::read;
use crate::clara::price;
use crate::clara::strategy::Strategy;
use crate::kit::object::Object;

/// What an agent is asked to make an offer for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Query<'a> {
    /// The task.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Who is asked.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// Who wants it: an address.
    #[serde(borrow)]
    pub requester: Cow<'a, str>,
    /// The most that is paid.
    #[serde(deserialize_with = "read::price")]
    pub max_reward: Credits,
    /// JSON text for the agent; left out where it is not public (R20).
    #[serde(borrow, default, deserialize_with = "read::maybe_raw")]
    pub payload: Option<&'a str>,
    /// What an agent must be able to do.
    #[serde(borrow)]
    pub topic: Cow<'a, str>,
    /// When the task was registered.
    pub timestamp: Timestamp,
    /// How many messages the market had seen then.
    pub block: u64,
    /// Until when offers are taken.
    pub closes_at: Timestamp,
}

impl Query<'_> {
    /// Writes the record.
    pub fn write(&self) -> String {
        Object::new()
            .text("id", &self.id)
            .text("agentId", &self.agent_id)
            .text("requester", &self.requester)
            .text("maxReward", &price::text(self.max_reward))
            .text("matchingStrategy", Strategy::Query.as_str())
            .maybe_raw("payload", self.payload)
            .text("topic", &self.topic)
            .whole("timestamp", self.timestamp.0)
            .raw("block", &self.block.to_string())
            .whole("closesAt", self.closes_at.0)
            .finish()
    }
}
