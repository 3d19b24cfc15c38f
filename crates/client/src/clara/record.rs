//! What a market tells, kept by whoever was told.

use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_protocols::clara::Strategy;
use rialto_protocols::clara::record::{self, Agent, Done, Query, Task};

use crate::call::CallError;

/// A task as an agent has it to do, or as it waits for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The id of the message that registered it.
    pub id: String,
    /// Who is to do it; nobody while it waits.
    pub agent_id: Option<String>,
    /// Who wants it: an address.
    pub requester: String,
    /// What is paid for it.
    pub reward: Credits,
    /// How its agent was picked.
    pub strategy: Strategy,
    /// What is to be done: JSON text; `null` where the market does not show it.
    pub payload: String,
    /// What an agent must be able to do.
    pub topic: String,
    /// What it belongs to.
    pub context_id: String,
    /// When it was registered.
    pub registered: Timestamp,
}

/// A question to an agent: for how much would you do this?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The task.
    pub task_id: String,
    /// Who is asked.
    pub agent_id: String,
    /// Who wants it: an address.
    pub requester: String,
    /// The most that is paid.
    pub max_reward: Credits,
    /// What is to be done: JSON text; `null` where the market does not show it.
    pub payload: String,
    /// What an agent must be able to do.
    pub topic: String,
    /// Until when offers are taken, by the market's clock.
    pub closes: Timestamp,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The task.
    pub task_id: String,
    /// Who did it.
    pub agent_id: String,
    /// Its address.
    pub by: String,
    /// What it made: JSON text; `null` where the market does not show it.
    pub result: String,
    /// When it came.
    pub at: Timestamp,
}

/// All agents of a market, as they were listed.
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

/// A list of tasks.
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
