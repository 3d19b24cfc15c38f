//! Orders: what a message asks of the market, validated.
//!
//! The checks have a fixed sequence: `Protocol`; then the tags that name an agent or a task; then
//! the values in the order of the spec's tables; the data last. So a message with several errors
//! always gets the same Error. A missing topic, fee or reward gets the same text as an invalid one
//! (R3, R4). Whether agents and tasks exist, and who owns them, is checked elsewhere.

use rialto_core::money::Credits;

use super::action::{Action, Topics};
use super::error::OrderError;
use super::message::{Dialect, IncomingMessage};
use super::register::{RegisterAgent, RegisterTask, read_price};
use crate::clara::PROTOCOL;
use crate::kit::ijson;

/// The tag with an agent's id.
pub(super) const AGENT_ID: &str = "RedStone-Agent-Id";
/// The tag with a task's id.
const TASK_ID: &str = "RedStone-Task-Id";
/// The tag with a topic.
pub(super) const TOPIC: &str = "RedStone-Agent-Topic";
/// The tag with a fee.
pub(super) const FEE: &str = "RedStone-Agent-Fee";
/// The length of a message's id, in characters.
const ID_LEN: usize = 43;

/// A validated order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order<'a> {
    /// Registers an agent, or changes its profile.
    RegisterAgent(RegisterAgent<'a>),
    /// Lists the registered agents.
    ListAgents,
    /// Registers a task.
    RegisterTask(RegisterTask<'a>),
    /// Sends the result of a task.
    SendResult(SendResult<'a>),
    /// Declines a task.
    Decline(DeclineTask<'a>),
    /// Offers a price for a task.
    SubmitOffer(SubmitOffer<'a>),
    /// Reads the oldest task, result or query.
    LoadNext(LoadNext<'a>),
    /// Lists the tasks that wait for an agent.
    TasksQueue,
    /// Tries to match waiting tasks with agents, then lists those that still wait.
    DispatchTasks,
    /// Shows the signer's balance. Other accounts are never shown (R78).
    Balance,
    /// Shows an overview of the market.
    Dashboard,
    /// Withdraws credits. This is never possible, so nothing else is read.
    Withdraw,
    /// Shows the history of a task.
    Trace(TaskTrace<'a>),
    /// An unknown action, or none: no Error and no effect (R64).
    Unknown,
}

impl<'a> Order<'a> {
    /// Whether the order may hold or move money, or bind an agent to a price.
    pub const fn moves_money(&self) -> bool {
        matches!(self, Self::RegisterTask(_) | Self::SendResult(_) | Self::SubmitOffer(_))
    }

    /// Reads the order of a message, with the market's topics, in the dialect of the process it is
    /// addressed to.
    pub fn read(
        message: &IncomingMessage<'a>,
        topics: &Topics,
        dialect: Dialect,
    ) -> Result<Self, OrderError> {
        let Some(action) = message.tag("Action").and_then(Action::read) else {
            return Ok(Self::Unknown);
        };
        if action.needs_protocol() {
            protocol(message)?;
        }
        Ok(match action {
            Action::RegisterAgentProfile => {
                Self::RegisterAgent(RegisterAgent::read(message, topics, dialect)?)
            }
            Action::ListAgents => Self::ListAgents,
            Action::RegisterTask => {
                Self::RegisterTask(RegisterTask::read(message, topics, dialect)?)
            }
            Action::SendResult => Self::SendResult(SendResult::read(message)?),
            Action::DeclineTask => Self::Decline(DeclineTask::read(message)?),
            Action::SubmitOffer => Self::SubmitOffer(SubmitOffer::read(message)?),
            Action::LoadNextAssignedTask => Self::LoadNext(LoadNext::task(message)?),
            Action::LoadNextTaskResult => Self::LoadNext(LoadNext::result(message)),
            Action::LoadNextQuery => Self::LoadNext(LoadNext::query(message)?),
            Action::TasksQueue => Self::TasksQueue,
            Action::DispatchTasks => Self::DispatchTasks,
            Action::Balance => check_own_account(message).map(|()| Self::Balance)?,
            Action::Balances => return Err(OrderError::SignToRead),
            Action::DashboardData => Self::Dashboard,
            Action::Withdraw
            | Action::WithdrawAll
            | Action::ClaimReward
            | Action::ClaimRewardAll => Self::Withdraw,
            Action::TaskTrace => Self::Trace(TaskTrace::read(message)?),
        })
    }
}

/// `Send-Result`: the result of a task. A recipient tag is shown but does not redirect it: the
/// result always goes to the requester (D6).
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

/// `Decline-Task`: an agent declines a task, or declines to make an offer. The data is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclineTask<'a> {
    /// The agent that declines.
    pub agent_id: &'a str,
    /// The task.
    pub task_id: &'a str,
}

impl<'a> DeclineTask<'a> {
    /// Reads the order from a message.
    pub fn read(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        let (agent_id, task_id) = agent_and_task(message)?;
        Ok(Self { agent_id, task_id })
    }
}

/// `Submit-Offer`: an agent's binding price for a task in an auction (2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmitOffer<'a> {
    /// The agent that makes the offer.
    pub agent_id: &'a str,
    /// The task.
    pub task_id: &'a str,
    /// The offered fee.
    pub fee: Credits,
}

impl<'a> SubmitOffer<'a> {
    /// Reads the order from a message.
    pub fn read(message: &IncomingMessage<'a>) -> Result<Self, OrderError> {
        let (agent_id, task_id) = agent_and_task(message)?;
        let fee = message.tag(FEE).and_then(read_price).ok_or(OrderError::BadFee)?;
        Ok(Self { agent_id, task_id, fee })
    }
}

/// `Load-Next-…`: reads the oldest waiting entry of an agent, one at a time.
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

/// `Task-Trace`: every step of a task, for its parties (B18).
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

/// Checks that the message is signed and asks for the signer's own account: only its owner may read
/// a balance (R78).
fn check_own_account(message: &IncomingMessage<'_>) -> Result<(), OrderError> {
    let own = message.tag("Recipient").is_none_or(|account| account == message.from);
    if message.signed && own { Ok(()) } else { Err(OrderError::SignToRead) }
}

fn protocol(message: &IncomingMessage<'_>) -> Result<(), OrderError> {
    match message.tag("Protocol") {
        Some(PROTOCOL) => Ok(()),
        other => Err(OrderError::UnknownProtocol(other.map(str::to_owned))),
    }
}

pub(super) fn required<'a>(
    message: &IncomingMessage<'a>,
    name: &'static str,
) -> Result<&'a str, OrderError> {
    message.tag(name).ok_or(OrderError::TagRequired(name))
}

/// The agent and the task of a message. Deployed processes name a task by its id, a `_` and its
/// agent; both forms are accepted (R52).
fn agent_and_task<'a>(message: &IncomingMessage<'a>) -> Result<(&'a str, &'a str), OrderError> {
    let agent = required(message, AGENT_ID)?;
    let task = required(message, TASK_ID)?;
    Ok((agent, task_of(task, agent)))
}

fn task_of<'a>(task: &'a str, agent: &str) -> &'a str {
    // A message's id may itself end in a `_` and the name of an agent.
    if task.len() == ID_LEN {
        return task;
    }
    let plain = task.strip_suffix(agent).and_then(|rest| rest.strip_suffix('_'));
    plain.unwrap_or(task)
}

/// The exact JSON text of the data.
pub(super) fn json<'a>(message: &IncomingMessage<'a>) -> Result<&'a str, OrderError> {
    ijson::read(message.data.as_bytes()).map(|json| json.raw()).map_err(|_| OrderError::BadData)
}
