//! A stream of the events of one task.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_core::job::log::{LogContent, Step};
use rialto_engine::keys::Key;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::A2aContext;
use super::errors;
use super::operations::Binding;
use super::task_log::{self, PartNumbers, TaskEvent, TaskLog};
use super::translate::{self, TaskMeta, TaskView};
use super::wire::error::{A2aError, Reason};
use super::wire::rpc;
use super::wire::task::StreamEvent;
use crate::adapter::shutdown::Shutdown;
use crate::kit::sse;

/// How often a comment is sent, so that the connection stays open.
const PING: Duration = Duration::from_secs(15);
/// The wait before a reader reconnects, in milliseconds.
const RETRY: &str = "retry: 2000\n";

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// With the task as it was opened, followed by everything since.
    Opening,
    /// With the task as it is now.
    Snapshot,
    /// With the task as it was after this many entries of its log.
    SnapshotAt(u32),
    /// After an event that the reader has.
    After(u32),
}

/// Who reads, and how.
pub struct StreamReader {
    pub agent: AgentId,
    /// The key it presented; the stream ends with it.
    pub key: Option<Key>,
    pub binding: Binding,
    /// Whether the stream ends when the agent waits for input (R60).
    pub ends_at_question: bool,
}

/// An open stream.
pub struct TaskStream {
    context: A2aContext,
    reader: StreamReader,
    job: JobId,
    meta: TaskMeta,
    start: Option<StreamStart>,
    /// The number of the newest entry that was sent.
    sent: u32,
    parts: PartNumbers,
    notify: Arc<Notify>,
    shutdown: Shutdown,
    ping_at: Instant,
    is_first: bool,
    is_over: bool,
}

impl TaskStream {
    pub fn new(
        context: A2aContext,
        reader: StreamReader,
        job: &Job,
        meta: TaskMeta,
        start: StreamStart,
        shutdown: Shutdown,
    ) -> Self {
        let notify = context.engine.subscribe_agent(reader.agent);
        Self {
            context,
            reader,
            job: job.id,
            meta,
            start: Some(start),
            sent: 0,
            parts: PartNumbers::default(),
            notify,
            shutdown,
            ping_at: Instant::now() + PING,
            is_first: true,
            is_over: false,
        }
    }

    /// The next bytes; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over || self.shutdown.is_requested() || !self.is_authorized() {
                return None;
            }
            let notified = self.notify.clone();
            let notified = notified.notified();
            tokio::pin!(notified);
            // Register for the wake-up first and look afterwards, so that none is missed.
            notified.as_mut().enable();
            match self.pending().await {
                Ok(Some(bytes)) => return Some(bytes),
                Ok(None) => {}
                Err(error) => {
                    self.is_over = true;
                    return Some(self.encode_error(&error));
                }
            }
            if self.is_over {
                return None;
            }
            if Instant::now() >= self.ping_at {
                self.ping_at = Instant::now() + PING;
                self.context.engine.record_seen(self.reader.agent);
                return Some(Bytes::from_static(b": ping\n"));
            }
            tokio::select! {
                () = notified => {}
                () = self.shutdown.wait() => {}
                () = tokio::time::sleep_until(self.ping_at) => {}
            }
        }
    }

    fn is_authorized(&self) -> bool {
        let engine = &self.context.engine;
        let Some(key) = &self.reader.key else { return self.context.state.settings.is_open() };
        let now = engine.now();
        engine.with_world(|world| {
            world.key(&key.hash()).is_some_and(|stored| stored.is_valid(now))
                && world
                    .agent(self.reader.agent)
                    .is_some_and(|agent| agent.active && !world.is_agent_suspended(agent))
        })
    }

    /// What has not been sent yet.
    async fn pending(&mut self) -> Result<Option<Bytes>, A2aError> {
        let engine = &self.context.engine.clone();
        let failed = |failure| errors::from_engine(&failure);
        if self.start.is_none() {
            let known =
                engine.with_world(|world| world.job(self.job).map(|job| job.progress.reports));
            if known == Some(self.sent) {
                return Ok(None);
            }
        }
        let job = engine.load_job(self.job).await.map_err(failed)?;
        let job = job.ok_or_else(|| A2aError::new(Reason::TaskNotFound, "task not found"))?;
        let mut out = Vec::new();
        match self.start.take() {
            Some(StreamStart::Opening) => {
                let first =
                    engine.with_world(|world| task_log::opening_event(world, &job, &self.meta));
                self.encode(&mut out, &first, false);
            }
            Some(start @ (StreamStart::Snapshot | StreamStart::SnapshotAt(_))) => {
                let mut log = TaskLog::load(engine, &job, 0).await.map_err(failed)?;
                if let StreamStart::SnapshotAt(count) = start {
                    log.entries.retain(|entry| entry.number <= count);
                }
                for entry in &log.entries {
                    self.parts.next(entry);
                }
                self.sent = log.entries.last().map_or(0, |entry| entry.number);
                let task = engine.with_world(|world| {
                    translate::task(world, &job, &self.meta, &log, TaskView::FULL)
                });
                let event = StreamEvent::Task(Box::new(task));
                let first = TaskEvent { position: self.sent + 1, event };
                self.encode(&mut out, &first, false);
            }
            Some(StreamStart::After(position)) => {
                let log = TaskLog::load(engine, &job, 0).await.map_err(failed)?;
                let before = log.entries.iter().filter(|entry| entry.number < position);
                for entry in before {
                    self.parts.next(entry);
                }
                self.sent = position.saturating_sub(1);
                if position == 0 {
                    let first =
                        engine.with_world(|world| task_log::opening_event(world, &job, &self.meta));
                    self.encode(&mut out, &first, false);
                }
            }
            None => {}
        }
        let log = TaskLog::load(engine, &job, self.sent).await.map_err(failed)?;
        for entry in &log.entries {
            let part = self.parts.next(entry);
            let ends = match &entry.content {
                LogContent::Step(Step::Ended) => true,
                LogContent::Step(Step::InputRequired { question }) => {
                    let waits = translate::state_of_question(&job, *question);
                    self.reader.ends_at_question
                        && waits == super::wire::task::TaskState::InputRequired
                }
                _ => false,
            };
            let events = self
                .context
                .engine
                .with_world(|world| task_log::events(world, &job, &self.meta, entry, part));
            for event in &events {
                self.encode(&mut out, event, ends);
            }
            self.sent = entry.number;
            if ends {
                self.is_over = true;
                break;
            }
        }
        // A stream that resumes at the end of an ended task has nothing to say.
        self.is_over |= job.state.is_final() && self.sent >= job.progress.reports;
        Ok((!out.is_empty()).then(|| out.into()))
    }

    /// Writes an event as one block (R64).
    fn encode(&mut self, out: &mut Vec<u8>, event: &TaskEvent, is_last: bool) {
        let body = event.event.write(self.reader.binding.version(), is_last);
        let mut data = match &self.reader.binding {
            Binding::JsonRpc { id, .. } => rpc::write_result(id, &body),
            Binding::Http => body,
        }
        .into_bytes();
        sse::replace_newlines(&mut data);
        if std::mem::take(&mut self.is_first) {
            out.extend_from_slice(RETRY.as_bytes());
        }
        out.extend_from_slice(format!("id: {}\ndata: ", event.position).as_bytes());
        out.append(&mut data);
        out.extend_from_slice(b"\n\n");
    }

    fn encode_error(&self, error: &A2aError) -> Bytes {
        let body = match &self.reader.binding {
            Binding::JsonRpc { id, version } => error.write_rpc(id, *version),
            Binding::Http => error.write_http(),
        };
        Bytes::from(format!("event: error\ndata: {body}\n\n"))
    }

    /// The stream as a response.
    pub fn into_response(self) -> Response {
        let bytes = stream::unfold(self, async |mut feed| {
            let next = feed.next().await?;
            Some((Ok::<_, std::convert::Infallible>(next), feed))
        });
        let mut response = Response::new(Body::from_stream(bytes));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
