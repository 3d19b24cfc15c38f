//! Messages that the market sends (2.4, 2.5). Tags are in their printed order, and data is
//! optional. A message gets its number when it is written; numbers increase by one for every
//! message ever sent.

use std::borrow::Cow;

use rialto_core::money::Credits;
use serde::{Deserialize, Serialize};

use super::message::Dialect;
use super::record::{TaskTotals, write_list};
use super::register::format_price;
use super::task::{TaskQuery, TaskRecord, TaskResult};
use crate::clara::PROTOCOL;
use crate::kit::jcs;
use crate::kit::object::ObjectWriter;

/// The digits of an anchor: the number of the message, padded with zeros.
const ANCHOR_DIGITS: usize = 32;
/// Space for the tags that most messages have.
const USUAL_TAGS: usize = 9;

/// A message of the market.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingMessage {
    /// The recipient's address.
    pub target: String,
    /// Tag names and values, from `Action` on.
    pub tags: Vec<(Cow<'static, str>, String)>,
    /// Its data.
    pub data: Option<String>,
}

impl OutgoingMessage {
    /// A message without data, with the tags that all messages of the market have.
    fn new(target: &str, action: &str) -> Self {
        let tags = Vec::with_capacity(USUAL_TAGS);
        let message = Self { target: target.to_owned(), tags, data: None };
        message.tag("Action", action).tag("Protocol", PROTOCOL)
    }

    fn tag(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.tags.push((name.into(), value.into()));
        self
    }

    fn maybe_tag(self, name: &'static str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.tag(name, value),
            None => self,
        }
    }

    /// Adds the task id, under the tag names of the spec and of the deployed processes (D1).
    fn about(self, task_id: &str) -> Self {
        self.tag("TaskId", task_id).tag("Task-Id", task_id)
    }

    fn data(mut self, data: impl Into<String>) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Writes the message with the number `reference`.
    pub fn write(&self, reference: u64) -> String {
        let mut out = String::with_capacity(self.expected_len());
        self.write_to(&mut out, reference);
        out
    }

    /// Appends the message with the number `reference`.
    pub(super) fn write_to(&self, out: &mut String, reference: u64) {
        let number = reference.to_string();
        out.push_str("{\"Target\":");
        jcs::push_string(out, &self.target);
        out.push_str(",\"Anchor\":\"");
        out.extend(std::iter::repeat_n('0', ANCHOR_DIGITS.saturating_sub(number.len())));
        out.push_str(&number);
        out.push('"');
        if let Some(data) = &self.data {
            out.push_str(",\"Data\":");
            jcs::push_string(out, data);
        }
        out.push_str(",\"Tags\":[");
        out.push_str(r#"{"name":"Data-Protocol","value":"ao"},"#);
        out.push_str(r#"{"name":"Variant","value":"ao.TN.1"},"#);
        out.push_str(r#"{"name":"Type","value":"Message"},"#);
        out.push_str(r#"{"name":"Reference","value":""#);
        out.push_str(&number);
        out.push_str("\"}");
        for (name, value) in &self.tags {
            out.push_str(",{\"name\":");
            jcs::push_string(out, name);
            out.push_str(",\"value\":");
            jcs::push_string(out, value);
            out.push('}');
        }
        out.push_str("]}");
    }

    /// How long the written message is, if only its data has a few characters to escape.
    pub(super) fn expected_len(&self) -> usize {
        const AROUND: usize = 288;
        const AROUND_TAG: usize = 22;
        let tag = |(name, value): &(Cow<'_, str>, String)| AROUND_TAG + name.len() + value.len();
        let data = self.data.as_ref().map_or(0, |data| data.len() + data.len() / 4);
        AROUND + self.target.len() + data + self.tags.iter().map(tag).sum::<usize>()
    }
}

/// Messages about one task: assignment, result, decline, query, and what waits.
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
            .tag("Fee", format_price(fee))
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
            .tag("RedStone-Agent-Reward", format_price(query.max_reward))
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

/// A notice to a bidder or a requester, which the spec does not have: the state of a task or an
/// offer, with a sentence for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskNotice<'a> {
    /// To a bidder: the offer was received.
    OfferReceived {
        /// The bidding agent.
        agent_id: &'a str,
    },
    /// To a bidder: another offer was accepted.
    OfferRejected {
        /// The bidding agent.
        agent_id: &'a str,
    },
    /// To the requester: there was no offer.
    QueryFailed,
    /// To the requester: the task waits for an agent (R56).
    TaskQueued,
    /// To the requester: the named agent declined (R42).
    TaskUnassigned,
    /// To the requester: the named agent failed.
    TaskFailed,
    /// To the requester: the deadline passed (R62).
    TaskExpired,
}

impl TaskNotice<'_> {
    const fn action(self) -> &'static str {
        match self {
            Self::OfferReceived { .. } => "Offer-Received",
            Self::OfferRejected { .. } => "Offer-Rejected",
            Self::QueryFailed => "Query-Failed",
            Self::TaskQueued => "Task-Queued",
            Self::TaskUnassigned => "Task-Unassigned",
            Self::TaskFailed | Self::TaskExpired => "Task-Expired",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::OfferReceived { .. } => "The offer is valid until the auction closes",
            Self::OfferRejected { .. } => "Another offer was accepted",
            Self::QueryFailed => "No agent made an offer; the reward was released",
            Self::TaskQueued => "The task is queued for an agent; the reward stays held",
            Self::TaskUnassigned => "The agent declined the task; the reward was released",
            Self::TaskFailed => "The agent failed to do the task; the reward was released",
            Self::TaskExpired => "The task was not completed in time; the reward was released",
        }
    }

    const fn agent_id(&self) -> Option<&str> {
        match self {
            Self::OfferReceived { agent_id } | Self::OfferRejected { agent_id } => Some(agent_id),
            Self::QueryFailed
            | Self::TaskQueued
            | Self::TaskUnassigned
            | Self::TaskFailed
            | Self::TaskExpired => None,
        }
    }
}

impl OutgoingMessage {
    /// A notice about a task.
    pub fn notice(to: &str, task_id: &str, notice: TaskNotice<'_>) -> Self {
        Self::new(to, notice.action())
            .about(task_id)
            .maybe_tag("Agent-Id", notice.agent_id())
            .data(notice.sentence())
    }

    /// Adds the reason, as its author wrote it.
    pub fn with_reason(self, reason: Option<&str>) -> Self {
        self.maybe_tag("Reason", reason)
    }
}

/// Messages about the whole market, and about accounts.
impl OutgoingMessage {
    /// To the owner: the agent was registered.
    pub fn registered(to: &str, agent_id: &str) -> Self {
        Self::new(to, "Registered").data(format!("Agent {agent_id} registered in Market"))
    }

    /// A list of agents, already encoded.
    pub fn agents(to: &str, agents: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "List-Agents").data(write_list(agents))
    }

    /// A list of the tasks that wait for an agent, already encoded.
    pub fn queue(to: &str, tasks: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "Tasks-Queue").data(write_list(tasks))
    }

    /// Adds the cursor of the next page, if there is one.
    pub fn with_next_cursor(self, cursor: Option<u64>) -> Self {
        self.maybe_tag("Next-Cursor", cursor.map(|cursor| cursor.to_string()).as_deref())
    }

    /// A list of the tasks that still wait after a dispatch.
    pub fn dispatched(to: &str, tasks: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "Tasks-Dispatched").data(write_list(tasks))
    }

    /// The balance of an account, in whole credits.
    pub fn balance(to: &str, balance: Credits) -> Self {
        Self::new(to, "Balance").tag("Balance", format_price(balance)).tag("Account", to)
    }

    /// The overview of the market.
    pub fn dashboard(
        to: &str,
        queue: impl IntoIterator<Item = String>,
        agents: impl IntoIterator<Item = String>,
        totals: &TaskTotals,
    ) -> Self {
        let data = ObjectWriter::new()
            .raw("queue", &write_list(queue))
            .raw("agents", &write_list(agents))
            .raw("totals", &totals.write());
        Self::new(to, "Dashboard-Data").data(data.finish())
    }

    /// A withdrawal failed: credits cannot leave the hub.
    pub fn claim_failed(to: &str, balance: Credits) -> Self {
        let data =
            ObjectWriter::new().text("error", "credits cannot be withdrawn from the hub").finish();
        Self::new(to, "Claim-Reward-Failed").tag("Balance", format_price(balance)).data(data)
    }
}
