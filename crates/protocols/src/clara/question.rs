//! Questions: what a signed order asked that only reads. Its answer may be long and is nobody's history, so
//! a long one is not kept. The posting says what was asked, and whoever fetches the result gets the
//! answer as it is then.

use rialto_core::time::Millis;
use rialto_engine::Failure as EngineFailure;
use serde::{Deserialize, Serialize};

use super::deed::NoPlan;
use super::fault::Fault;
use super::order::{LoadNext, Order, Trace};
use super::{board, reading, result};
use crate::face::Floor;
use crate::kit::ijson;
use rialto_core::market::Posting;

/// The longest data of an answer that is kept as it was.
pub const KEPT_MAX: usize = 1 << 10;
/// How long an answer that only its signer should read is worked out again: whoever knows a message's id may
/// fetch its result, and must not follow an agent's inbox with it for ever.
const PRIVATE_FOR: Millis = Millis::hours(24);

/// What was asked, by whom, and the number of the message that answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub from: String,
    pub number: u64,
    pub ask: Ask,
}

/// An order that only reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    Agents {
        after: u64,
    },
    Queue {
        after: u64,
    },
    Dashboard {
        after: u64,
    },
    /// What still waits after agents were sought for it.
    Dispatched,
    Task {
        agent_id: String,
    },
    Query {
        agent_id: String,
    },
    Trace {
        task_id: String,
        agent_id: Option<String>,
    },
}

impl Ask {
    /// What an order asks, if its answer may be long and it does nothing else; and where a list goes on.
    pub fn of(order: &Order<'_>, after: u64) -> Option<Self> {
        Some(match order {
            Order::ListAgents => Self::Agents { after },
            Order::TasksQueue => Self::Queue { after },
            Order::Dashboard => Self::Dashboard { after },
            Order::LoadNext(LoadNext::Task { agent_id }) => {
                Self::Task { agent_id: (*agent_id).to_owned() }
            }
            Order::LoadNext(LoadNext::Query { agent_id }) => {
                Self::Query { agent_id: (*agent_id).to_owned() }
            }
            Order::Trace(Trace { task_id, agent_id }) => Self::Trace {
                task_id: (*task_id).to_owned(),
                agent_id: agent_id.map(str::to_owned),
            },
            _ => return None,
        })
    }

    fn order(&self) -> Order<'_> {
        match self {
            Self::Agents { .. } => Order::ListAgents,
            Self::Queue { .. } => Order::TasksQueue,
            Self::Dashboard { .. } => Order::Dashboard,
            Self::Dispatched => Order::DispatchTasks,
            Self::Task { agent_id } => Order::LoadNext(LoadNext::Task { agent_id }),
            Self::Query { agent_id } => Order::LoadNext(LoadNext::Query { agent_id }),
            Self::Trace { task_id, agent_id } => {
                Order::Trace(Trace { task_id, agent_id: agent_id.as_deref() })
            }
        }
    }

    /// Where a list goes on.
    fn after(&self) -> u64 {
        match self {
            Self::Agents { after } | Self::Queue { after } | Self::Dashboard { after } => *after,
            Self::Dispatched | Self::Task { .. } | Self::Query { .. } | Self::Trace { .. } => 0,
        }
    }

    /// Whether everybody may read the answer.
    fn is_public(&self) -> bool {
        match self {
            Self::Agents { .. }
            | Self::Queue { .. }
            | Self::Dashboard { .. }
            | Self::Dispatched => true,
            Self::Task { .. } | Self::Query { .. } | Self::Trace { .. } => false,
        }
    }
}

/// The result a posting stands for: its text, and before it the answer that is not kept.
pub async fn answered(floor: &Floor, posting: Posting) -> Result<String, EngineFailure> {
    let Some(question) = &posting.question else { return Ok(posting.text) };
    let Ok(question) = serde_json::from_str::<Question>(question) else {
        tracing::error!(posting = %posting.id, "stored query cannot be read");
        return Err(EngineFailure::Fault);
    };
    let Question { from, number, ask } = question;
    if !ask.is_public() && floor.engine.now() >= posting.at.plus(PRIVATE_FOR) {
        return Ok(result::error(&Fault::NotKept.to_string()));
    }
    let message = match &ask {
        Ask::Dispatched => Some(board::dispatched(floor, &from)),
        ask => match reading::answer(floor, &from, ask.order(), ask.after()).await {
            Ok(message) => message,
            Err(NoPlan::Fault(fault)) => return Ok(result::error(&fault.to_string())),
            Err(NoPlan::Failed(failure)) => return Err(failure),
        },
    };
    let first = message.map(|message| message.write(number));
    let rest = ijson::read(posting.text.as_bytes()).ok();
    let rest = rest.iter().flat_map(result::messages).map(ijson::Json::raw);
    let all: Vec<&str> = first.as_deref().into_iter().chain(rest).collect();
    Ok(result::sent(&all))
}
