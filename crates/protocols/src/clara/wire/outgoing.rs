//! Messages about one task: assignment, result, decline, query, and what waits.

use rialto_core::money::Credits;

use super::OutgoingMessage;
use crate::clara::price;
use crate::clara::process::Dialect;
use crate::clara::record::{TaskQuery, TaskRecord, TaskResult};

impl OutgoingMessage {
    /// A task for the agent at this address, and the number of agents that get a copy.
    pub fn assignment(dialect: Dialect, to: &str, task: &TaskRecord<'_>, agents: usize) -> Self {
        let action = match dialect {
            Dialect::Spec => "Agent-Task-Assignment",
            Dialect::Deployed => "Task-Assignment",
        };
        Self::new(to, action)
            .about(&task.id)
            .maybe_tag("Agent-Id", task.agent_id.as_deref())
            .maybe_tag("Assigned-Agent-Id", task.agent_id.as_deref())
            .maybe_tag("Requesting-Agent-Id", task.requester_id.as_deref())
            .tag("Context-Id", task.context_id.as_ref())
            .tag("Number-Of-Agents", agents.to_string())
            .data(task.write())
    }

    /// A result for its requester. The deployed dialect includes the task.
    pub fn task_result(
        dialect: Dialect,
        done: &TaskResult<'_>,
        task: &TaskRecord<'_>,
        fee: Credits,
    ) -> Self {
        Self::new(&task.requester, "Task-Result")
            .about(&done.id)
            .tag("Assigned-Agent-Id", done.agent_id.as_ref())
            .tag("Assigned-Agent-Address", done.sender.as_ref())
            .tag("Fee", price::format_price(fee))
            .data(result_data(dialect, done, task))
    }

    /// Confirms a decline to its sender.
    pub fn task_declined(to: &str, task_id: &str, agent_id: &str) -> Self {
        Self::new(to, "Task-Declined").about(task_id).tag("Agent-Id", agent_id)
    }

    /// A query to the agent at this address: asks for an offer.
    pub fn query(to: &str, query: &TaskQuery<'_>) -> Self {
        Self::new(to, "Agent-Task-Query")
            .about(&query.id)
            .tag("Agent-Id", query.agent_id.as_ref())
            .tag("RedStone-Agent-Reward", price::format_price(query.max_reward))
            .tag("Closes-At", query.closes_at.0.to_string())
            .data(query.write())
    }

    /// The oldest task of an inbox.
    pub fn next_task(to: &str, task: &TaskRecord<'_>) -> Self {
        Self::new(to, "Load-Next-Assigned-Task-Result").data(task.write())
    }

    /// The oldest unread result. The deployed dialect includes the task.
    pub fn next_result(
        dialect: Dialect,
        to: &str,
        done: &TaskResult<'_>,
        task: &TaskRecord<'_>,
    ) -> Self {
        Self::new(to, "Load-Next-Task-Result-Response").data(result_data(dialect, done, task))
    }

    /// The oldest unanswered query.
    pub fn next_query(to: &str, query: &TaskQuery<'_>) -> Self {
        Self::new(to, "Load-Next-Query-Result").data(query.write())
    }

    /// The trace of a task, as the hub's JSON text.
    pub fn trace(to: &str, task_id: &str, trace: String) -> Self {
        Self::new(to, "Task-Trace").about(task_id).data(trace)
    }
}

fn result_data(dialect: Dialect, done: &TaskResult<'_>, task: &TaskRecord<'_>) -> String {
    match dialect {
        Dialect::Spec => done.write(),
        Dialect::Deployed => done.write_with_task(task),
    }
}
