//! Task records: the data of an assignment, and the entries of an inbox.

use std::borrow::Cow;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Deserializer};

use super::{KeyedRecord, read};
use crate::clara::price;
use crate::clara::strategy::Strategy;
use crate::kit::object::ObjectWriter;

/// A task as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord<'a> {
    /// The id of the message that registered it.
    pub id: Cow<'a, str>,
    /// The agent that does it; `None` while it is queued.
    pub agent_id: Option<Cow<'a, str>>,
    /// The requester's address.
    pub requester: Cow<'a, str>,
    /// The agent's fee (R38), or the highest reward while no agent is assigned.
    pub reward: Credits,
    /// How the agent was chosen.
    pub strategy: Strategy,
    /// JSON text for the agent. Left out where it is not public (R20).
    pub payload: Option<&'a str>,
    /// When it was registered.
    pub timestamp: Timestamp,
    /// The number of messages that the market had received by then.
    pub block: u64,
    /// The topic that an agent must have.
    pub topic: Cow<'a, str>,
    /// The context id that the requester gave, or the task's own id.
    pub context_id: Cow<'a, str>,
    /// The requester's own agent, if the order named one.
    pub requester_id: Option<Cow<'a, str>>,
}

impl TaskRecord<'_> {
    /// Writes the record. The strategy appears twice: the spec's text and its sample use different
    /// names (D5).
    pub fn write(&self) -> String {
        ObjectWriter::new()
            .text("id", &self.id)
            .maybe_text("agentId", self.agent_id.as_deref())
            .text("requester", &self.requester)
            .text("reward", &price::format_price(self.reward))
            .text("matchingStrategy", self.strategy.as_str())
            .text("strategy", self.strategy.as_str())
            .maybe_raw("payload", self.payload)
            .integer("timestamp", self.timestamp.0)
            .raw("block", &self.block.to_string())
            .text("topic", &self.topic)
            .text("contextId", &self.context_id)
            .maybe_text("requesterId", self.requester_id.as_deref())
            .finish()
    }
}

impl KeyedRecord for TaskRecord<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn agent_id(&self) -> &str {
        self.agent_id.as_deref().unwrap_or_default()
    }

    fn write(&self) -> String {
        TaskRecord::write(self)
    }
}

/// The members that processes write. Some leave out the topic, and some write the strategy once.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskMembers<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    agent_id: Option<String>,
    #[serde(borrow)]
    requester: Cow<'a, str>,
    #[serde(deserialize_with = "read::price")]
    reward: Credits,
    matching_strategy: Option<Strategy>,
    strategy: Option<Strategy>,
    #[serde(borrow, default, deserialize_with = "read::maybe_raw")]
    payload: Option<&'a str>,
    timestamp: Timestamp,
    block: u64,
    topic: Option<String>,
    context_id: Option<String>,
    requester_id: Option<String>,
}

impl<'de: 'a, 'a> Deserialize<'de> for TaskRecord<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let printed = TaskMembers::deserialize(from)?;
        Ok(Self {
            agent_id: printed.agent_id.map(Cow::Owned),
            requester: printed.requester,
            reward: printed.reward,
            strategy: printed.strategy.or(printed.matching_strategy).unwrap_or_default(),
            payload: printed.payload,
            timestamp: printed.timestamp,
            block: printed.block,
            topic: printed.topic.unwrap_or_default().into(),
            context_id: printed.context_id.map_or_else(|| printed.id.clone(), Cow::Owned),
            requester_id: printed.requester_id.map(Cow::Owned),
            id: printed.id,
        })
    }
}
