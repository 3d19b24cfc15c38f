//! Orders: what a message asks of the market, validated.
//!
//! The checks have a fixed sequence: `Protocol`; then the tags that name an agent or a task; then
//! the values in the order of the spec's tables; the data last. So a message with several errors
//! always gets the same Error. A missing topic, fee or reward gets the same text as an invalid one
//! (R3, R4). Whether agents and tasks exist, and who owns them, is checked elsewhere.

pub mod balance;
pub mod decline;
pub mod load_next;
pub mod register_agent;
pub mod register_task;
pub mod send_result;
pub mod submit_offer;
pub mod trace;

pub use decline::DeclineTask;
pub use load_next::LoadNext;
pub use register_agent::{RegisterAgent, Service};
pub use register_task::RegisterTask;
pub use send_result::SendResult;
pub use submit_offer::SubmitOffer;
pub use trace::TaskTrace;

use super::PROTOCOL;
use super::action::Action;
use super::fault::OrderError;
use super::message::IncomingMessage;
use super::process::Dialect;
use super::topics::Topics;
use crate::kit::ijson;

/// The tag with an agent's id.
const AGENT_ID: &str = "RedStone-Agent-Id";
/// The tag with a task's id.
const TASK_ID: &str = "RedStone-Task-Id";
/// The tag with a topic.
const TOPIC: &str = "RedStone-Agent-Topic";
/// The tag with a fee.
const FEE: &str = "RedStone-Agent-Fee";
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
            Action::Balance => balance::check_own_account(message).map(|()| Self::Balance)?,
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

fn protocol(message: &IncomingMessage<'_>) -> Result<(), OrderError> {
    match message.tag("Protocol") {
        Some(PROTOCOL) => Ok(()),
        other => Err(OrderError::UnknownProtocol(other.map(str::to_owned))),
    }
}

fn required<'a>(message: &IncomingMessage<'a>, name: &'static str) -> Result<&'a str, OrderError> {
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
fn json<'a>(message: &IncomingMessage<'a>) -> Result<&'a str, OrderError> {
    ijson::read(message.data.as_bytes()).map(|json| json.raw()).map_err(|_| OrderError::BadData)
}
