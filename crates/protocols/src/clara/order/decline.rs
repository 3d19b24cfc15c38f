//! `Decline-Task`: an agent will not do a task, or makes no offer for it. The data is not read.

use super::agent_and_task;
use crate::clara::fault::Fault;
use crate::clara::message::Message;

/// A no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decline<'a> {
    /// Who says it.
    pub agent_id: &'a str,
    /// To what.
    pub task_id: &'a str,
}

impl<'a> Decline<'a> {
    /// Reads a message.
    pub fn read(message: &Message<'a>) -> Result<Self, Fault> {
        let (agent_id, task_id) = agent_and_task(message)?;
        Ok(Self { agent_id, task_id })
    }
}
