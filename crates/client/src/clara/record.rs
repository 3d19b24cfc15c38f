//! Data that a market returns, as owned values.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::clara::Strategy;
use rialto_protocols::clara::wire::record::{self, AgentRecord};
use rialto_protocols::clara::wire::task::{TaskQuery, TaskRecord, TaskResult};

use crate::call::CallError;

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
        record::read_record(&self.0).map_err(unreadable)
    }
}

impl Task {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        record::read_record(text).map(Self::of).map_err(unreadable)
    }

    fn of(task: TaskRecord<'_>) -> Self {
        Self {
            id: task.id.into_owned(),
            agent_id: task.agent_id.map(Into::into),
            requester: task.requester.into_owned(),
            reward: task.reward,
            strategy: task.strategy,
            payload: shown(task.payload),
            topic: task.topic.into_owned(),
            context_id: task.context_id.into_owned(),
            registered_at: task.timestamp,
        }
    }
}

impl Query {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        let query: TaskQuery<'_> = record::read_record(text).map_err(unreadable)?;
        Ok(Self {
            task_id: query.id.into_owned(),
            agent_id: query.agent_id.into_owned(),
            requester: query.requester.into_owned(),
            max_reward: query.max_reward,
            payload: shown(query.payload),
            topic: query.topic.into_owned(),
            closes_at: query.closes_at,
        })
    }
}

impl TaskOutcome {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        let done: TaskResult<'_> = record::read_record(text).map_err(unreadable)?;
        Ok(Self {
            task_id: done.id.into_owned(),
            agent_id: done.agent_id.into_owned(),
            worker_address: done.sender.into_owned(),
            result: shown(done.result),
            received_at: done.timestamp,
        })
    }
}

/// Parses a list of tasks.
pub(super) fn parse_tasks(text: &str) -> Result<Vec<Task>, CallError> {
    let tasks: Vec<TaskRecord<'_>> = record::read_record(text).map_err(unreadable)?;
    Ok(tasks.into_iter().map(Task::of).collect())
}

fn shown(json: Option<&str>) -> String {
    json.unwrap_or("null").to_owned()
}

fn unreadable(error: record::RecordReadError) -> CallError {
    CallError::Unreadable(error.to_string())
}
