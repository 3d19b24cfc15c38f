//! Jobs: request one, read it, cancel it, fetch assigned ones.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::answer::Answer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester};
use schemars::JsonSchema;
use serde::Serialize;

use super::{HandlerResult, read_query};
use crate::adapter::caller::{Caller, KnownCaller};
use crate::adapter::open_job::{self, set_job_header};
use crate::adapter::request::{BodyBytes, PathParam};
use crate::adapter::{bridge, shown_jobs};
use crate::kit::budget::ByteBudget;
use crate::kit::fields::Malformed;
use crate::kit::query::Query;
use crate::registry::ID;
use crate::registry::RegistryContext;
use crate::registry::auth::{acting_agent, agent_in_path, identity_mismatch, native_agent};
use crate::registry::errors::{
    Failure, JOB_EXAMPLE, RefusedJob, RequestKind, from_engine, json_response, with_body_example,
};
use crate::registry::translate::{ForwardedJob, forward_job, job_request, job_status, result_body};
use crate::registry::wire::{JobPost, JobStatus, read_path_uuid};

/// How many jobs a worker gets at once.
const FETCHED_MAX: usize = 50;
/// How many bytes of input a worker gets at once, unless the first job alone has more. Several
/// times the maximum of one job, so that a worker can have several large ones.
const FETCHED_BYTES: usize = 8 << 20;
/// The longest wait of a caller, in seconds.
const WAIT_MAX: i64 = 30;

/// `POST /jobs`: the hub chooses the worker, or the body names it.
pub async fn create_job(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    RawQuery(raw): RawQuery,
    sent: BodyBytes,
) -> HandlerResult {
    let wait = wait(&read_query(raw)?)?;
    let wire = JobPost::read(&sent.0).map_err(with_body_example(JOB_EXAMPLE))?;
    request_job(&context, known, wire, wait).await
}

/// `POST /agents/{agent_id}/jobs`: the path names the worker.
pub async fn create_job_for_agent(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    PathParam(agent): PathParam,
    RawQuery(raw): RawQuery,
    sent: BodyBytes,
) -> HandlerResult {
    let agent = read_path_uuid(&agent, "agent_id")?;
    let wait = wait(&read_query(raw)?)?;
    let mut wire = JobPost::read(&sent.0).map_err(with_body_example(JOB_EXAMPLE))?;
    if wire.agent_id.is_some_and(|named| named != agent) {
        return Err(Failure::field("/agent_id", "agent_id differs from the one in the path"));
    }
    wire.agent_id = Some(agent);
    request_job(&context, known, wire, wait).await
}

/// `?wait=`: how long the caller wants to wait, in seconds.
fn wait(query: &Query) -> Result<Option<Duration>, Malformed> {
    let seconds = query.integer("wait", 0..=WAIT_MAX)?;
    Ok(seconds.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
}

async fn request_job(
    context: &RegistryContext,
    known: KnownCaller,
    wire: JobPost,
    wait: Option<Duration>,
) -> HandlerResult {
    let refused = RefusedJob {
        job_id: wire.job_id.map(|id| id.to_string()),
        agent_id: wire.agent_id.map(|id| id.to_string()),
        at: context.engine.now(),
    };
    open(context, known, wire, wait).await.map_err(|failure| failure.for_job(refused))
}

async fn open(
    context: &RegistryContext,
    known: KnownCaller,
    wire: JobPost,
    wait: Option<Duration>,
) -> HandlerResult {
    let requester = requester(context, known, wire.orchestrator_id.as_deref())?;
    if wire.passthrough.more.contains_key(bridge::MEMBER) {
        return Err(Failure::field("/bridge", "bridge is reserved for the hub; remove it"));
    }
    let worker = match wire.agent_id {
        None => None,
        Some(id) => {
            // Includes agents that have unregistered: a repeat still gets its first answer, and a
            // new job is refused.
            let found =
                context.engine.with_world(|world| world.agent_by_alias(ID, &id.to_string()));
            Some(found.ok_or_else(Failure::not_found)?)
        }
    };
    if let Some(url) = &wire.callback_url {
        let blocked = |why| Failure::field("/callback_url", format!("callback_url {why}"));
        context.egress.check_url(url).map_err(blocked)?;
    }
    let mut request = job_request(wire, requester, worker);
    request.requester_waits = wait.is_some_and(|wait| !wait.is_zero());
    let opened = open_job::open_job(context, ID, request, known.0.idempotency).await;
    let opened = opened.map_err(|failure| from_engine(failure, RequestKind::Job))?;
    wait_and_respond(context, opened.job, wait).await
}

/// The requester: the key's agent, or on an open hub the one the body names.
fn requester(
    context: &RegistryContext,
    known: KnownCaller,
    named: Option<&str>,
) -> Result<Requester, Failure> {
    context.engine.with_world(|world| match known.0.caller {
        Caller::Anonymous | Caller::FormerAgent(_) => {
            let named = named
                .ok_or_else(|| Failure::field("/orchestrator_id", "orchestrator_id is required"))?;
            let name = named.to_lowercase();
            match (native_agent(world, &name), world.agent_by_alias(ID, &name)) {
                (Some(agent), _) => Ok(Requester::Agent(agent)),
                (None, None) => Ok(Requester::Guest(named.to_owned())),
                // An agent of another protocol, or one that has unregistered, needs its own key.
                (None, Some(_)) => Err(identity_mismatch()),
            }
        }
        _ => {
            let name = named.map(str::to_lowercase);
            acting_agent(known, world, name.as_deref()).map(Requester::Agent)
        }
    })
}

/// Waits for the worker as long as the caller asked, or for the default time, and answers with the
/// current state.
async fn wait_and_respond(
    context: &RegistryContext,
    mut job: Arc<Job>,
    wait: Option<Duration>,
) -> HandlerResult {
    let usual = Duration::from_millis(context.state.settings.sync_wait.0.unsigned_abs());
    if !job.state.is_final() && (wait.is_some() || !job.pending) {
        let now = match wait {
            Some(wait) => context.engine.wait_until_ended(job.id, wait).await,
            None => context.engine.wait_until_ended_or_pending(job.id, usual).await,
        };
        let now = now.map_err(|failure| from_engine(failure, RequestKind::Job))?;
        job = now.ok_or_else(Failure::not_found)?;
    }
    let settled = open_job::settle(&context.engine, job).await;
    let job = settled.map_err(|failure| from_engine(failure, RequestKind::Job))?;
    Ok(job_response(context, &job, result_status(&job)))
}

/// The HTTP status of a job's answer.
fn result_status(job: &Job) -> u16 {
    match job_status(job) {
        JobStatus::Pending => 202,
        JobStatus::Success => 200,
        // Only a result that the worker sent itself is an ordinary answer.
        JobStatus::Failure => match job.result.as_ref().and_then(|report| report.cause) {
            Some(Cause::Unusable) => 502,
            _ => 200,
        },
    }
}

/// The response to the requester of a job.
fn job_response(context: &RegistryContext, job: &Job, status: u16) -> Response {
    let mut answer =
        context.engine.with_world(|world| json_response(status, &result_body(world, job)));
    set_job_header(&mut answer, job.uuid);
    answer
}

/// A job of this protocol by its id, if the caller may see it.
async fn visible_job(
    context: &RegistryContext,
    known: KnownCaller,
    id: &str,
) -> Result<Arc<Job>, Failure> {
    let id = read_path_uuid(id, "job_id")?;
    let job = find_job_by_any_id(context, id).await?;
    let allowed = match known.0.caller {
        Caller::Agent(agent) => job.is_requested_by(agent) || job.worker() == Some(agent),
        Caller::Anonymous => known.0.is_open() && job.request.origin == ID,
        Caller::Operator | Caller::FormerAgent(_) => false,
    };
    if allowed { Ok(job) } else { Err(Failure::not_found()) }
}

/// A job by the requester's id, or by the hub's own, which is the one a bridged worker knows.
pub async fn find_job_by_any_id(
    context: &RegistryContext,
    id: uuid::Uuid,
) -> Result<Arc<Job>, Failure> {
    let own = JobRef::Foreign { origin: ID, id: id.to_string() };
    for wanted in [own, JobRef::Uuid(id)] {
        let found = context.engine.find_job(&wanted).await;
        if let Some(job) = found.map_err(|failure| from_engine(failure, RequestKind::Job))? {
            return Ok(job);
        }
    }
    Err(Failure::not_found())
}

/// `GET /jobs/{job_id}`: the job's state, for its two parties.
pub async fn show(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let job = visible_job(&context, known, &id).await?;
    let status = if job.state.is_final() { 200 } else { 202 };
    Ok(job_response(&context, &job, status))
}

/// `POST /jobs/{job_id}/cancel`: cancels the job before its worker has it.
pub async fn cancel(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let job = visible_job(&context, known, &id).await?;
    let by = match (known.0.caller, &job.request.requester) {
        (Caller::Agent(agent), _) => Canceller::Agent(agent),
        (_, Requester::Agent(agent)) => Canceller::Agent(*agent),
        // A guest has no key; on an open hub its claim is enough.
        (_, Requester::Guest(_)) => Canceller::Guest,
    };
    let command = Command::Cancel { job: JobRef::Id(job.id), by, reason: None };
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    match ran.map_err(|failure| from_engine(failure, RequestKind::Job))?.answer {
        Answer::Job { job, .. } => Ok(job_response(&context, &job, 200)),
        _ => Err(Failure::not_found()),
    }
}

#[derive(Serialize, JsonSchema)]
pub struct JobsAnswer {
    jobs: Vec<ForwardedJob>,
}

/// `GET /agents/{agent_id}/jobs`: the jobs that wait for the agent, at once or after a wait.
pub async fn fetch_jobs(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    PathParam(id): PathParam,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let id = read_path_uuid(&id, "agent_id")?.to_string();
    let query = read_query(raw)?;
    if query.text("status").is_some_and(|status| status != "PENDING") {
        return Err(Failure::field("?status", "status must be PENDING"));
    }
    let wait = wait(&query)?.unwrap_or_default();
    let agent = context.engine.with_world(|world| agent_in_path(known, world, &id))?;
    context.engine.record_seen(agent);
    let until = tokio::time::Instant::now() + wait;
    loop {
        let news = context.engine.subscribe_agent(agent);
        let told = news.notified();
        tokio::pin!(told);
        // Register for the wake-up first and check for jobs afterwards, so that none is missed.
        told.as_mut().enable();
        let jobs = hand_over(&context, agent).await?;
        if !jobs.is_empty() || tokio::time::timeout_at(until, told).await.is_err() {
            return Ok(jobs_response(&context, &jobs));
        }
    }
}

/// The oldest jobs assigned to the agent; new ones are marked as handed over first.
async fn hand_over(context: &RegistryContext, agent: AgentId) -> Result<Vec<Arc<Job>>, Failure> {
    let mut budget = ByteBudget::new(FETCHED_BYTES);
    let jobs: Vec<Arc<Job>> = context.engine.with_world(|world| {
        let held = |job: &&Arc<Job>| job.state.is_assigned();
        let oldest = world.assigned_jobs(agent).filter(held).take(FETCHED_MAX);
        // Jobs that no longer fit are fetched once the first ones are reported.
        oldest
            .take_while(|job| budget.take(job.request.input.len() + job.request.meta.len()))
            .cloned()
            .collect()
    });
    let fresh = |job: &Arc<Job>| job.assignment.is_some_and(|turn| !turn.handed_over);
    if !jobs.iter().any(fresh) {
        shown_jobs::note_fetch(context, agent, &jobs).await;
        return Ok(jobs);
    }
    let ids = jobs.iter().map(|job| job.id).collect();
    let ran = context.engine.run(Command::HandOver { agent, jobs: ids }).await;
    match ran.map_err(|failure| from_engine(failure, RequestKind::Job))? {
        Answer::Jobs(jobs) => Ok(jobs),
        _ => Ok(Vec::new()),
    }
}

fn jobs_response(context: &RegistryContext, jobs: &[Arc<Job>]) -> Response {
    let shown = |world: &_| jobs.iter().map(|job| forward_job(context, world, job)).collect();
    json_response(200, &JobsAnswer { jobs: context.engine.with_world(shown) })
}
