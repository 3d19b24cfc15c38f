//! The log of a job as the events of its task.
//!
//! The first event is the task as it was opened. Every entry of the job's log is one more event, but
//! that a result is an event for each of its artifacts. So the position of an event follows from the
//! number of its entry, and stays the same forever.

use std::collections::HashSet;

use rialto_core::id::NoticeId;
use rialto_core::job::log::{LogContent, Step};
use rialto_core::job::progress::ProgressUpdate;
use rialto_core::job::{Job, Question, State};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::run::LogEntry;
use rialto_engine::{Engine, Failure};

use super::ID;
use super::original::{self, ArtifactExtras, OriginalStatus};
use super::translate::{self, Moment, TaskMeta};
use super::wire::content;
use super::wire::message::{Message, Part};
use super::wire::task::{
    Artifact, ArtifactUpdate, StatusUpdate, StreamEvent, TaskState, TaskStatus,
};
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;

/// Entries that are read at once.
const PAGE: usize = 64;

/// Entries of a job's log in order.
#[derive(Clone, Debug, Default)]
pub struct TaskLog {
    pub entries: Vec<LogEntry>,
}

/// What a task shows of its log.
#[derive(Debug, Default)]
pub struct ReplayedLog {
    /// The newest state in the log, and when it began.
    pub state: Option<(TaskState, Timestamp)>,
    /// The message of the newest status.
    pub status_message: Option<Message>,
    /// Messages of both sides after the first, oldest first.
    pub history: Vec<Message>,
    pub artifacts: Vec<Artifact>,
    /// Where the status message belongs in the history once there is another status.
    status_at: usize,
}

/// One event, and its place.
#[derive(Clone, Debug)]
pub struct TaskEvent {
    pub position: u32,
    pub event: StreamEvent,
}

/// Reads a log forwards, page by page, although each entry names only the one before it.
#[derive(Debug)]
pub struct LogReader {
    /// Where the pages start that were not read yet, the oldest last.
    starts: Vec<NoticeId>,
    /// Only entries after this one are wanted.
    after: u32,
}

impl LogReader {
    /// Finds the pages with the entries of a job after one of them.
    pub async fn find(engine: &Engine, job: &Job, after: u32) -> Result<Self, Failure> {
        let mut starts = Vec::new();
        let mut from = job.progress.newest.filter(|_| after < job.progress.reports);
        while let Some(start) = from {
            let page = engine.log_of(Some(start), PAGE).await?;
            starts.push(start);
            let is_last = page.rows.iter().any(|entry| entry.number <= after.saturating_add(1));
            from = page.next.map(NoticeId).filter(|_| !is_last);
        }
        Ok(Self { starts, after })
    }

    /// The next entries in order; `None` at the end.
    pub async fn next(&mut self, engine: &Engine) -> Result<Option<Vec<LogEntry>>, Failure> {
        let Some(start) = self.starts.pop() else { return Ok(None) };
        let mut entries = engine.log_of(Some(start), PAGE).await?.rows;
        entries.retain(|entry| entry.number > self.after);
        entries.reverse();
        Ok(Some(entries))
    }
}

/// The artifacts that a worker with a server of this protocol reported in one assignment. `join`
/// adds a piece to the parts before it.
pub fn worker_artifacts(
    entries: &[LogEntry],
    epoch: u32,
    join: impl Fn(&mut Vec<Part>, Vec<Part>),
) -> Vec<Artifact> {
    let mut artifacts: Vec<Artifact> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.epoch == epoch) {
        let part = entry.content.update().and_then(|update| update.part.as_ref());
        let Some(part) = part else { continue };
        let Some(artifact) = original::read_artifact(&part.content) else { continue };
        let known = artifacts.iter_mut().find(|known| known.artifact_id == artifact.artifact_id);
        match known {
            Some(known) if part.append => join(&mut known.parts, artifact.parts),
            Some(known) => *known = artifact,
            None => artifacts.push(artifact),
        }
    }
    artifacts
}

impl TaskLog {
    /// The entries of a job after one of them.
    pub async fn load(engine: &Engine, job: &Job, after: u32) -> Result<Self, Failure> {
        let mut reader = LogReader::find(engine, job, after).await?;
        let mut entries = Vec::new();
        while let Some(page) = reader.next(engine).await? {
            entries.extend(page);
        }
        Ok(Self { entries })
    }

    /// The whole log, or an empty one if the job's row says all that it has.
    pub async fn load_for_task(engine: &Engine, job: &Job) -> Result<Self, Failure> {
        let is_plain = job.progress.worker_reports() == 0 && job.questions.is_empty();
        if is_plain { Ok(Self::default()) } else { Self::load(engine, job, 0).await }
    }

    /// What the task shows at a moment.
    pub fn replay(&self, job: &Job, meta: &TaskMeta, moment: Moment) -> ReplayedLog {
        let mut told = ReplayedLog::default();
        let (last, messages) = match moment {
            Moment::Now => (u32::MAX, job.messages.len()),
            Moment::After { entry, messages } => (entry, messages),
        };
        let mut sent = job.messages.iter().take(messages).peekable();
        let mut artifacts = Artifacts::default();
        for entry in self.entries.iter().take_while(|entry| entry.number <= last) {
            while let Some(message) = sent.next_if(|message| message.after < entry.number) {
                told.history.extend(translate::read_message(&message.body));
            }
            for mut event in events(job, meta, entry, artifacts.number_of(entry)) {
                artifacts.admit(&mut event.event);
                told.add(event.event);
            }
        }
        told.history.extend(sent.filter_map(|message| translate::read_message(&message.body)));
        if self.entries.is_empty() && job.state.is_final() && moment == Moment::Now {
            told.artifacts = translate::result_artifacts(job, meta);
            told.status_message = translate::end_message(job, meta, end_position(job, meta));
        }
        told
    }
}

impl ReplayedLog {
    fn add(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Status(update) => {
                let TaskStatus { state, message, timestamp } = update.status;
                if let Some(superseded) = self.status_message.take() {
                    self.history.insert(self.status_at, superseded);
                }
                self.state = timestamp.map(|at| (state, at));
                (self.status_message, self.status_at) = (message, self.history.len());
            }
            StreamEvent::Artifact(update) => {
                let ArtifactUpdate { artifact, append, .. } = *update;
                let known = self.artifacts.iter_mut();
                match known.into_iter().find(|known| known.artifact_id == artifact.artifact_id) {
                    Some(known) if append => known.parts.extend(artifact.parts),
                    Some(known) => *known = artifact,
                    None => self.artifacts.push(artifact),
                }
            }
            StreamEvent::Task(_) | StreamEvent::Message(_) => {}
        }
    }
}

/// The artifacts that a log has so far.
#[derive(Clone, Debug, Default)]
pub struct Artifacts {
    parts: u32,
    seen: HashSet<String>,
}

impl Artifacts {
    /// The number of the part that an entry begins or continues.
    pub fn number_of(&mut self, entry: &LogEntry) -> u32 {
        if let Some(ProgressUpdate { part: Some(part), .. }) = entry.content.update() {
            self.parts += u32::from(!part.append);
        }
        self.parts
    }

    /// The first piece of an artifact continues nothing, whatever its worker says (R68).
    pub fn admit(&mut self, event: &mut StreamEvent) {
        if let StreamEvent::Artifact(update) = event {
            let id = &update.artifact.artifact_id;
            update.append &= self.seen.contains(id);
            if !update.append {
                self.seen.insert(id.clone());
            }
        }
    }
}

/// How many artifacts the result of a job has, if its log says that there is one.
fn result_count(job: &Job, meta: &TaskMeta) -> Option<u32> {
    let has_output = job.result.as_ref().is_some_and(|result| result.output.is_some());
    // The artifacts of a worker of this protocol are entries of their own.
    let is_own = OriginalStatus::of_end(job, meta).is_some();
    if job.state != State::Completed || !has_output || is_own {
        return None;
    }
    u32::try_from(translate::result_artifacts(job, meta).len()).ok()
}

/// The position of the end of a task.
pub fn end_position(job: &Job, meta: &TaskMeta) -> u32 {
    let entries = job.progress.reports + 1;
    // The entry before the end is the result, which is any number of events.
    result_count(job, meta).map_or(entries, |count| entries - 1 + count)
}

/// The number of events that a task has.
pub fn event_count(job: &Job, meta: &TaskMeta) -> u32 {
    if job.state.is_final() { end_position(job, meta) } else { job.progress.reports + 1 }
}

/// The last entry of which a reader has all events that has them up to a position.
pub fn entry_before(job: &Job, meta: &TaskMeta, position: u32) -> u32 {
    let entry = position.saturating_sub(1).min(job.progress.reports);
    match result_count(job, meta) {
        // The result is the last entry but one.
        Some(_) if position < event_count(job, meta) => {
            entry.min(job.progress.reports.saturating_sub(2))
        }
        Some(_) => job.progress.reports,
        None => entry,
    }
}

/// The events of an entry: one, but for a result.
pub fn events(job: &Job, meta: &TaskMeta, entry: &LogEntry, part: u32) -> Vec<TaskEvent> {
    let position = match entry.content {
        LogContent::Step(Step::Ended) => end_position(job, meta),
        _ => entry.number + 1,
    };
    let of_parts = |parts| translate::worker_message(job, &meta.context_id, position, parts);
    let status = |state, message| status_event(job, meta, state, message, entry.at);
    let event = match &entry.content {
        LogContent::Step(Step::Waiting) => status(TaskState::Submitted, None),
        LogContent::Step(Step::Working) => status(TaskState::Working, None),
        LogContent::Step(Step::InputRequired { question }) => {
            let at = usize::try_from(*question).unwrap_or_default().wrapping_sub(1);
            let asked = job.questions.get(at);
            let original = asked.and_then(|asked| asked.original.as_ref());
            let state = translate::state_of_question(job, *question);
            match original.and_then(|original| OriginalStatus::read(original, job, meta)) {
                Some(original) => original_status(status(state, None), original),
                None => {
                    let text = |asked: &Question| of_parts(vec![Part::text(&asked.text)]);
                    status(state, asked.map(text))
                }
            }
        }
        LogContent::Step(Step::Result) => {
            let artifacts = translate::result_artifacts(job, meta).into_iter();
            let events = (position..).zip(artifacts).map(|(position, artifact)| TaskEvent {
                position,
                event: artifact_event(job, meta, artifact, false, true),
            });
            return events.collect();
        }
        LogContent::Step(Step::Ended) => {
            let message = translate::end_message(job, meta, position);
            match status(translate::state_of(job), message) {
                StreamEvent::Status(mut update) => {
                    update.metadata = translate::end_metadata(job, meta);
                    StreamEvent::Status(update)
                }
                other => other,
            }
        }
        LogContent::Report(ProgressUpdate { part: Some(piece), .. }) => {
            let mut artifact = content::artifact_of_part(&piece.content, part);
            artifact.parts = content::adapt_parts(artifact.parts, &meta.modes);
            let is_last = content::is_last_chunk(&piece.content);
            artifact_event(job, meta, artifact, piece.append, is_last)
        }
        LogContent::Original { update: ProgressUpdate { part: Some(piece), .. }, original } => {
            let artifact = content::artifact_of_part(&piece.content, part);
            let ArtifactExtras { last_chunk, metadata } = ArtifactExtras::read(original);
            match artifact_event(job, meta, artifact, piece.append, last_chunk) {
                StreamEvent::Artifact(mut update) => {
                    update.metadata = metadata;
                    StreamEvent::Artifact(update)
                }
                other => other,
            }
        }
        LogContent::Original { update, original } => {
            let state = TaskState::Working;
            match OriginalStatus::read(original, job, meta) {
                Some(original) => original_status(status(state, None), original),
                None => {
                    let text = update.text.clone();
                    status(state, text.map(|text| of_parts(vec![Part::text(text)])))
                }
            }
        }
        LogContent::Report(ProgressUpdate { text, .. }) => {
            let text = text.clone();
            status(TaskState::Working, text.map(|text| of_parts(vec![Part::text(text)])))
        }
    };
    vec![TaskEvent { position, event }]
}

/// A status in the words of its worker.
fn original_status(event: StreamEvent, original: OriginalStatus) -> StreamEvent {
    match event {
        StreamEvent::Status(mut update) => {
            update.metadata = original.metadata().map(str::to_owned);
            update.status.message = original.message();
            StreamEvent::Status(update)
        }
        other => other,
    }
}

fn status_event(
    job: &Job,
    meta: &TaskMeta,
    state: TaskState,
    message: Option<Message>,
    at: Timestamp,
) -> StreamEvent {
    StreamEvent::Status(Box::new(StatusUpdate {
        task_id: job.uuid.to_string(),
        context_id: meta.context_id.clone(),
        status: TaskStatus { state, message, timestamp: Some(at) },
        metadata: None,
    }))
}

fn artifact_event(
    job: &Job,
    meta: &TaskMeta,
    artifact: Artifact,
    append: bool,
    last_chunk: bool,
) -> StreamEvent {
    StreamEvent::Artifact(Box::new(ArtifactUpdate {
        task_id: job.uuid.to_string(),
        context_id: meta.context_id.clone(),
        artifact,
        append,
        last_chunk,
        metadata: None,
    }))
}

/// The first event: the task as it was opened.
pub fn opening_event(
    world: &World,
    job: &Job,
    meta: &TaskMeta,
    history_length: Option<u32>,
) -> TaskEvent {
    debug_assert_eq!(job.request.origin, ID);
    let view = translate::TaskView {
        history_length,
        moment: Moment::After { entry: 0, messages: 0 },
        ..translate::TaskView::FULL
    };
    let task = translate::task(world, job, meta, &TaskLog::default(), view);
    TaskEvent { position: 1, event: StreamEvent::Task(Box::new(task)) }
}

/// An event with its position in its metadata, for receivers that get events one by one.
pub fn with_position(event: StreamEvent, position: u32) -> StreamEvent {
    let add = |metadata: Option<String>| {
        let resume = ObjectWriter::new().integer("position", position.into()).finish();
        let json = metadata.as_deref().and_then(|text| ijson::read(text.as_bytes()).ok());
        let object = match &json {
            Some(json) => ObjectWriter::copy_without(json, &[]),
            None => ObjectWriter::new(),
        };
        Some(object.raw(super::extensions::RESUME, &resume).finish())
    };
    match event {
        StreamEvent::Status(mut update) => {
            update.metadata = add(update.metadata.take());
            StreamEvent::Status(update)
        }
        StreamEvent::Artifact(mut update) => {
            update.metadata = add(update.metadata.take());
            StreamEvent::Artifact(update)
        }
        StreamEvent::Task(mut task) => {
            task.metadata = add(task.metadata.take());
            StreamEvent::Task(task)
        }
        message @ StreamEvent::Message(_) => message,
    }
}
