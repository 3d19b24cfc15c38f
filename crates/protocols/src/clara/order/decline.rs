//! `Decline-Task`: an agent declines a task, or declines to make an offer. The data is not read.

use super::agent_and_task;
use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;

/// A declined task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclineTask<'a> {
    /// The agent that declines.
    pub agent_id: &'a str,
    /// The task.
    pub task_id: &'a str,
}

impl<'a> DeclineTask<'a> {
    /// Reads the order from a message.
    pub fn read(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        let (agent_id, task_id) = agent_and_task(message)?;
        Ok(Self { agent_id, task_id })
    }
}
