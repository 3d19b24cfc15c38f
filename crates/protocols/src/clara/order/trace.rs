//! `Task-Trace`: every step of a task, for those who take part in it (B18).

use super::{AGENT_ID, TASK_ID, required, task_of};
use crate::clara::fault::Fault;
use crate::clara::message::Message;

/// The task somebody wants to see through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace<'a> {
    /// Which.
    pub task_id: &'a str,
    /// As which agent, if the sender says so.
    pub agent_id: Option<&'a str>,
}

impl<'a> Trace<'a> {
    /// Reads a message. Traces are not public.
    pub fn read(message: &Message<'a>) -> Result<Self, Fault> {
        let (task, agent_id) = (required(message, TASK_ID)?, message.tag(AGENT_ID));
        if !message.signed {
            return Err(Fault::SignToRead);
        }
        Ok(Self { task_id: agent_id.map_or(task, |agent| task_of(task, agent)), agent_id })
    }
}
