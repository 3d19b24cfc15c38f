//! The orders that register agents and tasks, their fees and rewards, and the messages of the
//! spec's examples.

use rialto_core::money::Credits;

use super::action::{Strategy, Topics};
use super::error::OrderError;
use super::message::{Dialect, IncomingMessage};
use super::order::{AGENT_ID, FEE, TOPIC, json, required};
use crate::clara::{AGENT_ID_MAX, BROADCAST, METADATA_MAX, PRICE_MAX, PROTOCOLS};
use crate::kit::ijson;
use crate::kit::name::check_name;

/// The most characters of a name.
const NAME_MAX: usize = 128;
/// Millionths in one credit.
const CREDIT: i64 = 1_000_000;

/// `Register-Agent-Profile`: an agent, its topic and its fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterAgent<'a> {
    /// Its unique id.
    pub id: &'a str,
    /// Its topic and lowest fee; `None` if it only posts tasks.
    pub service: Option<Service<'a>>,
    /// JSON text with its metadata.
    pub metadata: &'a str,
}

/// The service that an agent offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// The lowest fee.
    pub fee: Credits,
}

impl<'a> RegisterAgent<'a> {
    /// Reads the order from a message.
    pub fn read(
        message: &IncomingMessage<'a>,
        topics: &Topics,
        dialect: Dialect,
    ) -> Result<Self, OrderError> {
        let id = required(message, AGENT_ID)?;
        let topic = message.tag(TOPIC).filter(|topic| !topic.is_empty());
        if let Some(topic) = topic.filter(|topic| !topics.allows_agent(topic, dialect)) {
            return Err(OrderError::UnknownTopic(Some(topic.to_owned())));
        }
        // An agent without a service may leave out its fee, but an invalid fee is still an error.
        let fee = match message.tag(FEE) {
            None if topic.is_none() => None,
            fee => Some(fee.and_then(read_price).ok_or(OrderError::BadFee)?),
        };
        check_id(id)?;
        let metadata = json(message)?;
        if metadata.len() > METADATA_MAX {
            return Err(OrderError::MetadataTooLarge);
        }
        let service = topic.zip(fee).map(|(topic, fee)| Service { topic, fee });
        Ok(Self { id, service, metadata })
    }

    /// The agent's display name: a valid `name` in its metadata, otherwise its id.
    pub fn name(&self) -> String {
        let metadata = ijson::read(self.metadata.as_bytes()).ok();
        let name = metadata.as_ref().and_then(|metadata| match metadata.get("name")?.value() {
            ijson::JsonValue::String(name) => Some(name.trim()),
            _ => None,
        });
        let name = name.filter(|name| check_name(name, NAME_MAX).is_ok());
        name.unwrap_or(self.id).to_owned()
    }
}

/// Checks whether an agent may have this id (R5).
fn check_id(id: &str) -> Result<(), OrderError> {
    check_name(id, AGENT_ID_MAX).map_err(OrderError::BadAgentId)?;
    let reserved = |protocol: &&str| {
        id.split_once('/').is_some_and(|(first, _)| first.eq_ignore_ascii_case(protocol))
    };
    match PROTOCOLS.into_iter().find(reserved) {
        Some(protocol) => Err(OrderError::ReservedAgentId(protocol)),
        None => Ok(()),
    }
}

/// `Register-Task`: requested work and the highest reward for it.
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
        let reward = message.tag("RedStone-Agent-Reward").and_then(read_price);
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

/// Reads a fee or a reward in whole credits: digits only, without leading zeros, from 1 to
/// [`PRICE_MAX`] (R4, D10).
pub fn read_price(text: &str) -> Option<Credits> {
    let limits = CREDIT..=PRICE_MAX * CREDIT;
    read_sum(text).filter(|credits| limits.contains(&credits.micros()))
}

/// Reads whole credits of any size, such as a total. Zero is `0`.
pub fn read_sum(text: &str) -> Option<Credits> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let padded = text.len() > 1 && text.starts_with('0');
    let count: i64 = (digits && !padded).then(|| text.parse().ok()).flatten()?;
    count.checked_mul(CREDIT).map(Credits::from_micros)
}

/// Writes whole credits; fractions are cut off (2.5).
pub fn format_price(credits: Credits) -> String {
    credits.floor(0).to_text(0)
}

/// The fee at which a price of another protocol is listed: rounded up, and at least 1 (R79).
pub fn round_to_fee(price: Credits) -> Credits {
    let most = Credits::from_micros(PRICE_MAX * CREDIT);
    let rounded = price.ceil(0).unwrap_or(most);
    rounded.clamp(Credits::from_micros(CREDIT), most)
}

/// Tags and data of an example, as a client passes them to be signed or evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// Tag names and values, in order.
    pub tags: &'static [(&'static str, &'static str)],
    /// The data; `None` where the client inserts its own.
    pub data: Option<&'static str>,
}

/// Registers an agent.
pub const REGISTER_AGENT: Example = Example {
    tags: &[
        ("Action", "Register-Agent-Profile"),
        ("RedStone-Agent-Topic", "tweet"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Fee", "20"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
    ],
    data: Some(r#"{"image":"duh","description":"the best","url":"https://ppe.agent"}"#),
};

/// Lists the agents.
pub const LIST_AGENTS: Example = Example { tags: &[("Action", "List-Agents")], data: None };

/// Registers a task.
pub const REGISTER_TASK: Example = Example {
    tags: &[
        ("Action", "Register-Task"),
        ("RedStone-Agent-Topic", "tweet"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "cheapest"),
    ],
    data: Some(r#"{"prompt":"Foo bar"}"#),
};

/// Sends a result.
pub const SEND_RESULT: Example = Example {
    tags: &[
        ("Action", "Send-Result"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
        ("RedStone-Task-Id", "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-KFKA"),
        ("Protocol", "C.L.A.R.A."),
    ],
    data: Some(r#"{"result":"whatever"}"#),
};

/// Declines a task.
pub const DECLINE_TASK: Example = Example {
    tags: &[
        ("Action", "Decline-Task"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
        ("RedStone-Task-Id", "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-KFKA"),
        ("Protocol", "C.L.A.R.A."),
    ],
    data: None,
};

/// All examples, in the spec's order.
pub const EXAMPLES: [Example; 5] =
    [REGISTER_AGENT, LIST_AGENTS, REGISTER_TASK, SEND_RESULT, DECLINE_TASK];
