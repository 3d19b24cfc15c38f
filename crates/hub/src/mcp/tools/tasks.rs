//! Long calls as tasks: a task is a job of the caller, and its id is the job's.

use std::sync::Arc;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, State};
use rialto_core::time::Timestamp;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::ijson;
use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::kit::rfc3339;

use super::get_job::cancel_detached;
use super::job_view::{JobView, ended_error};
use super::stranger_text::in_a_sentence;
use super::waiting::shown_state;
use crate::mcp::caller::McpCaller;
use crate::mcp::wire::error::{INTERNAL, RpcError};
use crate::mcp::wire::message::ClientRequest;
use crate::mcp::wire::method::Method;
use crate::mcp::wire::result::{ResultObject, ResultType, as_text};
use crate::v1::jobs::find_party_job;
use crate::v1::problem::Problem;

/// How often a client should ask for a task.
const POLL_EVERY_MS: &str = "2000";

/// The answer of a call that goes on as a task.
pub fn created(job: &Job) -> ResultObject {
    describe(ResultObject::new(ResultType::Task), job)
}

/// What a task looks like, without its result.
fn describe(result: ResultObject, job: &Job) -> ResultObject {
    let (status, state) = (status_of(job), shown_state(job));
    result
        .text("taskId", &job.uuid.to_string())
        .text("status", status)
        .text("statusMessage", &format!("{}: {state}", in_a_sentence(&job.request.skill)))
        .text("createdAt", &rfc3339::format_millis(job.request.opened_at))
        .text("lastUpdatedAt", &rfc3339::format_millis(updated_at(job)))
        .raw("ttlMs", "null")
        .raw("pollIntervalMs", POLL_EVERY_MS)
}

fn status_of(job: &Job) -> &'static str {
    match job.state {
        State::Completed | State::Failed | State::Expired => "completed",
        State::Cancelled | State::Withdrawn => "cancelled",
        _ => "working",
    }
}

/// When its state last changed.
fn updated_at(job: &Job) -> Timestamp {
    let assigned = job.assignment.map(|turn| turn.received_at.unwrap_or(turn.since));
    job.ended_at.or(assigned).unwrap_or(job.request.opened_at).max(job.request.opened_at)
}

/// Answers `tasks/get`, `tasks/update` and `tasks/cancel`. `result_of` is what the tool would have
/// answered for a job that ended.
pub async fn answer(
    context: &HubContext,
    caller: McpCaller,
    request: &ClientRequest,
    result_of: impl FnOnce(&Job) -> ResultObject,
) -> Result<ResultObject, RpcError> {
    if !request.client.tasks {
        return Err(RpcError::tasks_not_declared());
    }
    let params = ijson::read(request.params.as_bytes())
        .map_err(|bad| RpcError::invalid_params(format!("Invalid params: {bad}")))?;
    let id = as_text(params.get("taskId"))
        .ok_or_else(|| RpcError::invalid_params("Invalid params: taskId must be a string"))?;
    let not_found = || RpcError::task_not_found(id);
    let by = caller.agent_caller().ok_or_else(not_found)?;
    let job = find_task(context, by.id, id).await?.ok_or_else(not_found)?;
    match request.method {
        Method::CancelTask => {
            caller.count_write(context).map_err(unavailable)?;
            // Where it is too late, the task goes on.
            let _ = cancel_detached(context, by, job.uuid.to_string()).await;
            Ok(ResultObject::default())
        }
        // A job takes no further input.
        Method::UpdateTask => Ok(ResultObject::default()),
        _ => {
            let task = describe(ResultObject::default(), &job);
            Ok(match status_of(&job) {
                "completed" => task.raw("result", result_of(&job).write_inner()),
                _ => task,
            })
        }
    }
}

/// The hub cannot answer now.
fn unavailable(problem: Problem) -> RpcError {
    let data = ObjectWriter::new()
        .text("code", problem.kind.code)
        .flag("retryable", problem.retryable)
        .maybe_integer("retry_after_seconds", problem.retry_after_seconds.map(u64::cast_signed));
    RpcError::new(INTERNAL, problem.detail).with_data(data.finish())
}

/// What `hire` and `accept_offer` answer for a job that ended.
pub fn result_of_hire(context: &HubContext, job: &Job) -> ResultObject {
    let Requester::Agent(requester) = job.request.requester else {
        return ResultObject::default();
    };
    match ended_error(job, false) {
        Some(error) => error.into_result(),
        None => JobView::default().write(context, job, requester).into_result(),
    }
}

/// A job that the caller asked for.
async fn find_task(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Option<Arc<Job>>, RpcError> {
    if id.parse::<uuid::fmt::Hyphenated>().is_err() {
        return Ok(None);
    }
    match find_party_job(context, by, id).await {
        Ok(job) => {
            Ok(Some(job).filter(|job| job.is_requested_by(by) && job.uuid.to_string() == id))
        }
        Err(problem) if problem.kind.status == 404 => Ok(None),
        Err(problem) => Err(unavailable(problem)),
    }
}
