//! Agents and tasks: to register, and as the market returns them.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::clara::Strategy;
use rialto_protocols::clara::wire::record::{self, AgentRecord};
use rialto_protocols::clara::wire::register::{format_price, read_price};
use rialto_protocols::clara::wire::task::{TaskQuery, TaskRecord, TaskResult};
use rialto_protocols::kit::ijson;
use serde::Deserialize;

use crate::call::CallError;

/// An agent's profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its unique name.
    pub id: String,
    /// Its topic: `tweet`, `discord`, `telegram` or `nft`, unless the market supports more.
    pub topic: String,
    /// Its minimum price, in whole credits.
    pub fee: Credits,
    /// Additional data: JSON text.
    pub metadata: String,
}

/// A task to register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    topic: String,
    reward: Credits,
    payload: String,
    strategy: Strategy,
    agent_id: Option<String>,
    context_id: Option<String>,
    target: Option<String>,
}

impl TaskSpec {
    /// A task on a topic with a maximum price in whole credits; the payload is JSON text. Agents
    /// are picked round-robin, unless [`TaskSpec::strategy`] sets another strategy.
    pub fn new(topic: impl Into<String>, reward: Credits, payload: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            reward,
            payload: payload.into(),
            strategy: Strategy::default(),
            agent_id: None,
            context_id: None,
            target: None,
        }
    }

    /// Sets how the agent is picked.
    pub fn strategy(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// Registers the task in the name of one of your own agents, which is then not picked.
    pub fn as_agent(self, agent_id: impl Into<String>) -> Self {
        Self { agent_id: Some(agent_id.into()), ..self }
    }

    /// Sets the context the task belongs to.
    pub fn context(self, context_id: impl Into<String>) -> Self {
        Self { context_id: Some(context_id.into()), ..self }
    }

    /// Sets the only agent that may do the task.
    pub fn target(self, agent_id: impl Into<String>) -> Self {
        Self { target: Some(agent_id.into()), ..self }
    }

    pub(super) fn payload(&self) -> &str {
        &self.payload
    }

    /// The tags. The caller keeps the values so that all of them can be borrowed.
    pub(super) fn tags<'a>(&'a self, reward: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut tags = vec![
            ("RedStone-Agent-Topic", self.topic.as_str()),
            ("RedStone-Agent-Reward", reward),
            ("RedStone-Agent-Matching", self.strategy.as_str()),
        ];
        let more = [
            ("RedStone-Agent-Id", &self.agent_id),
            ("Context-Id", &self.context_id),
            ("Target-Agent-Id", &self.target),
        ];
        tags.extend(more.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
        tags
    }

    /// Checks the task and returns the reward as text.
    pub(super) fn check(&self) -> Result<String, CallError> {
        check_json("payload", &self.payload)?;
        check_whole_credits("reward", self.reward)
    }
}

impl Profile {
    /// Checks the profile and returns the fee as text.
    pub(super) fn check(&self) -> Result<String, CallError> {
        check_json("metadata", &self.metadata)?;
        check_whole_credits("fee", self.fee)
    }
}

/// A task, assigned to an agent or waiting for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The id of the message that registered it.
    pub id: String,
    /// The assigned agent; `None` while the task waits.
    pub agent_id: Option<String>,
    /// The requester's address.
    pub requester: String,
    /// The payment.
    pub reward: Credits,
    /// How the agent was picked.
    pub strategy: Strategy,
    /// The task's payload: JSON text; `null` if the market does not show it.
    pub payload: String,
    /// The topic an agent must support.
    pub topic: String,
    /// The context it belongs to.
    pub context_id: String,
    /// When it was registered.
    pub registered_at: Timestamp,
}

/// A query: at what price would the agent do this task?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The task's id.
    pub task_id: String,
    /// The agent that is asked.
    pub agent_id: String,
    /// The requester's address.
    pub requester: String,
    /// The maximum price.
    pub max_reward: Credits,
    /// The task's payload: JSON text; `null` if the market does not show it.
    pub payload: String,
    /// The topic an agent must support.
    pub topic: String,
    /// Until when offers are accepted, by the market's clock.
    pub closes_at: Timestamp,
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskOutcome {
    /// The task's id.
    pub task_id: String,
    /// The agent that did it.
    pub agent_id: String,
    /// The agent's address.
    pub worker_address: String,
    /// The result: JSON text; `null` if the market does not show it.
    pub result: String,
    /// When the market received it.
    pub received_at: Timestamp,
}

/// All agents of a market, as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentList(pub(super) String);

impl AgentList {
    /// The agents.
    pub fn agents(&self) -> Result<Vec<AgentRecord<'_>>, CallError> {
        read_record(&self.0)
    }
}

impl Task {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        read_record(text).map(Self::of)
    }

    fn of(task: TaskRecord<'_>) -> Self {
        Self {
            id: task.id.into_owned(),
            agent_id: task.agent_id.map(Into::into),
            requester: task.requester.into_owned(),
            reward: task.reward,
            strategy: task.strategy,
            payload: json_or_null(task.payload),
            topic: task.topic.into_owned(),
            context_id: task.context_id.into_owned(),
            registered_at: task.timestamp,
        }
    }
}

impl Query {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        let query: TaskQuery<'_> = read_record(text)?;
        Ok(Self {
            task_id: query.id.into_owned(),
            agent_id: query.agent_id.into_owned(),
            requester: query.requester.into_owned(),
            max_reward: query.max_reward,
            payload: json_or_null(query.payload),
            topic: query.topic.into_owned(),
            closes_at: query.closes_at,
        })
    }
}

impl TaskOutcome {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        let done: TaskResult<'_> = read_record(text)?;
        Ok(Self {
            task_id: done.id.into_owned(),
            agent_id: done.agent_id.into_owned(),
            worker_address: done.sender.into_owned(),
            result: json_or_null(done.result),
            received_at: done.timestamp,
        })
    }
}

/// Parses a list of tasks.
pub(super) fn parse_tasks(text: &str) -> Result<Vec<Task>, CallError> {
    let tasks: Vec<TaskRecord<'_>> = read_record(text)?;
    Ok(tasks.into_iter().map(Task::of).collect())
}

fn json_or_null(json: Option<&str>) -> String {
    json.unwrap_or("null").to_owned()
}

fn read_record<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, CallError> {
    record::read_record(text).map_err(CallError::unreadable)
}

/// Checks for whole credits from 1 up. The market supports no fractions, and rounding would change
/// the amount.
pub(super) fn check_whole_credits(what: &str, credits: Credits) -> Result<String, CallError> {
    let text = format_price(credits);
    if read_price(&text) != Some(credits) {
        return Err(CallError::invalid(format!("the {what} must be whole credits"), None));
    }
    Ok(text)
}

/// Checks for JSON text of any type.
pub(super) fn check_json(what: &str, text: &str) -> Result<(), CallError> {
    let invalid = |_| CallError::invalid(format!("the {what} must be JSON text"), None);
    ijson::read(text.as_bytes()).map(drop).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credits(micros: i64) -> Credits {
        Credits::from_micros(micros)
    }

    #[test]
    fn a_task_is_checked_before_it_is_signed() {
        let task = TaskSpec::new("tweet", credits(50_000_000), r#"{"say":1}"#);
        assert_eq!(task.check().expect("sound"), "50");
        let broken = TaskSpec::new("tweet", credits(50_000_000), "{");
        assert!(broken.check().is_err());
        for micros in [0, -1_000_000, 1, 1_500_000] {
            assert!(TaskSpec::new("tweet", credits(micros), "1").check().is_err(), "{micros}");
        }
    }

    #[test]
    fn what_is_not_set_has_no_tag() {
        let task = TaskSpec::new("tweet", credits(1_000_000), "1").strategy(Strategy::Cheapest);
        let plain = [
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Reward", "1"),
            ("RedStone-Agent-Matching", "cheapest"),
        ];
        assert_eq!(task.tags("1"), plain);
        let full = task.as_agent("A").context("C").target("B");
        let more = [("RedStone-Agent-Id", "A"), ("Context-Id", "C"), ("Target-Agent-Id", "B")];
        assert_eq!(full.tags("1"), [plain.as_slice(), more.as_slice()].concat());
    }
}
