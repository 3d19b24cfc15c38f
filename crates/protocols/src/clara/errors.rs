//! The message unit: reads an item, verifies its signature, executes it once, and then acknowledges
//! it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use rialto_core::command::{Command, JobRef};
use rialto_core::market::{MarketOrder, MarketSubmission};
use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure as EngineFailure;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::clerk::{self, OrderRecordWriter, OrderReply};
use super::deed::{self, PlanError};
use super::failure::Failure;
use super::message::{self, IncomingMessage};
use super::{ID, query};
use crate::adapter::{EdgeError, HubContext, Signer};
use crate::kit::ans104::{Item, ItemId};

/// The most items verified at the same time; more wait, without blocking the request loop (R75).
static PROVING: Semaphore = Semaphore::const_new(4);

/// An item that was accepted.
pub struct AcceptedItem {
    pub id: ItemId,
    /// The hub's id of the job that the item opened, if any. With many copies, that of the first.
    pub job: Option<Uuid>,
}

/// Accepts an item.
pub async fn accept_item(
    context: &HubContext,
    body: Bytes,
    from: Option<SocketAddr>,
) -> Result<AcceptedItem, Failure> {
    let item = Item::read(&body)?;
    let (id, target) = (item.id(), IncomingMessage::of(&item)?.target);
    let dialect = context.clara.processes.dialect(target).ok_or_else(Failure::unknown_process)?;
    prove(body.clone()).await?;
    let address = item.signer_address();
    count(context, &address, from)?;
    let message = IncomingMessage { item: Some(&body), ..IncomingMessage::of(&item)? };
    let (signed_order, reply) = match deed::plan_order(context, &message, dialect).await {
        Ok(plan) => plan,
        Err(PlanError::Order(fault)) => (MarketOrder::RecordOnly, OrderReply::Error(fault)),
        Err(PlanError::Engine(failure)) => return Err(from_engine(&failure)),
    };
    let opens = matches!(signed_order, MarketOrder::OpenJob(_));
    let post = MarketSubmission {
        market: ID,
        id: id.to_string(),
        order: signed_order,
        recorder: Arc::new(OrderRecordWriter { from: address, reply, is_stored: true }),
    };
    let ran = context.engine.run(Command::SubmitToMarket(Box::new(post))).await;
    ran.map_err(|failure| from_engine(&failure))?;
    let job = if opens { opened(context, id).await? } else { None };
    Ok(AcceptedItem { id, job })
}

/// The job that an item opened, now or when it first arrived.
async fn opened(context: &HubContext, id: ItemId) -> Result<Option<Uuid>, Failure> {
    let wanted = JobRef::Foreign { origin: ID, id: id.to_string() };
    let job = context.engine.find_job(&wanted).await.map_err(|failure| from_engine(&failure))?;
    Ok(job.map(|job| job.uuid))
}

/// Verifies the signature on the blocking pool.
async fn prove(body: Bytes) -> Result<(), Failure> {
    let Ok(_turn) = PROVING.acquire().await else { return Err(Failure::internal("proof")) };
    let proven = tokio::task::spawn_blocking(move || Item::read(&body).map(|item| item.verify()));
    match proven.await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(unproven))) => Err(unproven.into()),
        Ok(Err(bad)) => Err(bad.into()),
        Err(_) => Err(Failure::internal("proof")),
    }
}

/// Counts known senders by their address, others by their network address.
fn count(context: &HubContext, address: &str, from: Option<SocketAddr>) -> Result<(), Failure> {
    let name = super::people::owner_name(address);
    let known = context.engine.with_world(|world| world.owner_by_name(&name).is_some());
    let counted = match known {
        true => context.write_limiter.count_write(Signer::Unregistered(name.as_bytes())),
        false => context.write_limiter.count_new_sender(from),
    };
    counted.map_err(|error| from_edge(&error))
}

/// The most dry-runs decided at the same time; more wait.
static DRY_RUNS: Semaphore = Semaphore::const_new(2);

/// Evaluates a message without storing it: decided like any other, then discarded (R19).
pub async fn evaluate_dry_run(
    context: &HubContext,
    raw: &str,
    body: &[u8],
) -> Result<String, Failure> {
    let process = query::read_process(raw)?;
    let dialect = context.clara.processes.dialect(process).ok_or_else(Failure::unknown_process)?;
    let json = message::read_dry_run(body)?;
    let message = IncomingMessage::dry_run(&json, process)?;
    let Ok(_turn) = DRY_RUNS.acquire().await else { return Err(Failure::internal("dry-run")) };
    let (signed_order, reply) = match deed::plan_order(context, &message, dialect).await {
        Ok(plan) => plan,
        Err(PlanError::Order(fault)) => (MarketOrder::RecordOnly, OrderReply::Error(fault)),
        Err(PlanError::Engine(failure)) => return Err(from_engine(&failure)),
    };
    // A read-only order needs no decision, so it is answered directly.
    if let (MarketOrder::RecordOnly, OrderReply::Answer { messages, .. }) = (&signed_order, &reply)
    {
        let first = context.engine.with_world(|world| world.next.market_messages);
        return Ok(clerk::answer_result(messages, first));
    }
    // An id that no item can have.
    let id = format!("dry-run {}", context.engine.random().new_uuid());
    let recorder =
        Arc::new(OrderRecordWriter { from: message.from.to_string(), reply, is_stored: false });
    let post = Command::SubmitToMarket(Box::new(MarketSubmission {
        market: ID,
        id,
        order: signed_order,
        recorder,
    }));
    // The cost of the decision depends on the number of agents, so it runs on the blocking pool.
    let context = context.clone();
    let decide = move || {
        let now = context.engine.now();
        let decided = context.engine.with_world(|world| rialto_core::decide(world, post, now));
        let (changes, _) = decided.map_err(|refusal| from_engine(&refusal.into()))?;
        let text = changes.market_records.first().map(|posting| posting.text.clone());
        text.ok_or_else(|| Failure::internal("dry-run"))
    };
    let decided = tokio::task::spawn_blocking(decide).await;
    decided.unwrap_or_else(|_| Err(Failure::internal("dry-run")))
}

/// The failure for an engine failure.
pub fn from_engine(failure: &EngineFailure) -> Failure {
    match failure {
        EngineFailure::StoreFull => {
            Failure { retry_after_seconds: Some(30), ..Failure::disk_full() }
        }
        EngineFailure::Unavailable => {
            let down = Failure::unavailable("the hub cannot accept writes now");
            Failure { retry_after_seconds: Some(5), ..down }
        }
        EngineFailure::Refused(refusal @ Refusal::MemoryFull { .. }) => {
            let seconds = match refusal.retry() {
                Retry::After(wait) => u32::try_from(wait.0 / 1_000).ok(),
                Retry::Never => None,
            };
            Failure { retry_after_seconds: seconds, ..Failure::new(507, refusal.to_string()) }
        }
        EngineFailure::Refused(refusal) => Failure::bad_request(refusal.to_string()),
        EngineFailure::Fault | EngineFailure::StillRunning => {
            Failure::internal("see X-Request-Id in the hub's log")
        }
    }
}

/// The failure for a refusal of the edge.
pub fn from_edge(error: &EdgeError) -> Failure {
    match error {
        EdgeError::NotFound => Failure::not_found(),
        EdgeError::MethodNotAllowed => Failure::method_not_allowed(),
        EdgeError::WrongHost => Failure::new(421, "unknown Host header for this hub"),
        EdgeError::ForeignOrigin => Failure::new(403, "cross-origin requests are not allowed here"),
        EdgeError::EncodedBody => Failure::encoded_body(),
        EdgeError::TooLarge { .. } => Failure::too_large(),
        EdgeError::TooManyRequests { retry_after_seconds } => {
            let seconds = u32::try_from(*retry_after_seconds).unwrap_or(u32::MAX);
            Failure::rate_limited("too many messages; retry later", seconds)
        }
        EdgeError::Overloaded => {
            let full = Failure::unavailable("the hub is overloaded");
            Failure { retry_after_seconds: Some(1), ..full }
        }
        EdgeError::Malformed { what } => {
            Failure::bad_request(format!("malformed HTTP request: {what}"))
        }
        EdgeError::TooSlow => Failure::new(408, "the body took too long to arrive"),
        EdgeError::Internal => Failure::internal("see X-Request-Id in the hub's log"),
    }
}
