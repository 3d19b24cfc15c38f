//! `Load-Next-…`: the oldest thing that waits for an agent, one at a time.

use super::{AGENT_ID, required};
use crate::clara::fault::Fault;
use crate::clara::message::Message;

/// What is to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadNext<'a> {
    /// A task from the inbox of this agent; it stays there.
    Task {
        /// Whose inbox.
        agent_id: &'a str,
    },
    /// A result for the sender that was not read before.
    Result {
        /// Whose tasks, if only those of one agent are meant.
        agent_id: Option<&'a str>,
    },
    /// A query this agent has not answered.
    Query {
        /// Who was queried.
        agent_id: &'a str,
    },
}

impl<'a> LoadNext<'a> {
    /// Reads `Load-Next-Assigned-Task`.
    pub fn task(message: &Message<'a>) -> Result<Self, Fault> {
        Ok(Self::Task { agent_id: required(message, AGENT_ID)? })
    }

    /// Reads `Load-Next-Task-Result`.
    pub fn result(message: &Message<'a>) -> Self {
        Self::Result { agent_id: message.tag(AGENT_ID) }
    }

    /// Reads `Load-Next-Query`.
    pub fn query(message: &Message<'a>) -> Result<Self, Fault> {
        Ok(Self::Query { agent_id: required(message, AGENT_ID)? })
    }
}
