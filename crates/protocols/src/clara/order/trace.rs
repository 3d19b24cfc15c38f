//! `Task-Trace`: every step of a task, for its parties (B18).

use super::{AGENT_ID, TASK_ID, required, task_of};
use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;

/// The task to trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTrace<'a> {
    /// The task's id.
    pub task_id: &'a str,
    /// The agent as which the sender asks, if it names one.
    pub agent_id: Option<&'a str>,
}

impl<'a> TaskTrace<'a> {
    /// Reads the order from a message. Traces are not public.
    pub fn read(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        let (task, agent_id) = (required(message, TASK_ID)?, message.tag(AGENT_ID));
        if !message.signed {
            return Err(OrderError::SignToRead);
        }
        Ok(Self { task_id: agent_id.map_or(task, |agent| task_of(task, agent)), agent_id })
    }
}
