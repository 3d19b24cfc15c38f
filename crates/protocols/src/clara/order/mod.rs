//! Orders: what a message asks of the market, checked.
//!
//! The checks come in one order: `Protocol`; then the tags that name an agent or a task; then the
//! values in the order of the spec's tables; the data at last. So a message with many mistakes always
//! has the same Error. Topics, fees and rewards that are missing are as wrong as any other: their
//! own texts say so (R3, R4). Whether agents and tasks exist, and whose they are, is not known here.

pub mod balance;
pub mod decline;
pub mod load_next;
pub mod register_agent;
pub mod register_task;
pub mod send_result;
pub mod submit_offer;
pub mod trace;

pub use decline::Decline;
pub use load_next::LoadNext;
pub use register_agent::{RegisterAgent, Service};
pub use register_task::RegisterTask;
pub use send_result::SendResult;
pub use submit_offer::SubmitOffer;
pub use trace::Trace;

use super::PROTOCOL;
use super::action::Action;
use super::fault::Fault;
use super::message::Message;
use super::process::Dialect;
use super::topics::Topics;
use crate::kit::ijson;

/// The tag with the id of an agent.
const AGENT_ID: &str = "RedStone-Agent-Id";
/// The tag with the id of a task.
const TASK_ID: &str = "RedStone-Task-Id";
/// The tag with a topic.
const TOPIC: &str = "RedStone-Agent-Topic";
/// The tag with a fee.
const FEE: &str = "RedStone-Agent-Fee";
/// Characters of a message's id.
const ID_LEN: usize = 43;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order<'a> {
    /// An agent registers, or changes its profile.
    RegisterAgent(RegisterAgent<'a>),
    /// Who is registered.
    ListAgents,
    /// Work is wanted.
    RegisterTask(RegisterTask<'a>),
    /// Work is done.
    SendResult(SendResult<'a>),
    /// Work will not be done.
    Decline(Decline<'a>),
    /// What work would cost.
    SubmitOffer(SubmitOffer<'a>),
    /// The oldest task, result or query.
    LoadNext(LoadNext<'a>),
    /// Which tasks wait for an agent.
    TasksQueue,
    /// The same, after trying to find agents for them.
    DispatchTasks,
    /// What the signer has: nobody is told about others (R78).
    Balance,
    /// The market at a glance.
    Dashboard,
    /// Credits are to leave the hub. They never do, so nothing else is read.
    Claim,
    /// What became of a task.
    Trace(Trace<'a>),
    /// Something the market does not know, or nothing: no Error, and nothing happens (R64).
    Unknown,
}

impl<'a> Order<'a> {
    /// Whether carrying it out may hold or move money, or bind somebody to a price.
    pub const fn moves_money(&self) -> bool {
        matches!(self, Self::RegisterTask(_) | Self::SendResult(_) | Self::SubmitOffer(_))
    }

    /// Reads the order of a message to a market with these topics, in the dialect of the process it
    /// is for.
    pub fn read(message: &Message<'a>, topics: &Topics, dialect: Dialect) -> Result<Self, Fault> {
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
            Action::DeclineTask => Self::Decline(Decline::read(message)?),
            Action::SubmitOffer => Self::SubmitOffer(SubmitOffer::read(message)?),
            Action::LoadNextAssignedTask => Self::LoadNext(LoadNext::task(message)?),
            Action::LoadNextTaskResult => Self::LoadNext(LoadNext::result(message)),
            Action::LoadNextQuery => Self::LoadNext(LoadNext::query(message)?),
            Action::TasksQueue => Self::TasksQueue,
            Action::DispatchTasks => Self::DispatchTasks,
            Action::Balance => balance::own(message).map(|()| Self::Balance)?,
            Action::Balances => return Err(Fault::SignToRead),
            Action::DashboardData => Self::Dashboard,
            Action::Withdraw
            | Action::WithdrawAll
            | Action::ClaimReward
            | Action::ClaimRewardAll => Self::Claim,
            Action::TaskTrace => Self::Trace(Trace::read(message)?),
        })
    }
}

fn protocol(message: &Message<'_>) -> Result<(), Fault> {
    match message.tag("Protocol") {
        Some(PROTOCOL) => Ok(()),
        other => Err(Fault::UnknownProtocol(other.map(str::to_owned))),
    }
}

fn required<'a>(message: &Message<'a>, name: &'static str) -> Result<&'a str, Fault> {
    message.tag(name).ok_or(Fault::TagRequired(name))
}

/// The agent and the task a message is about. Deployed processes call a task by its id, a `_` and its
/// agent; both names are understood (R52).
fn agent_and_task<'a>(message: &Message<'a>) -> Result<(&'a str, &'a str), Fault> {
    let agent = required(message, AGENT_ID)?;
    let task = required(message, TASK_ID)?;
    Ok((agent, task_of(task, agent)))
}

fn task_of<'a>(task: &'a str, agent: &str) -> &'a str {
    // An id of a message may itself end in a `_` and some agent's name.
    if task.len() == ID_LEN {
        return task;
    }
    let plain = task.strip_suffix(agent).and_then(|rest| rest.strip_suffix('_'));
    plain.unwrap_or(task)
}

/// The exact text of the JSON a message carries.
fn json<'a>(message: &Message<'a>) -> Result<&'a str, Fault> {
    ijson::read(message.data.as_bytes()).map(|json| json.raw()).map_err(|_| Fault::BadData)
}
