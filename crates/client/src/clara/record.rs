//! Data that a market returns, as owned values.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::clara::Strategy;
use rialto_protocols::clara::record::{self, Agent, Done, Query, Task};

use crate::call::CallError;

/// A task, assigned to an agent or waiting for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
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
    pub registered: Timestamp,
}

/// A query: at what price would the agent do this task?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
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
    pub closes: Timestamp,
}

/// The outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The task's id.
    pub task_id: String,
    /// The agent that did it.
    pub agent_id: String,
    /// The agent's address.
    pub by: String,
    /// The result: JSON text; `null` if the market does not show it.
    pub result: String,
    /// When the market received it.
    pub at: Timestamp,
}

/// All agents of a market, as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board(pub(super) String);

impl Board {
    /// The agents.
    pub fn agents(&self) -> Result<Vec<Agent<'_>>, CallError> {
        record::read(&self.0).map_err(unreadable)
    }
}

impl Job {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        record::read(text).map(Self::of).map_err(unreadable)
    }

    fn of(task: Task<'_>) -> Self {
        Self {
            id: task.id.into_owned(),
            agent_id: task.agent_id.map(Into::into),
            requester: task.requester.into_owned(),
            reward: task.reward,
            strategy: task.strategy,
            payload: shown(task.payload),
            topic: task.topic.into_owned(),
            context_id: task.context_id.into_owned(),
            registered: task.timestamp,
        }
    }
}

impl Asked {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        let query: Query<'_> = record::read(text).map_err(unreadable)?;
        Ok(Self {
            task_id: query.id.into_owned(),
            agent_id: query.agent_id.into_owned(),
            requester: query.requester.into_owned(),
            max_reward: query.max_reward,
            payload: shown(query.payload),
            topic: query.topic.into_owned(),
            closes: query.closes_at,
        })
    }
}

impl Outcome {
    pub(super) fn read(text: &str) -> Result<Self, CallError> {
        let done: Done<'_> = record::read(text).map_err(unreadable)?;
        Ok(Self {
            task_id: done.id.into_owned(),
            agent_id: done.agent_id.into_owned(),
            by: done.sender.into_owned(),
            result: shown(done.result),
            at: done.timestamp,
        })
    }
}

/// Parses a list of tasks.
pub(super) fn jobs(text: &str) -> Result<Vec<Job>, CallError> {
    let tasks: Vec<Task<'_>> = record::read(text).map_err(unreadable)?;
    Ok(tasks.into_iter().map(Job::of).collect())
}

fn shown(json: Option<&str>) -> String {
    json.unwrap_or("null").to_owned()
}

fn unreadable(error: record::Unreadable) -> CallError {
    CallError::Unreadable(error.to_string())
}
