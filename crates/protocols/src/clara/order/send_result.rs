//! `Send-Result`: what came of a task. A tag that names a recipient is shown and diverts nothing: the
//! result goes to the requester (D6).

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
    /// Whom its sender says it is for.
    pub recipient: Option<&'a str>,
}

impl<'a> SendResult<'a> {
    /// Reads a message.
    pub fn read(message: &Message<'a>) -> Result<Self, Fault> {
        let (agent_id, task_id) = agent_and_task(message)?;
        let recipient = message.tag("RedStone-Task-Recipient").filter(|given| !given.is_empty());
        Ok(Self { agent_id, task_id, result: json(message)?, recipient })
    }
}
