//! Jobs: request one, read it, cancel it, fetch assigned ones.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::answer::Answer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, State as JobState};
use serde::Serialize;

use super::Answered;
use crate::adapter::Floor;
use crate::adapter::caller::Caller;
use crate::adapter::{bridge, shown_jobs};
use crate::kit::budget::ByteBudget;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;
use crate::registry::codes::{Context, Failure, RefusedJob, failed, json, unread};
use crate::registry::opening::{self, Order, Wishes};
use crate::registry::proof::{Known, Named, Sent, differs, native};
use crate::registry::shape::{self, Forwarded};
use crate::registry::wire::{JobPost, path_uuid};
use crate::registry::{ID, examples};

/// How many jobs a worker gets at once.
const FETCHED_MAX: usize = 50;
/// How many bytes of input a worker gets at once, unless the first job alone has more. Several
/// times the maximum of one job, so that a worker can have several large ones.
const FETCHED_BYTES: usize = 8 << 20;
/// The longest wait of a caller, in seconds.
const WAIT_MAX: i64 = 30;

/// `POST /jobs`: the hub chooses the worker, or the body names it.
pub async fn post(
    State(floor): State<Floor>,
    known: Known,
    RawQuery(raw): RawQuery,
    sent: Sent,
) -> Answered {
    let wait = wait(&query(raw)?)?;
    let wire = JobPost::read(&sent.0).map_err(unread(examples::JOB))?;
    ask(&floor, known, wire, wait).await
}

/// `POST /agents/{agent_id}/jobs`: the path names the worker.
pub async fn post_to(
    State(floor): State<Floor>,
    known: Known,
    Named(agent): Named,
    RawQuery(raw): RawQuery,
    sent: Sent,
) -> Answered {
    let agent = path_uuid(&agent, "agent_id")?;
    let wait = wait(&query(raw)?)?;
    let mut wire = JobPost::read(&sent.0).map_err(unread(examples::JOB))?;
    if wire.agent_id.is_some_and(|named| named != agent) {
        return Err(Failure::field("/agent_id", "agent_id differs from the one in the path"));
    }
    wire.agent_id = Some(agent);
    ask(&floor, known, wire, wait).await
}

fn query(raw: Option<String>) -> Result<Query, Malformed> {
    Query::read(raw.as_deref().unwrap_or_default())
}

/// `?wait=`: how long the caller wants to wait, in seconds.
fn wait(query: &Query) -> Result<Option<Duration>, Malformed> {
    let seconds = query.integer("wait", 0..=WAIT_MAX)?;
    Ok(seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
}

async fn ask(floor: &Floor, known: Known, wire: JobPost, wait: Option<Duration>) -> Answered {
    let refused = RefusedJob {
        job_id: wire.job_id.map(|id| id.to_string()),
        agent_id: wire.agent_id.map(|id| id.to_string()),
        at: floor.engine.now(),
    };
    open(floor, known, wire, wait).await.map_err(|failure| failure.of_job(refused))
}

async fn open(floor: &Floor, known: Known, wire: JobPost, wait: Option<Duration>) -> Answered {
    let requester = requester(floor, &known, wire.orchestrator_id.as_deref())?;
    if wire.rest.more.contains_key(bridge::MEMBER) {
        return Err(Failure::field("/bridge", "bridge is reserved for the hub; remove it"));
    }
    let worker = match wire.agent_id {
        None => None,
        Some(id) => {
            // Includes agents that have unregistered: a repeat still gets its first answer, and a
            // new job is refused.
            let found = floor.engine.look(|world| world.agent_named(ID, &id.to_string()));
            Some(found.ok_or_else(Failure::not_found)?)
        }
    };
    if let Some(url) = &wire.callback_url {
        let blocked = |why| Failure::field("/callback_url", format!("callback_url {why}"));
        floor.egress.check(url).map_err(blocked)?;
    }
    let waits = wait.is_some_and(|wait| !wait.is_zero());
    let order = Order { wire, requester, worker, wishes: Wishes { waits, ..Wishes::default() } };
    let opened = opening::open(floor, order, known.0.once).await;
    settle(floor, opened.map_err(|failure| failed(failure, Context::Job))?, wait).await
}

/// The requester: the key's agent, or on an open hub the one the body names.
fn requester(floor: &Floor, known: &Known, named: Option<&str>) -> Result<Requester, Failure> {
    floor.engine.look(|world| match known.0.caller {
        Caller::Nobody | Caller::Former(_) => {
            let named = named
                .ok_or_else(|| Failure::field("/orchestrator_id", "orchestrator_id is required"))?;
            let name = named.to_lowercase();
            match (native(world, &name), world.agent_named(ID, &name)) {
                (Some(agent), _) => Ok(Requester::Agent(agent)),
                (None, None) => Ok(Requester::Guest(named.to_owned())),
                // An agent of another protocol, or one that has unregistered, needs its own key.
                (None, Some(_)) => Err(differs()),
            }
        }
        _ => {
            let name = named.map(str::to_lowercase);
            known.agent(world, name.as_deref()).map(Requester::Agent)
        }
    })
}

/// Waits for the worker as long as the caller asked, or for the default time, and answers with the
/// current state.
async fn settle(floor: &Floor, job: Arc<Job>, wait: Option<Duration>) -> Answered {
    let mut job = job;
    let usual = Duration::from_millis(floor.settings.registry.sync_wait.0.unsigned_abs());
    if !job.state.is_final() && (wait.is_some() || !job.pending) {
        let now = match wait {
            Some(wait) => floor.engine.over(job.id, wait).await,
            None => floor.engine.ended(job.id, usual).await,
        };
        let now = now.map_err(|failure| failed(failure, Context::Job))?;
        job = now.ok_or_else(Failure::not_found)?;
    }
    if !job.state.is_final() && !job.pending {
        let marked = floor.engine.run(Command::MarkPending { job: job.id }).await;
        match marked {
            Ok(Answer::Job { job: now, .. }) => job = now,
            // It ended just before it was marked as pending.
            _ => {
                let now = floor.engine.job(job.id).await;
                let now = now.map_err(|failure| failed(failure, Context::Job))?;
                job = now.ok_or_else(Failure::not_found)?;
            }
        }
    }
    if job.state == JobState::Withdrawn {
        return Err(Failure::offline());
    }
    Ok(shape::answer(floor, &job, shape::result_status(&job)))
}

/// A job of this protocol by its id, if the caller may see it.
async fn seen(floor: &Floor, known: &Known, id: &str) -> Result<Arc<Job>, Failure> {
    let id = path_uuid(id, "job_id")?;
    let job = by_either_name(floor, id).await?;
    let allowed = match known.0.caller {
        Caller::Agent(agent) => job.asked_by(agent) || job.worker() == Some(agent),
        Caller::Nobody => known.0.is_open() && job.origin == ID,
        Caller::Operator | Caller::Former(_) => false,
    };
    if allowed { Ok(job) } else { Err(Failure::not_found()) }
}

/// A job by the requester's id, or by the hub's own, which is the one a bridged worker knows.
pub async fn by_either_name(floor: &Floor, id: uuid::Uuid) -> Result<Arc<Job>, Failure> {
    let own = JobRef::Foreign { origin: ID, id: id.to_string() };
    for wanted in [own, JobRef::Uuid(id)] {
        let found = floor.engine.find_job(&wanted).await;
        if let Some(job) = found.map_err(|failure| failed(failure, Context::Job))? {
            return Ok(job);
        }
    }
    Err(Failure::not_found())
}

/// `GET /jobs/{job_id}`: the job's state, for its two parties.
pub async fn show(State(floor): State<Floor>, known: Known, Named(id): Named) -> Answered {
    let job = seen(&floor, &known, &id).await?;
    let status = if job.state.is_final() { 200 } else { 202 };
    Ok(shape::answer(&floor, &job, status))
}

/// `POST /jobs/{job_id}/cancel`: cancels the job before its worker has it.
pub async fn cancel(State(floor): State<Floor>, known: Known, Named(id): Named) -> Answered {
    let job = seen(&floor, &known, &id).await?;
    let by = match (known.0.caller, &job.requester) {
        (Caller::Agent(agent), _) => Canceller::Agent(agent),
        (_, Requester::Agent(agent)) => Canceller::Agent(*agent),
        // A guest has no key; on an open hub its claim is enough.
        (_, Requester::Guest(_)) => Canceller::Guest,
    };
    let command = Command::Cancel { job: JobRef::Id(job.id), by, reason: None };
    let ran = floor.engine.run_once(command, known.0.once).await;
    match ran.map_err(|failure| failed(failure, Context::Job))?.answer {
        Answer::Job { job, .. } => Ok(shape::answer(&floor, &job, 200)),
        _ => Err(Failure::not_found()),
    }
}

#[derive(Serialize)]
struct Work {
    jobs: Vec<Forwarded>,
}

/// `GET /agents/{agent_id}/jobs`: the jobs that wait for the agent, at once or after a wait.
pub async fn fetch(
    State(floor): State<Floor>,
    known: Known,
    Named(id): Named,
    RawQuery(raw): RawQuery,
) -> Answered {
    let id = path_uuid(&id, "agent_id")?.to_string();
    let query = query(raw)?;
    if query.text("status").is_some_and(|status| status != "PENDING") {
        let message = "status must be PENDING".to_owned();
        return Err(Malformed { field: "?status".to_owned(), message }.into());
    }
    let wait = wait(&query)?.unwrap_or_default();
    let agent = floor.engine.look(|world| known.agent_of_path(world, &id))?;
    floor.engine.seen(agent);
    let until = tokio::time::Instant::now() + wait;
    loop {
        let news = floor.engine.news_of(agent);
        let told = news.notified();
        tokio::pin!(told);
        // Register for the wake-up first and check for jobs afterwards, so that none is missed.
        told.as_mut().enable();
        let jobs = hand_over(&floor, agent).await?;
        if !jobs.is_empty() || tokio::time::timeout_at(until, told).await.is_err() {
            return Ok(work(&floor, &jobs));
        }
    }
}

/// The oldest jobs assigned to the agent; new ones are marked as handed over first.
async fn hand_over(floor: &Floor, agent: AgentId) -> Result<Vec<Arc<Job>>, Failure> {
    let mut budget = ByteBudget::new(FETCHED_BYTES);
    let jobs: Vec<Arc<Job>> = floor.engine.look(|world| {
        let held = |job: &&Arc<Job>| matches!(job.state, JobState::Assigned | JobState::Running);
        let oldest = world.work_of(agent).filter(held).take(FETCHED_MAX);
        // Jobs that no longer fit are fetched once the first ones are reported.
        oldest.take_while(|job| budget.take(job.input.len() + job.meta.len())).cloned().collect()
    });
    let fresh = |job: &Arc<Job>| job.assignment.is_some_and(|turn| !turn.handed_over);
    if !jobs.iter().any(fresh) {
        shown_jobs::note_fetch(floor, agent, &jobs).await;
        return Ok(jobs);
    }
    let ids = jobs.iter().map(|job| job.id).collect();
    let ran = floor.engine.run(Command::HandOver { agent, jobs: ids }).await;
    match ran.map_err(|failure| failed(failure, Context::Job))? {
        Answer::Jobs(jobs) => Ok(jobs),
        _ => Ok(Vec::new()),
    }
}

fn work(floor: &Floor, jobs: &[Arc<Job>]) -> Response {
    let shown = |world: &_| jobs.iter().map(|job| shape::forwarded(floor, world, job)).collect();
    json(200, &Work { jobs: floor.engine.look(shown) })
}
