//! `Send-Result`: the result of a task. A recipient tag is shown but does not redirect it: the
//! result always goes to the requester (D6).

use super::{agent_and_task, json};
use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;

/// A result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendResult<'a> {
    /// The agent that did the task.
    pub agent_id: &'a str,
    /// The task.
    pub task_id: &'a str,
    /// JSON text for the requester.
    pub result: &'a str,
    /// The recipient that the sender names.
    pub recipient: Option<&'a str>,
}

impl<'a> SendResult<'a> {
    /// Reads the order from a message.
    pub fn read(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        let (agent_id, task_id) = agent_and_task(message)?;
        let recipient = message.tag("RedStone-Task-Recipient").filter(|given| !given.is_empty());
        Ok(Self { agent_id, task_id, result: json(message)?, recipient })
    }
}
