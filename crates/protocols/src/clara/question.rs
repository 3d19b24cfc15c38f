//! Stored queries of signed read-only orders. A long answer is not stored: the market record keeps
//! the query, and fetching the result computes the current answer.

use rialto_core::time::Millis;
use rialto_engine::Failure as EngineFailure;
use serde::{Deserialize, Serialize};

use super::deed::PlanError;
use super::fault::OrderError;
use super::order::{LoadNext, Order, TaskTrace};
use super::{board, reading, result};
use crate::adapter::HubContext;
use crate::kit::ijson;
use rialto_core::market::MarketRecord;

/// The most bytes of data in an answer that is stored.
pub const STORED_ANSWER_MAX: usize = 1 << 10;
/// How long a private answer can be computed again. A result can be fetched by anyone who knows its
/// message's id, who must not be able to follow an agent's inbox that way for ever.
const PRIVATE_FOR: Millis = Millis::hours(24);

/// A query, its sender, and the number of the message that answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredQuery {
    pub from: String,
    pub number: u64,
    #[serde(rename = "ask")]
    pub query: ReadQuery,
}

/// A read-only order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadQuery {
    Agents {
        after: u64,
    },
    Queue {
        after: u64,
    },
    Dashboard {
        after: u64,
    },
    /// The tasks that still wait after a dispatch.
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

impl ReadQuery {
    /// The query of an order, if its answer may be long and it has no other effect. `after` is the
    /// cursor of a list.
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
            Order::Trace(TaskTrace { task_id, agent_id }) => Self::Trace {
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
                Order::Trace(TaskTrace { task_id, agent_id: agent_id.as_deref() })
            }
        }
    }

    /// The cursor of a list.
    fn after(&self) -> u64 {
        match self {
            Self::Agents { after } | Self::Queue { after } | Self::Dashboard { after } => *after,
            Self::Dispatched | Self::Task { .. } | Self::Query { .. } | Self::Trace { .. } => 0,
        }
    }

    /// Whether the answer is public.
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

/// The result of a market record: its text, preceded by the answer if that was not stored.
pub async fn complete_result(
    context: &HubContext,
    posting: MarketRecord,
) -> Result<String, EngineFailure> {
    let Some(question) = &posting.query else { return Ok(posting.text) };
    let Ok(question) = serde_json::from_str::<StoredQuery>(question) else {
        tracing::error!(posting = %posting.id, "stored query cannot be read");
        return Err(EngineFailure::Fault);
    };
    let StoredQuery { from, number, query: ask } = question;
    if !ask.is_public() && context.engine.now() >= posting.at.plus(PRIVATE_FOR) {
        return Ok(result::write_error_result(&OrderError::AnswerExpired.to_string()));
    }
    let message = match &ask {
        ReadQuery::Dispatched => Some(board::list_undispatched_tasks(context, &from)),
        ask => match reading::answer_read_order(context, &from, ask.order(), ask.after()).await {
            Ok(message) => message,
            Err(PlanError::Order(fault)) => {
                return Ok(result::write_error_result(&fault.to_string()));
            }
            Err(PlanError::Engine(failure)) => return Err(failure),
        },
    };
    let first = message.map(|message| message.write(number));
    let rest = ijson::read(posting.text.as_bytes()).ok();
    let rest = rest.iter().flat_map(result::result_messages).map(ijson::Json::raw);
    let all: Vec<&str> = first.as_deref().into_iter().chain(rest).collect();
    Ok(result::write_result(&all))
}
