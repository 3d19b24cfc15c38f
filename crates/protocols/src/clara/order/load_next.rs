//! `Load-Next-…`: reads the oldest waiting entry of an agent, one at a time.

use super::{AGENT_ID, required};
use crate::clara::fault::OrderError;
use crate::clara::message::IncomingMessage;

/// What to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadNext<'a> {
    /// A task from the inbox of this agent. It stays there.
    Task {
        /// The agent that owns the inbox.
        agent_id: &'a str,
    },
    /// The oldest unread result for the sender.
    Result {
        /// Limits the results to tasks of one agent.
        agent_id: Option<&'a str>,
    },
    /// A query that this agent has not answered.
    Query {
        /// The agent that was queried.
        agent_id: &'a str,
    },
}

impl<'a> LoadNext<'a> {
    /// Reads `Load-Next-Assigned-Task`.
    pub fn task(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        Ok(Self::Task { agent_id: required(message, AGENT_ID)? })
    }

    /// Reads `Load-Next-Task-Result`.
    pub fn result(message: &IncomingMessage<'a>) -> Self {
        Self::Result { agent_id: message.tag(AGENT_ID) }
    }

    /// Reads `Load-Next-Query`.
    pub fn query(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        Ok(Self::Query { agent_id: required(message, AGENT_ID)? })
    }
}
