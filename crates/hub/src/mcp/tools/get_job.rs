//! `get_job`, `list_jobs` and `cancel_job`: the jobs of the caller.

use std::sync::Arc;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, State};
use rialto_engine::run::JobRole;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::object::ObjectWriter;

use super::hire::wait_of;
use super::job_view::{JobView, write_summary};
use super::part::Part;
use super::stranger_text::is_plain_name;
use super::waiting::{JobProgress, follow};
use super::{Arguments, ToolCall, ToolError, ToolOutput, ToolResult, detached};
use crate::mcp::wire::result::json_array;
use crate::v1::auth::AgentCaller;
use crate::v1::jobs::list::{JobStateFilter, load_page};
use crate::v1::jobs::{cancel, find_party_job, offers};

/// Items of a list, unless the caller says otherwise.
pub const LIMIT: u64 = 10;

pub async fn call(mut call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent()?;
    let id = arguments.text("job_id").unwrap_or_default();
    let wait = wait_of(&arguments, 0);
    let context = call.context.clone();
    let mut job = find_visible_job(&context, by, id).await?;
    if !wait.is_zero() && is_party(&job, by) && !job.state.is_final() {
        let progress = JobProgress::of(&mut call.progress, &job);
        job = follow(&context, by, job, wait, progress).await?;
        // While it waited, the job may have been assigned to another worker.
        if !is_party(&job, by) {
            return Err(ToolError::not_found());
        }
    }
    let from = arguments.integer("from");
    let part = arguments.text("part").map(Part::read).or(from.map(|_| Part::Output));
    let from = usize::try_from(from.unwrap_or(0)).unwrap_or(usize::MAX);
    let view = JobView { part: part.map(|part| (part, from)), ..JobView::default() };
    Ok(view.write(&context, &job, by))
}

/// A job of the caller, or one that it may make an offer for.
pub async fn find_visible_job(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Arc<Job>, ToolError> {
    match offers::find_open_invitation(context, by, id).await? {
        Some(job) => Ok(job),
        None => find_own_job(context, by, id).await,
    }
}

/// A job of the caller.
pub async fn find_own_job(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Arc<Job>, ToolError> {
    let job = find_party_job(context, by, id).await?;
    match job.state {
        State::Withdrawn => Err(ToolError::not_found()),
        _ => Ok(job),
    }
}

fn is_party(job: &Job, agent: AgentId) -> bool {
    job.is_requested_by(agent) || job.worker() == Some(agent)
}

/// `list_jobs`.
pub async fn list(call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent()?;
    let side = match arguments.text("side") {
        Some("worked") => JobRole::Worker,
        _ => JobRole::Requester,
    };
    let stage = match arguments.text("state") {
        Some("ended") => JobStateFilter::Ended,
        Some("all") => JobStateFilter::All,
        _ => JobStateFilter::Live,
    };
    let limit = arguments.integer("limit").unwrap_or(LIMIT) as usize;
    let engine = &call.context.engine;
    let page = load_page(engine, (by, side), stage, arguments.text("cursor"), limit).await;
    let page = page.map_err(|problem| ToolError::from(problem).with_field("/cursor"))?;
    let shown = || page.items.iter().filter(|job| job.state != State::Withdrawn);
    let jobs: Vec<String> =
        engine.with_world(|world| shown().map(|job| write_summary(world, job)).collect());
    let is_plain = shown().all(|job| is_plain_name(&job.request.skill));
    let pointers: &[&str] = if is_plain { &[] } else { &["/jobs/*/skill"] };
    let list = ObjectWriter::new()
        .raw("jobs", &json_array(jobs))
        .maybe_text("next_cursor", page.next_cursor.map(|cursor| cursor.encode()).as_deref());
    Ok(ToolOutput::new(list.finish()).untrusted(pointers))
}

/// `cancel_job`. A job that is called off already is shown again.
pub async fn cancel(call: ToolCall, arguments: Arguments) -> ToolResult {
    let by = call.agent_caller()?;
    let id = arguments.text("job_id").unwrap_or_default();
    let context = call.context.clone();
    let job = find_own_job(&context, by.id, id).await?;
    let view = JobView::default();
    if job.state == State::Cancelled && job.is_requested_by(by.id) {
        return Ok(JobView { repeated: true, ..view }.write(&context, &job, by.id));
    }
    let cancelled = cancel_detached(&context, by, job.uuid.to_string()).await?;
    Ok(view.write(&context, &cancelled, by.id))
}

/// Cancels a job even if the caller hangs up meanwhile.
pub async fn cancel_detached(
    context: &HubContext,
    by: AgentCaller,
    id: String,
) -> Result<Arc<Job>, ToolError> {
    let context = context.clone();
    detached(async move { Ok(cancel::cancel(&context, &by, &id, None).await?) }).await
}
