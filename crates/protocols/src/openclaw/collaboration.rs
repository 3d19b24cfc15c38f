//! A job as messages of this protocol: request, response and result.

use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester, Selection, State as JobState};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use uuid::Uuid;

use super::ID;
use super::OpenclawContext;
use super::wire::error::Rejected;
use super::wire::words::{ErrorType, State};
use super::wire::{
    self, CollaborationResult, Rejection, Request, Response, ResponseAnswer, ResultError,
    ResultOutcome,
};
use crate::adapter::{bridge, fidelity};
use crate::kit::ijson;
use crate::kit::object::{ObjectWriter, string_array};

/// When to retry an agent that did not answer.
const RETRY_SECONDS: u32 = 60;

/// The ids of a collaboration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    pub request_id: Uuid,
    pub correlation_id: Uuid,
    pub collaboration_id: Uuid,
}

/// The ids of a job. A job from another protocol uses the hub's own (B10).
pub fn ids(job: &Job) -> Ids {
    let collaboration_id = job.acceptance.worker_job_id.unwrap_or(job.uuid);
    let own =
        (job.request.origin == ID).then(|| ijson::read(job.request.meta.as_bytes()).ok()).flatten();
    let id = |name| own.as_ref().and_then(|json| wire::read_uuid(json.get(name)?));
    Ids {
        request_id: id("request_id").unwrap_or(job.uuid),
        correlation_id: id("correlation_id").unwrap_or(job.uuid),
        collaboration_id,
    }
}

/// The state of a collaboration.
pub fn state(job: &Job) -> State {
    let accepted = job.acceptance.accepted_at.is_some();
    match job.state {
        JobState::Deferred { .. } if !accepted => State::Deferred,
        state
            if accepted && (state.is_assigned() || matches!(state, JobState::Deferred { .. })) =>
        {
            State::Running
        }
        JobState::Completed => State::Completed,
        JobState::Failed | JobState::Expired if accepted => State::Failed,
        JobState::Cancelled => State::Cancelled,
        JobState::Failed | JobState::Expired | JobState::Withdrawn => State::Rejected,
        _ => State::AwaitingResponse,
    }
}

/// The responder's id; the hub's if there is none.
pub fn responder_id(context: &OpenclawContext, job: &Job) -> Uuid {
    let agent = responder_agent(job);
    let named = |world: &World| world.alias_of(agent?, ID)?.parse().ok();
    context.engine.with_world(named).unwrap_or(context.state.hub_id)
}

/// The agent that is or was asked.
pub fn responder_agent(job: &Job) -> Option<AgentId> {
    job.intended_worker().or(match job.selection {
        Selection::Direct(agent) => Some(agent),
        _ => None,
    })
}

/// Whether this agent is or was asked.
pub fn is_responder(job: &Job, agent: AgentId) -> bool {
    responder_agent(job) == Some(agent)
}

/// The request as its requester wrote it, or for another protocol an equivalent one.
pub fn request(context: &OpenclawContext, job: &Job) -> String {
    if job.request.origin == ID
        && let Ok(meta) = ijson::read(job.request.meta.as_bytes())
    {
        return ObjectWriter::copy_without(&meta, &[])
            .raw("input_data", &job.request.input)
            .finish();
    }
    let requester = match &job.request.requester {
        Requester::Agent(agent) => context.engine.with_world(|world| {
            let name = world.alias_of(*agent, ID)?;
            name.parse().ok()
        }),
        Requester::Guest(_) => None,
    };
    let Ids { request_id, correlation_id, .. } = ids(job);
    let request = Request {
        request_id,
        requester_agent_id: requester.unwrap_or(context.state.hub_id),
        capability_id: capability_id(context, job),
        input_data: as_object(&job.request.input, "input").into(),
        idempotency_key: None,
        deadline: Some(job.request.deadline),
        priority: None,
        responder_agent_id: None,
        budget: job.assignment.map(|turn| turn.price),
        correlation_id,
        timestamp: job.request.opened_at,
    };
    let bridge = context.engine.with_world(|world| bridge::bridge_of_requester(world, job));
    let bridge = ObjectWriter::new().raw(bridge::MEMBER, &bridge).finish();
    with_meta(joined(&request.write(), &bridge), fidelity::extras(job).as_deref())
}

/// Adds members of the other protocol that have no counterpart here as `meta` (B11).
pub fn with_meta(message: String, extras: Option<&str>) -> String {
    match extras {
        Some(extras) => joined(&message, &ObjectWriter::new().raw("meta", extras).finish()),
        None => message,
    }
}

/// The capability id that its responder uses.
pub fn capability_id(context: &OpenclawContext, job: &Job) -> String {
    let own = |world: &World| {
        let agent = world.agent(responder_agent(job)?)?;
        agent.skill_for(job).map(|skill| skill.name.clone())
    };
    context.engine.with_world(own).unwrap_or_else(|| job.request.skill.clone())
}

/// Wraps JSON that is not an object in one.
pub fn as_object(json: &str, name: &str) -> String {
    if json.trim_start().starts_with('{') {
        json.to_owned()
    } else {
        ObjectWriter::new().raw(name, json).finish()
    }
}

/// The last response; `None` while it is awaited.
pub fn response(context: &OpenclawContext, job: &Job, at: Timestamp) -> Option<Response> {
    let Ids { request_id, correlation_id, collaboration_id } = ids(job);
    let accepted = || ResponseAnswer::Accepted {
        collaboration_id,
        estimated_completion: estimated_completion(context, job),
    };
    let answer = match (state(job), job.state) {
        (State::AwaitingResponse, _) => return None,
        (_, JobState::Deferred { until }) if job.acceptance.accepted_at.is_none() => {
            ResponseAnswer::Deferred { until }
        }
        (State::Rejected, _) => ResponseAnswer::Rejected(rejection(job)),
        (State::Cancelled, _) if job.acceptance.accepted_at.is_none() => {
            let text = "The request was cancelled before it was accepted";
            ResponseAnswer::Rejected(Rejection::new(Rejected::PolicyViolation, text))
        }
        _ => accepted(),
    };
    let responder_agent_id = responder_id(context, job);
    let (timestamp, result) = (at, None);
    Some(Response { request_id, responder_agent_id, answer, correlation_id, timestamp, result })
}

/// The expected time of completion: from the worker, or else from the capability's duration.
fn estimated_completion(context: &OpenclawContext, job: &Job) -> Option<Timestamp> {
    if job.acceptance.ready_at.is_some() || job.acceptance.promised != job.request.wanted_by {
        return job.acceptance.ready_at.or(job.acceptance.promised);
    }
    let accepted_at = job.acceptance.accepted_at?;
    let worker = job.worker()?;
    let takes = context
        .engine
        .with_world(|world| world.agent(worker)?.skill_for(job)?.expected_duration)?;
    Some(accepted_at.plus(takes))
}

/// Why the request was rejected: as the responder wrote it, or from what the hub knows.
pub fn rejection(job: &Job) -> Rejection {
    let report = job.result.as_ref();
    let words = report.and_then(|report| report.meta.as_deref());
    if let Some(said) = words.and_then(Rejection::read) {
        return said;
    }
    let text = report.and_then(|report| report.text.clone());
    let text = text.unwrap_or_else(|| "the request was not accepted".to_owned());
    let code = match report.and_then(|report| report.cause) {
        Some(Cause::NoSuchSkill) => Rejected::CapabilityNotAvailable,
        Some(Cause::Policy | Cause::BudgetTooLow) => Rejected::PolicyViolation,
        Some(Cause::TimedOut) => Rejected::DeadlineTooSoon,
        Some(Cause::Unusable) => Rejected::InvalidInput,
        Some(Cause::Payment) => return Rejection::insufficient_credits(RETRY_SECONDS),
        _ => Rejected::ResourceExhausted,
    };
    let retry_after_seconds = code.retryable().then_some(RETRY_SECONDS);
    Rejection { retry_after_seconds, ..Rejection::new(code, text) }
}

/// Members of a result that the hub writes; the others are copied.
const OWN: [&str; 11] = [
    "collaboration_id",
    "request_id",
    "responder_agent_id",
    "result_status",
    "output_data",
    "output_valid",
    "error",
    "reason",
    "correlation_id",
    "timestamp",
    "protocol_version",
];

/// The result as a message; `None` while it runs, and for requests that were never accepted.
pub fn result(context: &OpenclawContext, job: &Job) -> Option<String> {
    let outcome = match state(job) {
        State::Completed => {
            let output = job.result.as_ref().and_then(|report| report.output.as_deref());
            let output_data = as_object(output.unwrap_or("{}"), "output").into();
            ResultOutcome::Completed { output_data }
        }
        State::Failed => ResultOutcome::Failed(failed(job)),
        State::Cancelled => {
            let reason = job.result.as_ref().and_then(|report| report.text.clone());
            ResultOutcome::Cancelled { reason }
        }
        _ => return None,
    };
    let words = job.result.as_ref().and_then(|report| report.meta.as_deref());
    let said = words.and_then(|words| ijson::read(words.as_bytes()).ok());
    // A worker of another protocol may have stored its own format there.
    let said = said.filter(|said| said.get("result_status").is_some());
    let says_when = said.as_ref().is_some_and(|said| said.get("completed_at").is_some());
    let Ids { request_id, correlation_id, collaboration_id } = ids(job);
    let took =
        said.is_none().then(|| job.result.as_ref().map(|report| report.duration.0)).flatten();
    let message = CollaborationResult {
        collaboration_id,
        request_id,
        responder_agent_id: responder_id(context, job),
        outcome,
        execution_duration_ms: took.filter(|_| job.acceptance.accepted_at.is_some()),
        completed_at: job.ended_at.filter(|_| !says_when),
        correlation_id,
        timestamp: job.ended_at.unwrap_or(job.request.opened_at),
    };
    let extra = said.map(|said| ObjectWriter::copy_without(&said, &OWN).finish());
    let unfit = unfit_output(job).map(|output| {
        let output = as_object(output, "output");
        ObjectWriter::new().raw("output_data", &output).flag("output_valid", false).finish()
    });
    let parts = extra.into_iter().chain(unfit);
    Some(parts.fold(message.write(), |whole, part| joined(&whole, &part)))
}

/// Output that violates its schema. It counts as failed, but the requester still gets it (R60).
fn unfit_output(job: &Job) -> Option<&str> {
    let report = job.result.as_ref()?;
    report.output.as_deref().filter(|_| report.cause == Some(Cause::Unusable))
}

/// One object with the members of both.
fn joined(one: &str, other: &str) -> String {
    match (one.strip_suffix('}'), other.strip_prefix('{')) {
        (Some(head), Some(tail)) if tail != "}" => format!("{head},{tail}"),
        _ => one.to_owned(),
    }
}

/// Why there is no output.
fn failed(job: &Job) -> ResultError {
    let report = job.result.as_ref();
    let cause = report.and_then(|report| report.cause);
    if cause == Some(Cause::TimedOut) {
        return ResultError::deadline_exceeded();
    }
    let text = report.and_then(|report| report.text.clone()).unwrap_or_default();
    if unfit_output(job).is_some() {
        let errors = string_array(text.split("; "));
        let details = ObjectWriter::new().raw("validation_errors", &errors).finish();
        let message = "The output does not conform to the capability's output schema";
        return ResultError {
            details: Some(details.into()),
            ..plain("OUTPUT_INVALID", message.to_owned(), ErrorType::Permanent)
        };
    }
    let words = report.and_then(|report| report.meta.as_deref());
    if let Some(said) = words.and_then(ResultError::read) {
        return said;
    }
    match cause {
        Some(Cause::WorkerLeft) => plain("AGENT_UNREGISTERED", text, ErrorType::Transient),
        Some(Cause::NoWorkerLeft | Cause::Offline | Cause::UnknownFate) => {
            plain("AGENT_UNAVAILABLE", text, ErrorType::Transient)
        }
        _ => plain("EXECUTION_ERROR", text, ErrorType::Permanent),
    }
}

fn plain(code: &str, message: String, error_type: ErrorType) -> ResultError {
    ResultError {
        code: code.to_owned(),
        message,
        error_type: Some(error_type),
        details: None,
        retryable: error_type.is_retryable(),
        retry_after_seconds: None,
    }
}
