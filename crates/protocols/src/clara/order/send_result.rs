//! `Send-Result`: what came of a task. A tag that names another recipient is not looked at (D6).

use super::{agent_and_task, json};
use crate::clara::fault::Fault;
use crate::clara::message::Message;

/// A result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendResult<'a> {
    /// Who did it.
    pub agent_id: &'a str,
    /// What was done.
    pub task_id: &'a str,
    /// JSON text for the requester.
    pub result: &'a str,
}

impl<'a> SendResult<'a> {
    /// Reads a message.
    pub fn read(message: &Message<'a>) -> Result<Self, Fault> {
        let (agent_id, task_id) = agent_and_task(message)?;
        Ok(Self { agent_id, task_id, result: json(message)? })
    }
}
