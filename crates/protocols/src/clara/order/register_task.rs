//! `Register-Task`: requested work and the highest reward for it.

use rialto_core::money::Credits;

use super::{AGENT_ID, TOPIC, json};
use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;
use crate::clara::process::Dialect;
use crate::clara::strategy::Strategy;
use crate::clara::topics::Topics;
use crate::clara::{BROADCAST, price};

/// A task as its requester registers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterTask<'a> {
    /// The topic that an agent must have.
    pub topic: &'a str,
    /// The highest reward.
    pub reward: Credits,
    /// How to choose an agent. Ignored for the topic `broadcast` (D9).
    pub strategy: Strategy,
    /// The requester's own agent, which is never chosen (R33).
    pub agent_id: Option<&'a str>,
    /// The requester's id for the context of the task.
    pub context_id: Option<&'a str>,
    /// The only agent that may do it (R42).
    pub target_agent_id: Option<&'a str>,
    /// The skill of that agent, if it has several (B19).
    pub capability: Option<&'a str>,
    /// JSON text for the agent.
    pub payload: &'a str,
}

impl<'a> RegisterTask<'a> {
    /// Reads the order from a message.
    pub fn read(
        message: &IncomingMessage<'a>,
        topics: &Topics,
        dialect: Dialect,
    ) -> Result<Self, OrderError> {
        let topic = message.tag(TOPIC);
        let topic = topic
            .filter(|topic| topics.allows_task(topic, dialect))
            .ok_or_else(|| OrderError::UnknownTopic(topic.map(str::to_owned)))?;
        let reward = message.tag("RedStone-Agent-Reward").and_then(price::read_price);
        let reward = reward.ok_or(OrderError::BadReward)?;
        let strategy = message.tag("RedStone-Agent-Matching").map(|word| {
            Strategy::read(word).ok_or_else(|| OrderError::UnknownStrategy(word.to_owned()))
        });
        Ok(Self {
            topic,
            reward,
            strategy: strategy.transpose()?.unwrap_or_default(),
            agent_id: message.tag(AGENT_ID),
            context_id: message.tag("Context-Id").filter(|given| !given.is_empty()),
            target_agent_id: message.tag("Target-Agent-Id"),
            capability: message.tag("Capability"),
            payload: json(message)?,
        })
    }

    /// Whether the topic sends the task to every registered agent (R34).
    pub fn is_broadcast(&self) -> bool {
        self.topic == BROADCAST
    }
}
