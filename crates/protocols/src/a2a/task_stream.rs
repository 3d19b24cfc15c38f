//! A stream of the events of one task.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::job::log::{LogContent, Step};
use rialto_core::refusal::Refusal;
use rialto_engine::Failure;
use rialto_engine::keys::Key;
use rialto_engine::run::LogEntry;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::A2aContext;
use super::errors;
use super::operations::Binding;
use super::task_log::{self, Artifacts, LogReader, TaskEvent, TaskLog};
use super::translate::{self, Moment, TaskMeta, TaskView};
use super::wire::error::A2aError;
use super::wire::rpc;
use super::wire::task::{StreamEvent, TaskState};
use crate::adapter::shutdown::Shutdown;
use crate::kit::sse;

/// How often a comment is sent, so that the connection stays open.
const PING: Duration = Duration::from_secs(15);
/// The wait before a reader reconnects, in milliseconds.
pub const RETRY: &str = "retry: 2000\n";
/// Bytes after which what was read is handed to the connection, before more is read.
const CHUNK_BYTES: usize = 256 << 10;

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// With the task as it was opened, followed by everything since.
    Opening,
    /// With the task as it was at a moment, followed by everything since.
    Snapshot(Moment),
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
    pub history_length: Option<u32>,
}

/// An open stream. It reads one page of the log at a time, and only when its connection takes bytes,
/// so a slow reader costs one page (R66).
pub struct TaskStream {
    context: A2aContext,
    reader: StreamReader,
    job: Arc<Job>,
    meta: TaskMeta,
    start: Option<StreamStart>,
    /// The number of the newest entry that was sent.
    sent: u32,
    /// Events up to this position are not sent: the reader has them.
    skipped: u32,
    log: Option<LogReader>,
    /// Entries that were read and not sent.
    page: VecDeque<LogEntry>,
    artifacts: Artifacts,
    notify: Arc<Notify>,
    shutdown: Shutdown,
    ping_at: Instant,
    is_first: bool,
    is_over: bool,
    /// What failed after everything that was read.
    failure: Option<Failure>,
}

impl TaskStream {
    pub fn new(
        context: A2aContext,
        reader: StreamReader,
        job: Arc<Job>,
        meta: TaskMeta,
        start: StreamStart,
        shutdown: Shutdown,
    ) -> Self {
        let notify = context.engine.subscribe_agent(reader.agent);
        Self {
            context,
            reader,
            job,
            meta,
            start: Some(start),
            sent: 0,
            skipped: 0,
            log: None,
            page: VecDeque::new(),
            artifacts: Artifacts::default(),
            notify,
            shutdown,
            ping_at: Instant::now() + PING,
            is_first: true,
            is_over: false,
            failure: None,
        }
    }

    /// The next bytes; `None` ends the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over || self.shutdown.is_requested() || !self.is_authorized() {
                return None;
            }
            let notify = self.notify.clone();
            let notified = notify.notified();
            tokio::pin!(notified);
            // Register for the wake-up first and look afterwards, so that none is missed.
            notified.as_mut().enable();
            let out = self.pending().await;
            if !out.is_empty() {
                return Some(out.into());
            }
            if let Some(failure) = self.failure.take() {
                self.is_over = true;
                return Some(self.encode_error(&errors::from_engine(&failure)));
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

    /// What has not been sent yet, or the beginning of it.
    async fn pending(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.failure.is_none() {
            self.failure = self.read_into(&mut out).await.err();
        }
        out
    }

    async fn read_into(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        if let Some(start) = self.start.take() {
            self.begin(start, out).await?;
        }
        while !self.is_over && out.len() < CHUNK_BYTES {
            match self.next_entry().await? {
                Some(entry) => self.send_entry(&entry, out),
                None => break,
            }
        }
        Ok(())
    }

    /// Sends the task as it is at the start of the stream.
    async fn begin(&mut self, start: StreamStart, out: &mut Vec<u8>) -> Result<(), Failure> {
        let engine = self.context.engine.clone();
        let history_length = self.reader.history_length;
        let (first, sent) = match start {
            StreamStart::Opening | StreamStart::After(0) => {
                let first = engine.with_world(|world| {
                    task_log::opening_event(world, &self.job, &self.meta, history_length)
                });
                (Some(first), 0)
            }
            StreamStart::After(position) => {
                self.skipped = position;
                (None, task_log::entry_before(&self.job, &self.meta, position))
            }
            StreamStart::Snapshot(moment) => {
                let log = TaskLog::load(&engine, &self.job, 0).await?;
                let view = TaskView { history_length, moment, ..TaskView::FULL };
                let task = engine
                    .with_world(|world| translate::task(world, &self.job, &self.meta, &log, view));
                let sent = match moment {
                    Moment::Now => self.job.progress.reports,
                    Moment::After { entry, .. } => entry,
                };
                let event = StreamEvent::Task(Box::new(task));
                (Some(TaskEvent { position: sent + 1, event }), sent)
            }
        };
        if let Some(first) = first {
            self.encode(out, &first, false);
        }
        if sent > 0 {
            self.remember_artifacts(sent).await?;
        }
        self.sent = sent;
        Ok(())
    }

    /// Goes through the entries that the reader has, for what they say of later ones.
    async fn remember_artifacts(&mut self, last: u32) -> Result<(), Failure> {
        let engine = self.context.engine.clone();
        let mut log = LogReader::find(&engine, &self.job, 0).await?;
        while let Some(page) = log.next(&engine).await? {
            for entry in page.iter().take_while(|entry| entry.number <= last) {
                let part = self.artifacts.number_of(entry);
                for mut event in self.events_of(entry, part) {
                    self.artifacts.admit(&mut event.event);
                }
            }
            if page.last().is_some_and(|entry| entry.number >= last) {
                break;
            }
        }
        Ok(())
    }

    fn events_of(&self, entry: &LogEntry, part: u32) -> Vec<TaskEvent> {
        task_log::events(&self.job, &self.meta, entry, part)
    }

    /// The entry after the last one that was sent, if it is there.
    async fn next_entry(&mut self) -> Result<Option<LogEntry>, Failure> {
        let engine = self.context.engine.clone();
        loop {
            if let Some(entry) = self.page.pop_front() {
                return Ok(Some(entry));
            }
            if let Some(log) = &mut self.log {
                match log.next(&engine).await? {
                    Some(page) => self.page = page.into(),
                    None => self.log = None,
                }
                continue;
            }
            // The row of a job that has ended does not change any more, but for its webhooks.
            if !self.job.state.is_final() {
                match engine.load_job(self.job.id).await? {
                    Some(job) => self.job = job,
                    None => return Err(Refusal::NotFound.into()),
                }
            }
            if self.job.progress.reports <= self.sent {
                // A stream that resumes at the end has nothing to say.
                self.is_over = self.job.state.is_final();
                return Ok(None);
            }
            self.log = Some(LogReader::find(&engine, &self.job, self.sent).await?);
        }
    }

    fn send_entry(&mut self, entry: &LogEntry, out: &mut Vec<u8>) {
        let part = self.artifacts.number_of(entry);
        let ends = match &entry.content {
            LogContent::Step(Step::Ended) => true,
            LogContent::Step(Step::InputRequired { question }) => {
                let state = translate::state_of_question(&self.job, *question);
                self.reader.ends_at_question && state == TaskState::InputRequired
            }
            _ => false,
        };
        for mut event in self.events_of(entry, part) {
            self.artifacts.admit(&mut event.event);
            if event.position > self.skipped {
                self.encode(out, &event, ends);
            }
        }
        self.sent = entry.number;
        self.is_over = ends;
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

    /// The stream as a response. What fails before the first event is a plain error (R62).
    pub async fn into_response(mut self) -> Response {
        let first = self.pending().await;
        if let (true, Some(failure)) = (first.is_empty(), &self.failure) {
            return self.reader.binding.error_response(&errors::from_engine(failure));
        }
        let first = Some(Bytes::from(first)).filter(|first| !first.is_empty());
        let rest = stream::unfold(self, async |mut feed| Some((feed.next().await?, feed)));
        let bytes = stream::iter(first).chain(rest).map(Ok::<_, std::convert::Infallible>);
        let mut response = Response::new(Body::from_stream(bytes));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

#[cfg(test)]
mod tests;
