//! Operations on existing tasks.

use std::sync::Arc;

use rialto_core::answer::Answer as CoreAnswer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_core::id::JobId;
use rialto_core::job::{Job, State};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::Failure;
use rialto_engine::run::JobRole;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::{Answer, Call, TaskPage};
use crate::a2a::ID;
use crate::a2a::errors;
use crate::a2a::task_log::{self, TaskLog};
use crate::a2a::task_stream::{StreamReader, StreamStart, TaskStream};
use crate::a2a::translate::{self, Moment, TaskMeta, TaskView, state_of, status_time};
use crate::a2a::wire::Version;
use crate::a2a::wire::error::{A2aError, Reason};
use crate::a2a::wire::params::{ListParams, TaskParams};
use crate::a2a::wire::task::Task;
use crate::kit::budget::ByteBudget;
use crate::kit::last_event_id;

/// The tasks on a page if the client names no number.
const PAGE_SIZE: u32 = 50;
/// Ended tasks that are looked at for one list, the newest first, and their bytes.
const LISTED_MAX: usize = 10_000;
const LISTED_BYTES_MAX: usize = 64 << 20;
/// Jobs that are read at once.
const SLICE: usize = 256;

/// The caller's task. Another caller's task does not exist (R78).
pub async fn find(call: &Call, id: &str) -> Result<(Arc<Job>, TaskMeta), A2aError> {
    let missing = || A2aError::task_not_found(id);
    let uuid = id.parse::<Hyphenated>().map_err(|_| missing())?.into_uuid();
    let found = call.context.engine.find_job(&JobRef::Uuid(uuid)).await;
    let job = found.map_err(|failure| errors::from_engine(&failure))?.ok_or_else(missing)?;
    let meta = TaskMeta::of(&job).filter(|meta| is_visible(call, &job, meta));
    Ok((job, meta.ok_or_else(missing)?))
}

/// Whether a job is a task of the caller at the agent that is called. At the hub itself all are.
fn is_visible(call: &Call, job: &Job, meta: &TaskMeta) -> bool {
    let sent_to = meta.agent;
    job.is_requested_by(call.client.agent)
        && call.agent.is_none_or(|agent| sent_to == Some(agent.0))
}

/// The task that a job is now.
pub async fn load_task(
    call: &Call,
    job: &Job,
    meta: &TaskMeta,
    view: TaskView,
) -> Result<Task, A2aError> {
    let engine = &call.context.engine;
    let log = TaskLog::load_for_task(engine, job).await;
    let log = log.map_err(|failure| errors::from_engine(&failure))?;
    Ok(engine.with_world(|world| translate::task(world, job, meta, &log, view)))
}

/// GetTask.
pub async fn get(call: &Call, params: TaskParams) -> Result<Answer, A2aError> {
    let (job, meta) = find(call, &params.id).await?;
    let view = TaskView { history_length: params.history_length, ..TaskView::FULL };
    Ok(Answer::Task(Box::new(load_task(call, &job, &meta, view).await?)))
}

/// CancelTask.
pub async fn cancel(call: &Call, params: TaskParams) -> Result<Answer, A2aError> {
    let (job, meta) = find(call, &params.id).await?;
    let by = Canceller::Agent(call.client.agent);
    let order = Command::Cancel { job: JobRef::Id(job.id), by, reason: None };
    let ended = |job: &Job| {
        let state = state_of(job).name(Version::V03);
        let again = if job.state == State::Cancelled { " again" } else { "" };
        let text = format!("the task is {state} and cannot be canceled{again}");
        let error = A2aError::new(Reason::TaskNotCancelable, text);
        A2aError { metadata: vec![("taskId", job.uuid.to_string())], ..error }
    };
    let job = match call.context.engine.run(order).await {
        Ok(CoreAnswer::Job { job, .. }) => job,
        Ok(_) => return Err(A2aError::task_not_found(&params.id)),
        Err(Failure::Refused(Refusal::WrongState { .. })) => {
            let (job, _) = find(call, &params.id).await?;
            return Err(ended(&job));
        }
        Err(failure) => return Err(errors::from_engine(&failure)),
    };
    let view = TaskView { history_length: params.history_length, ..TaskView::FULL };
    Ok(Answer::Task(Box::new(load_task(call, &job, &meta, view).await?)))
}

/// SubscribeToTask.
pub async fn subscribe(call: &Call, params: TaskParams) -> Result<Answer, A2aError> {
    let (job, meta) = find(call, &params.id).await?;
    let header = call.headers.get(last_event_id::HEADER).map(|value| value.as_bytes());
    let wrong = || {
        let text = "must be the id of an event of this task";
        A2aError::invalid_field("Last-Event-ID", text)
    };
    let position = |text: &str| u32::try_from(last_event_id::parse_position(text)?).ok();
    let after = last_event_id::read(header, position).map_err(|_| wrong())?;
    let start = match after {
        Some(position) if position > task_log::event_count(&job, &meta) => return Err(wrong()),
        Some(position) => StreamStart::After(position),
        None if job.state.is_final() => {
            let text = "the task has ended; GetTask shows its result";
            return Err(A2aError::new(Reason::UnsupportedOperation, text));
        }
        None => StreamStart::Snapshot(Moment::Now),
    };
    let view = StreamView { start, ends_at_question: false, history_length: params.history_length };
    Ok(Answer::Stream(Box::new(stream(call, job, meta, view))))
}

/// What a stream shows.
#[derive(Clone, Copy, Debug)]
pub struct StreamView {
    pub start: StreamStart,
    /// Whether it ends when the agent waits for input (R60).
    pub ends_at_question: bool,
    pub history_length: Option<u32>,
}

/// A stream of a task's events for this caller.
pub fn stream(call: &Call, job: Arc<Job>, meta: TaskMeta, view: StreamView) -> TaskStream {
    let StreamView { start, ends_at_question, history_length } = view;
    let reader = StreamReader {
        agent: call.client.agent,
        key: call.key.clone(),
        binding: call.binding.clone(),
        ends_at_question,
        history_length,
    };
    TaskStream::new(call.context.clone(), reader, job, meta, start, call.shutdown.clone())
}

/// Where a page of a list begins: after this status time and task, in the order of the list.
type Cursor = (Timestamp, Uuid);

fn read_cursor(text: &str) -> Option<Cursor> {
    let (time, id) = text.split_once('_')?;
    let time = i64::try_from(last_event_id::parse_position(time)?).ok()?;
    Some((Timestamp(time), id.parse::<Hyphenated>().ok()?.into_uuid()))
}

/// ListTasks: the newest status first.
pub async fn list(call: &Call, params: ListParams) -> Result<Answer, A2aError> {
    let strange = || A2aError::invalid_field("pageToken", "must be a nextPageToken of this list");
    let after = match &params.page_token {
        Some(token) => Some(read_cursor(token).ok_or_else(strange)?),
        None => None,
    };
    // Tasks in these states have not ended.
    let only_live = params.status.is_some_and(|state| !state.is_final());
    let Listed { tasks: mut found, rows_read } =
        all_tasks(call, only_live).await.map_err(|failure| errors::from_engine(&failure))?;
    found.retain(|(job, meta)| {
        is_visible(call, job, meta)
            && params.context_id.as_ref().is_none_or(|id| *id == meta.context_id)
            && params.status.is_none_or(|state| state == state_of(job))
            && params.status_timestamp_after.is_none_or(|after| status_time(job) >= after)
    });
    let key = |job: &Job| (status_time(job), job.uuid);
    found.sort_by_key(|(job, _)| std::cmp::Reverse(key(job)));
    let total_size = found.len();
    let page_size = params.page_size.unwrap_or(PAGE_SIZE);
    let size = usize::try_from(page_size).unwrap_or(usize::MAX);
    let view = TaskView {
        history_length: params.history_length,
        with_artifacts: params.include_artifacts,
        ..TaskView::FULL
    };
    let mut page = TaskPage {
        tasks: Vec::new(),
        next_page_token: String::new(),
        page_size,
        total_size,
        rows_read,
    };
    let (mut budget, mut last) = (ByteBudget::default(), None);
    for (job, meta) in found.iter().filter(|(job, _)| after.is_none_or(|after| key(job) < after)) {
        let is_full = page.tasks.len() == size;
        let text = match is_full {
            true => String::new(),
            false => load_task(call, job, meta, view).await?.write(Version::V1),
        };
        // A page ends early when it is long.
        if is_full || !budget.take(text.len()) {
            let token = |(time, id): Cursor| format!("{}_{id}", time.0);
            page.next_page_token = last.map(token).unwrap_or_default();
            break;
        }
        page.tasks.push(text);
        last = Some(key(job));
    }
    Ok(Answer::Tasks(page))
}

/// The tasks of a caller.
struct Listed {
    tasks: Vec<(Arc<Job>, TaskMeta)>,
    rows_read: usize,
}

/// The caller's tasks, live and ended.
async fn all_tasks(call: &Call, only_live: bool) -> Result<Listed, Failure> {
    let engine = &call.context.engine;
    let (mut jobs, newest) = engine.with_world(|world| {
        let live: Vec<Arc<Job>> = world.jobs_requested_by(call.client.agent).cloned().collect();
        let state = world.agent_state(call.client.agent);
        (live, state.and_then(|state| state.last_requested))
    });
    let mut from = newest.filter(|_| !only_live);
    let (mut rows_read, mut bytes) = (jobs.len(), 0);
    while let Some(id) = from.filter(|_| rows_read < LISTED_MAX && bytes < LISTED_BYTES_MAX) {
        let page = engine.jobs_of(JobRole::Requester, Some(id), SLICE).await?;
        rows_read += page.rows.len().max(1);
        bytes += page.rows.iter().map(|job| job.content_bytes()).sum::<usize>();
        from = page.next.map(JobId);
        jobs.extend(page.rows);
    }
    jobs.sort_by_key(|job| job.id);
    // A job that ended meanwhile is in both; the ended one is newer.
    jobs.dedup_by(|later, kept| {
        let same = later.id == kept.id;
        if same && later.state.is_final() {
            std::mem::swap(later, kept);
        }
        same
    });
    let tasks = jobs.into_iter().filter(|job| job.request.origin == ID);
    let tasks = tasks.filter_map(|job| Some((job.clone(), TaskMeta::of(&job)?))).collect();
    Ok(Listed { tasks, rows_read })
}
