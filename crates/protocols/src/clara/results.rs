//! The compute unit: the result of one message, and pages of all results.
//!
//! A long answer to a signed read-only order is not stored: the market record keeps the query, and
//! fetching the result computes the current answer.

use std::time::Duration;

use rialto_core::alias::{ClaimTarget, Digest, claim};
use rialto_core::command::JobRef;
use rialto_core::id::PostingId;
use rialto_core::job::{Job, Selection, State};
use rialto_core::market::MarketRecord;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::Failure as EngineFailure;
use rialto_engine::store::{PageQuery, Row, RowKey};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::ClaraContext;
use super::translate::PlanError;
use super::wire::order::{LoadNext, TaskTrace};
use super::wire::result::{self, MessageResult, PageBound, SortOrder};
use super::{ID, Order, OrderError, Paging, ResultCursor, directory, read_orders};
use crate::kit::ijson::{self, Json};

/// How long after its window the result of an auction is awaited (2.7).
const GRACE: Duration = Duration::from_secs(1);
/// How often to check whether an auction has closed.
const LOOK: Duration = Duration::from_millis(20);
/// The most bytes of a page of results, unless its first result alone is longer.
const PAGE_BYTES: usize = 4 << 20;
/// Market records read at a time for a page of results. Few, because each may be large.
const STEP: usize = 8;
/// An id past every market record.
const LAST: PostingId = PostingId(u64::MAX >> 1);
/// The most bytes of data in an answer that is stored.
pub const STORED_ANSWER_MAX: usize = 1 << 10;
/// How long a private answer can be computed again. A result can be fetched by anyone who knows its
/// message's id, who must not be able to follow an agent's inbox that way for ever.
const PRIVATE_FOR: Millis = Millis::hours(24);

/// The result of a message; `None` if there is none. Waits for an open auction to close.
pub async fn message_result(
    context: &ClaraContext,
    id: &str,
) -> Result<Option<String>, EngineFailure> {
    let Some(posting) = posted(context, claim::market_order(ID, id)).await? else {
        return Ok(None);
    };
    let wanted = JobRef::Foreign { origin: ID, id: id.to_owned() };
    let job = context.engine.find_job(&wanted).await?;
    let auction = job.filter(|job| matches!(job.selection, Selection::Auction { .. }));
    match auction {
        Some(job) => closed(context, id, &job, posting).await.map(Some),
        None => complete_result(context, posting).await.map(Some),
    }
}

async fn posted(
    context: &ClaraContext,
    name: Digest,
) -> Result<Option<MarketRecord>, EngineFailure> {
    let Some(ClaimTarget::MarketRecord(id)) = context.engine.claim_target(name).await? else {
        return Ok(None);
    };
    Ok(match context.engine.load_row(RowKey::MarketRecord(id)).await? {
        Some(Row::Posting(posting)) => Some(MarketRecord::clone(&posting)),
        _ => None,
    })
}

/// The final result of an auction: the outcome first, then the queries to agents (2.7).
async fn closed(
    context: &ClaraContext,
    id: &str,
    job: &Job,
    asked: MarketRecord,
) -> Result<String, EngineFailure> {
    let window = context.settings.auction_window.0.unsigned_abs();
    let until = Instant::now() + Duration::from_millis(window) + GRACE;
    loop {
        if let Some(outcome) = posted(context, claim::closed_auction(ID, id)).await? {
            return Ok(if has_failed(&outcome.text, id) {
                result::write_error_result(&OrderError::NoOffers(id.to_owned()).to_string())
            } else {
                joined(id, &outcome.text, &asked.text)
            });
        }
        let open = context.engine.with_world(|world| {
            world.job(job.id).is_some_and(|job| job.state == State::Negotiating)
        });
        if Instant::now() >= until || !open && Instant::now() + GRACE >= until {
            return Ok(asked.text);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether an auction's outcome tells its requester that there was no offer.
fn has_failed(outcome: &str, task_id: &str) -> bool {
    let said =
        MessageResult::read(outcome.as_bytes()).map(|said| said.messages).unwrap_or_default();
    said.iter().any(|message| {
        message.tag("Action") == Some("Query-Failed") && message.tag("TaskId") == Some(task_id)
    })
}

/// The outcome of an auction and the queries to agents as one result. The step that closed the
/// auction may also contain messages about other tasks; they are left out.
fn joined(task_id: &str, outcome: &str, asked: &str) -> String {
    let said =
        MessageResult::read(outcome.as_bytes()).map(|said| said.messages).unwrap_or_default();
    let outcome = ijson::read(outcome.as_bytes()).ok();
    let asked = ijson::read(asked.as_bytes()).ok();
    let told = outcome.iter().flat_map(result::result_messages).zip(&said);
    let told = told.filter(|(_, sent)| sent.tag("TaskId") == Some(task_id));
    let told = told.map(|(message, _)| message);
    let all: Vec<&str> =
        told.chain(asked.iter().flat_map(result::result_messages)).map(Json::raw).collect();
    result::write_result(&all)
}

/// A page of results, and how many market records were read for it.
pub async fn results_page(
    context: &ClaraContext,
    paging: &Paging,
) -> Result<(String, usize), EngineFailure> {
    let newest_first = paging.sort == SortOrder::Descending;
    let mut looked_at = 0;
    let mut after = match paging.from {
        Some(mark) => place(context, mark, &mut looked_at).await?,
        None => PostingId(0),
    };
    let mut before = match paging.to {
        Some(mark) => PostingId(place(context, mark, &mut looked_at).await?.0.saturating_add(1)),
        None => LAST,
    };
    let (mut found, mut bytes): (Vec<(String, ResultCursor)>, usize) = (Vec::new(), 0);
    loop {
        let page = PageQuery::MarketRecords { after, before, newest_first, limit: STEP };
        let rows = context.engine.load_page(page).await?;
        let whole = rows.len() == STEP;
        looked_at += rows.len();
        for row in rows {
            let Row::Posting(posting) = row else { continue };
            if newest_first {
                before = posting.id;
            } else {
                after = posting.id;
            }
            let cursor = ResultCursor { at: Timestamp(posting.at.0), ordinate: posting.id.0 };
            if !posting.is_public || !paging.contains(cursor) {
                continue;
            }
            // A page has at least one result, however large.
            let full = bytes + posting.text.len() > PAGE_BYTES && !found.is_empty();
            if full || found.len() >= paging.limit {
                return Ok((result::write_page(&found, true), looked_at));
            }
            bytes += posting.text.len();
            found.push((posting.text.clone(), cursor));
        }
        if !whole {
            return Ok((result::write_page(&found, false), looked_at));
        }
    }
}

/// The last market record that is not later than a mark. Records are ordered by time, so a binary
/// search finds it.
async fn place(
    context: &ClaraContext,
    mark: PageBound,
    looked_at: &mut usize,
) -> Result<PostingId, EngineFailure> {
    let time = match mark {
        PageBound::Cursor(cursor) => return Ok(PostingId(cursor.ordinate.min(LAST.0 - 1))),
        PageBound::Time(time) => time,
    };
    let (mut low, mut high) = (0, context.engine.with_world(|world| world.next.market_record.0));
    // The record at `low` is not later than the mark. The one at `high` is later or does not exist
    // yet.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let after = PostingId(middle - 1);
        let page = PageQuery::MarketRecords { after, before: LAST, newest_first: false, limit: 1 };
        *looked_at += 1;
        let later = match context.engine.load_page(page).await?.first() {
            Some(Row::Posting(posting)) => posting.at > time,
            _ => true,
        };
        if later {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(PostingId(low))
}

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
    context: &ClaraContext,
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
        ReadQuery::Dispatched => Some(directory::list_undispatched_tasks(context, &from)),
        ask => match read_orders::answer_read_order(context, &from, ask.order(), ask.after()).await
        {
            Ok(message) => message,
            Err(PlanError::Order(fault)) => {
                return Ok(result::write_error_result(&fault.to_string()));
            }
            Err(PlanError::Engine(failure)) => return Err(failure),
        },
    };
    let first = message.map(|message| message.write(number));
    let rest = ijson::read(posting.text.as_bytes()).ok();
    let rest = rest.iter().flat_map(result::result_messages).map(Json::raw);
    let all: Vec<&str> = first.as_deref().into_iter().chain(rest).collect();
    Ok(result::write_result(&all))
}
