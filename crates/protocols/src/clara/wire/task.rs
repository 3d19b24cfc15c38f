//! Records of tasks, results and queries, as the directory and the market's messages show them
//! (2.6, 2.7).

use std::borrow::Cow;

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Deserializer};

use super::action::Strategy;
use super::record::{KeyedRecord, deserialize_maybe_raw, deserialize_price};
use super::register::format_price;
use crate::kit::object::ObjectWriter;

/// A task as it is shown: the data of an assignment, and an entry of an inbox.
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
        /// Space for everything but the payload.
        const AROUND: usize = 512;
        ObjectWriter::with_capacity(AROUND + self.payload.map_or(0, str::len))
            .text("id", &self.id)
            .maybe_text("agentId", self.agent_id.as_deref())
            .text("requester", &self.requester)
            .text("reward", &format_price(self.reward))
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
    #[serde(deserialize_with = "deserialize_price")]
    reward: Credits,
    matching_strategy: Option<Strategy>,
    strategy: Option<Strategy>,
    #[serde(borrow, default, deserialize_with = "deserialize_maybe_raw")]
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

/// The result of a task: an entry of an outbox, and the data of `Task-Result`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult<'a> {
    /// The task's id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The agent that did it.
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    /// The agent's address.
    #[serde(borrow)]
    pub sender: Cow<'a, str>,
    /// The requester's address (R48).
    #[serde(borrow)]
    pub recipient: Cow<'a, str>,
    /// JSON text for the requester. Left out where it is not public (R20).
    #[serde(borrow, default, deserialize_with = "deserialize_maybe_raw")]
    pub result: Option<&'a str>,
    /// When the result arrived.
    pub timestamp: Timestamp,
    /// The number of messages that the market had received by then.
    pub block: u64,
}

impl TaskResult<'_> {
    /// Writes the record.
    pub fn write(&self) -> String {
        self.object().finish()
    }

    /// Writes the record as deployed processes do, including the task.
    pub fn write_with_task(&self, task: &TaskRecord<'_>) -> String {
        self.object().text("agentAddress", &self.sender).raw("originalTask", &task.write()).finish()
    }

    fn object(&self) -> ObjectWriter {
        ObjectWriter::new()
            .text("id", &self.id)
            .text("agentId", &self.agent_id)
            .text("sender", &self.sender)
            .text("recipient", &self.recipient)
            .maybe_raw("result", self.result)
            .integer("timestamp", self.timestamp.0)
            .raw("block", &self.block.to_string())
    }
}

impl KeyedRecord for TaskResult<'_> {
    fn id(&self) -> &str {
        &self.id
    }

    fn agent_id(&self) -> &str {
        &self.agent_id
    }

    fn write(&self) -> String {
        TaskResult::write(self)
    }
}

/// A query that asks an agent for an offer in an auction: the data of `Agent-Task-Query`.
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
    #[serde(deserialize_with = "deserialize_price")]
    pub max_reward: Credits,
    /// JSON text for the agent. Left out where it is not public (R20).
    #[serde(borrow, default, deserialize_with = "deserialize_maybe_raw")]
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
            .text("maxReward", &format_price(self.max_reward))
            .text("matchingStrategy", Strategy::Query.as_str())
            .maybe_raw("payload", self.payload)
            .text("topic", &self.topic)
            .integer("timestamp", self.timestamp.0)
            .raw("block", &self.block.to_string())
            .integer("closesAt", self.closes_at.0)
            .finish()
    }
}
