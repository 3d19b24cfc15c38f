//! Hires: opens a job for an agent, and waits for its end or makes it a task.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester};
use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_protocols::adapter::open_job::{self, JobRequest, OpenedJob, WorkerChoice};
use rialto_protocols::adapter::{HubContext, api_protocol};
use rialto_protocols::kit::canonical::job_digest;
use rialto_protocols::kit::ijson;

use super::error::ToolError;
use super::repetition::Action;
use super::waiting::{JobProgress, follow};
use super::{ToolCall, detached};
use crate::v1::auth::AgentCaller;
use crate::v1::jobs::open::preferences;
use crate::v1::problem::Problem;

/// The code of a caller that does something too often.
const RATE_LIMITED: &str = "rate_limited";

/// A job that is to be opened.
#[derive(Clone, Debug)]
pub struct Hire {
    /// Names the tool, and whatever else keeps its calls apart from others.
    pub tool: String,
    pub skill: String,
    /// JSON text of an object, with the digits of the caller.
    pub input: String,
    pub budget: Credits,
    /// `None` lets the hub choose.
    pub worker: Option<AgentId>,
    pub choice: WorkerChoice,
    pub deadline_seconds: Option<u64>,
    /// The caller's own id of this action.
    pub key: Option<String>,
}

/// Opens a job, or finds the one that the same call opened before. A caller that hangs up does not
/// stop it.
pub async fn open(
    context: &HubContext,
    by: AgentCaller,
    hire: Hire,
) -> Result<OpenedJob, ToolError> {
    let context = context.clone();
    detached(async move {
        let input = ijson::read(hire.input.as_bytes());
        let input = input.map_err(|bad| ToolError::malformed("/input", bad.to_string()))?;
        let within = hire.deadline_seconds.map(|seconds| format!(" within {seconds}"));
        let preferences = preferences(hire.choice, within);
        let content = job_digest(&hire.skill, Some(&input), hire.budget, None, &preferences);
        let worker = hire.worker.map_or(0, |worker| worker.0);
        let tool = format!("{} {worker}", hire.tool);
        let action = Action { by: by.id, tool, content, key: hire.key };
        let id = action.job_id(&context).await?;
        let lifetime = |seconds: u64| Millis::seconds(seconds.cast_signed());
        let job = JobRequest {
            id: Some(id.id),
            requester: Requester::Agent(by.id),
            worker: hire.worker,
            choice: hire.choice,
            content,
            skill: hire.skill,
            input: hire.input.clone(),
            budget: hire.budget,
            callback: None,
            deadline: hire
                .deadline_seconds
                .map(|seconds| context.engine.now().plus(lifetime(seconds))),
            requester_waits: false,
            meta: "{}".to_owned(),
        };
        let opened = open_job::open_job(&context, api_protocol().id(), job, by.once).await;
        opened.map_err(|failure| Problem::from(failure).into())
    })
    .await
}

/// How a wait ended.
#[derive(Clone, Debug)]
pub enum Waited {
    /// The job has ended, or there is news of it, or the time is over.
    Job(Arc<Job>),
    /// The client understands tasks, and the job takes longer than it is waited for.
    Task(Arc<Job>),
}

/// Waits for news of a job of the caller. A job that goes on is marked, so that its end comes to the
/// requester's inbox.
pub async fn wait_for(
    call: &mut ToolCall,
    opened: &OpenedJob,
    at_most: Duration,
) -> Result<Waited, ToolError> {
    let by = call.agent()?;
    let context = call.context.clone();
    let task_after = Duration::from_millis(context.settings.mcp.task_after.0.unsigned_abs());
    let as_task = call.client.tasks && at_most > task_after;
    let mut job = opened.job.clone();
    if !at_most.is_zero() {
        let progress = match opened.repeated {
            false => JobProgress::of_posted(&mut call.progress, &job),
            true => JobProgress::of(&mut call.progress, &job),
        };
        let at_most = if as_task { task_after } else { at_most };
        job = match follow(&context, by, job.clone(), at_most, progress).await {
            Ok(job) => job,
            // What was opened is answered, even if the agent waits too often to wait for its end.
            Err(error) if error.code == RATE_LIMITED => job,
            Err(error) => return Err(error),
        };
    }
    job = settle(&context, job).await?;
    let goes_on = !job.state.is_final() && job.open_question().is_none();
    Ok(if as_task && goes_on { Waited::Task(job) } else { Waited::Job(job) })
}

/// Marks a job that goes on as one whose requester waits no longer.
pub async fn settle(context: &HubContext, job: Arc<Job>) -> Result<Arc<Job>, ToolError> {
    let context = context.clone();
    detached(async move { Ok(open_job::settle(&context.engine, job).await?) }).await
}
