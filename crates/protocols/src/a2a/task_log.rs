//! The log of a job as the events of its task.
//!
//! The first event is the task as it was opened. Every entry of the job's log is one more event, so
//! the position of an event is the number of its entry plus one, and stays the same forever.

use rialto_core::id::NoticeId;
use rialto_core::job::log::{LogContent, Step};
use rialto_core::job::progress::ProgressUpdate;
use rialto_core::job::{Job, Question};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::run::LogEntry;
use rialto_engine::{Engine, Failure};

use super::ID;
use super::original::{ArtifactExtras, OriginalStatus};
use super::translate::{self, TaskMeta};
use super::wire::content;
use super::wire::message::{Message, Part};
use super::wire::task::{
    Artifact, ArtifactUpdate, StatusUpdate, StreamEvent, TaskState, TaskStatus,
};

/// Entries that are read at once.
const PAGE: usize = 256;

/// Entries of a job's log in order.
#[derive(Clone, Debug, Default)]
pub struct TaskLog {
    pub entries: Vec<LogEntry>,
}

/// What a task shows of its log.
#[derive(Debug, Default)]
pub struct ReplayedLog {
    /// The message of the current status.
    pub status_message: Option<Message>,
    /// Messages of both sides after the first, oldest first.
    pub history: Vec<Message>,
    pub artifacts: Vec<Artifact>,
}

/// One event, and its place.
#[derive(Clone, Debug)]
pub struct TaskEvent {
    pub position: u32,
    pub event: StreamEvent,
}

impl TaskLog {
    /// The entries of a job after one of them.
    pub async fn load(engine: &Engine, job: &Job, after: u32) -> Result<Self, Failure> {
        let mut entries = Vec::new();
        let mut from = job.progress.newest;
        while let Some(notice) = from {
            let page = engine.log_of(Some(notice), PAGE).await?;
            from = page.next.map(NoticeId);
            let reached = page.rows.iter().any(|entry| entry.number <= after);
            entries.extend(page.rows.into_iter().filter(|entry| entry.number > after));
            if reached {
                break;
            }
        }
        entries.reverse();
        Ok(Self { entries })
    }

    /// The whole log, or an empty one if the job's row says all that it has.
    pub async fn load_for_task(engine: &Engine, job: &Job) -> Result<Self, Failure> {
        let is_plain = job.progress.worker_reports() == 0 && job.questions.is_empty();
        if is_plain { Ok(Self::default()) } else { Self::load(engine, job, 0).await }
    }

    /// What the task shows after all entries.
    pub fn replay(&self, world: &World, job: &Job, meta: &TaskMeta) -> ReplayedLog {
        let mut told = ReplayedLog::default();
        let mut sent = job.messages.iter().peekable();
        let mut parts = PartNumbers::default();
        for entry in &self.entries {
            while let Some(message) = sent.next_if(|message| message.after < entry.number) {
                told.add_requester_message(&message.body);
            }
            for event in events(world, job, meta, entry, parts.next(entry)) {
                told.add(event.event);
            }
        }
        for message in sent {
            told.add_requester_message(&message.body);
        }
        if self.entries.is_empty() && job.state.is_final() {
            told.artifacts = translate::result_artifacts(job, meta);
            let position = job.progress.reports + 1;
            told.status_message = translate::end_message(job, meta, position);
        }
        told
    }
}

impl ReplayedLog {
    fn add(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Status(update) => {
                self.history.extend(self.status_message.take());
                self.status_message = update.status.message;
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

    fn add_requester_message(&mut self, body: &str) {
        self.history.extend(self.status_message.take());
        self.history.extend(translate::read_message(body));
    }
}

/// Counts the parts of a result in the order of the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartNumbers(u32);

impl PartNumbers {
    /// The number of the part that an entry begins or continues.
    pub fn next(&mut self, entry: &LogEntry) -> u32 {
        if let Some(ProgressUpdate { part: Some(part), .. }) = entry.content.update() {
            self.0 += u32::from(!part.append);
        }
        self.0
    }
}

/// The events of an entry: one, or none for a result that is a message.
pub fn events(
    world: &World,
    job: &Job,
    meta: &TaskMeta,
    entry: &LogEntry,
    part: u32,
) -> Vec<TaskEvent> {
    let position = entry.number + 1;
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
            let artifacts = translate::result_artifacts(job, meta);
            let events = artifacts.into_iter().map(|artifact| TaskEvent {
                position,
                event: artifact_event(job, meta, artifact, false, true),
            });
            return events.collect();
        }
        LogContent::Step(Step::Ended) => {
            let message = translate::end_message(job, meta, position);
            match status(translate::state_of(job), message) {
                StreamEvent::Status(mut update) => {
                    update.metadata = Some(translate::task_metadata(world, job));
                    StreamEvent::Status(update)
                }
                other => other,
            }
        }
        LogContent::Report(ProgressUpdate { part: Some(piece), .. }) => {
            let mut artifact = content::artifact_of_part(&piece.content, part);
            artifact.parts = content::adapt_parts(artifact.parts, &meta.modes);
            artifact_event(job, meta, artifact, piece.append, false)
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
pub fn opening_event(world: &World, job: &Job, meta: &TaskMeta) -> TaskEvent {
    debug_assert_eq!(job.request.origin, ID);
    let opened = Job {
        state: rialto_core::job::State::Open,
        result: None,
        ended_at: None,
        messages: Vec::new(),
        questions: Vec::new(),
        progress: rialto_core::job::Progress::default(),
        ..job.clone()
    };
    let (log, view) = (TaskLog::default(), translate::TaskView::FULL);
    let task = translate::task(world, &opened, meta, &log, view);
    TaskEvent { position: 1, event: StreamEvent::Task(Box::new(task)) }
}

/// Metadata with the position of an event, for receivers that get events one by one.
pub fn with_position(event: StreamEvent, position: u32) -> StreamEvent {
    let add = |metadata: Option<String>| {
        let resume =
            crate::kit::object::ObjectWriter::new().integer("position", position.into()).finish();
        let json =
            metadata.as_deref().and_then(|text| crate::kit::ijson::read(text.as_bytes()).ok());
        let object = match &json {
            Some(json) => crate::kit::object::ObjectWriter::copy_without(json, &[]),
            None => crate::kit::object::ObjectWriter::new(),
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
        other => other,
    }
}
