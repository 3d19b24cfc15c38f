//! The message unit: reads an item, verifies its signature, executes it once, and then acknowledges
//! it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use rialto_core::command::{Command, JobRef};
use rialto_core::market::{Deed, Post};
use rialto_core::refusal::{Refusal, Retry};
use rialto_engine::Failure as EngineFailure;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::clerk::{self, Clerk, Reply};
use super::deed::{self, NoPlan};
use super::failure::Failure;
use super::message::{self, Message};
use super::{ID, query};
use crate::adapter::{Floor, Signer, Trouble};
use crate::kit::ans104::{Id, Item};

/// The most items verified at the same time; more wait, without blocking the request loop (R75).
static PROVING: Semaphore = Semaphore::const_new(4);

/// An item that was accepted.
pub struct Taken {
    pub id: Id,
    /// The hub's id of the job that the item opened, if any. With many copies, that of the first.
    pub job: Option<Uuid>,
}

/// Accepts an item.
pub async fn take(floor: &Floor, body: Bytes, from: Option<SocketAddr>) -> Result<Taken, Failure> {
    let item = Item::read(&body)?;
    let (id, target) = (item.id(), Message::of(&item)?.target);
    let dialect = floor.clara.processes.dialect(target).ok_or_else(Failure::unknown_process)?;
    prove(body.clone()).await?;
    let address = item.address();
    count(floor, &address, from)?;
    let message = Message { item: Some(&body), ..Message::of(&item)? };
    let (deed, reply) = match deed::plan(floor, &message, dialect).await {
        Ok(plan) => plan,
        Err(NoPlan::Fault(fault)) => (Deed::Nothing, Reply::Fault(fault)),
        Err(NoPlan::Failed(failure)) => return Err(failed(&failure)),
    };
    let opens = matches!(deed, Deed::Open(_));
    let post = Post {
        market: ID,
        id: id.to_string(),
        deed,
        scribe: Arc::new(Clerk { from: address, reply, kept: true }),
    };
    let ran = floor.engine.run(Command::Post(Box::new(post))).await;
    ran.map_err(|failure| failed(&failure))?;
    let job = if opens { opened(floor, id).await? } else { None };
    Ok(Taken { id, job })
}

/// The job that an item opened, now or when it first arrived.
async fn opened(floor: &Floor, id: Id) -> Result<Option<Uuid>, Failure> {
    let wanted = JobRef::Foreign { origin: ID, id: id.to_string() };
    let job = floor.engine.find_job(&wanted).await.map_err(|failure| failed(&failure))?;
    Ok(job.map(|job| job.uuid))
}

/// Verifies the signature on the blocking pool.
async fn prove(body: Bytes) -> Result<(), Failure> {
    let Ok(_turn) = PROVING.acquire().await else { return Err(Failure::fault("proof")) };
    let proven = tokio::task::spawn_blocking(move || Item::read(&body).map(|item| item.verify()));
    match proven.await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(unproven))) => Err(unproven.into()),
        Ok(Err(bad)) => Err(bad.into()),
        Err(_) => Err(Failure::fault("proof")),
    }
}

/// Counts known senders by their address, others by their network address.
fn count(floor: &Floor, address: &str, from: Option<SocketAddr>) -> Result<(), Failure> {
    let name = super::people::owner_name(address);
    let known = floor.engine.look(|world| world.owner_named(&name).is_some());
    let counted = match known {
        true => floor.writes.count(Signer::Name(name.as_bytes())),
        false => floor.writes.count_newcomer(from),
    };
    counted.map_err(|trouble| refused(&trouble))
}

/// The most dry-runs decided at the same time; more wait.
static DRY_RUNS: Semaphore = Semaphore::const_new(2);

/// Evaluates a message without storing it: decided like any other, then discarded (R19).
pub async fn dry_run(floor: &Floor, raw: &str, body: &[u8]) -> Result<String, Failure> {
    let process = query::process(raw)?;
    let dialect = floor.clara.processes.dialect(process).ok_or_else(Failure::unknown_process)?;
    let json = message::parse(body)?;
    let message = Message::dry_run(&json, process)?;
    let Ok(_turn) = DRY_RUNS.acquire().await else { return Err(Failure::fault("dry-run")) };
    let (deed, reply) = match deed::plan(floor, &message, dialect).await {
        Ok(plan) => plan,
        Err(NoPlan::Fault(fault)) => (Deed::Nothing, Reply::Fault(fault)),
        Err(NoPlan::Failed(failure)) => return Err(failed(&failure)),
    };
    // A read-only order needs no decision, so it is answered directly.
    if let (Deed::Nothing, Reply::Known { messages, .. }) = (&deed, &reply) {
        let first = floor.engine.look(|world| world.next.sent);
        return Ok(clerk::known(messages, first));
    }
    // An id that no item can have.
    let id = format!("dry-run {}", floor.engine.ids().uuid());
    let scribe = Arc::new(Clerk { from: message.from.to_string(), reply, kept: false });
    let post = Command::Post(Box::new(Post { market: ID, id, deed, scribe }));
    // The cost of the decision depends on the number of agents, so it runs on the blocking pool.
    let floor = floor.clone();
    let decide = move || {
        let now = floor.engine.now();
        let decided = floor.engine.look(|world| rialto_core::decide(world, post, now));
        let (changes, _) = decided.map_err(|refusal| failed(&refusal.into()))?;
        let text = changes.postings.first().map(|posting| posting.text.clone());
        text.ok_or_else(|| Failure::fault("dry-run"))
    };
    let decided = tokio::task::spawn_blocking(decide).await;
    decided.unwrap_or_else(|_| Err(Failure::fault("dry-run")))
}

/// The failure for an engine failure.
pub fn failed(failure: &EngineFailure) -> Failure {
    match failure {
        EngineFailure::Full => Failure { retry_after_seconds: Some(30), ..Failure::disk_full() },
        EngineFailure::Down => {
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
            Failure::fault("see X-Request-Id in the hub's log")
        }
    }
}

/// The failure for a refusal of the edge.
pub fn refused(trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::NotFound => Failure::not_found(),
        Trouble::MethodNotAllowed => Failure::method(),
        Trouble::WrongHost => Failure::new(421, "unknown Host header for this hub"),
        Trouble::ForeignOrigin => Failure::new(403, "cross-origin requests are not allowed here"),
        Trouble::Encoded => Failure::encoded(),
        Trouble::TooLarge { .. } => Failure::too_large(),
        Trouble::TooManyRequests { retry_after_seconds } => {
            let seconds = u32::try_from(*retry_after_seconds).unwrap_or(u32::MAX);
            Failure::too_many("too many messages; retry later", seconds)
        }
        Trouble::Overloaded => {
            let full = Failure::unavailable("the hub is overloaded");
            Failure { retry_after_seconds: Some(1), ..full }
        }
        Trouble::Malformed { what } => {
            Failure::bad_request(format!("malformed HTTP request: {what}"))
        }
        Trouble::TooSlow => Failure::new(408, "the body took too long to arrive"),
        Trouble::Broken => Failure::fault("see X-Request-Id in the hub's log"),
    }
}
