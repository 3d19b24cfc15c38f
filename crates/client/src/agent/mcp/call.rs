//! The handler of one tool: a job is a call.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, watch};
use tokio::time::{sleep, timeout};

use super::journal::CallJournal;
use super::server::McpServer;
use super::{OUTCOME_UNKNOWN, outcome};
use crate::agent::handler::Handler;
use crate::agent::handlers::time_limit_message;
use crate::agent::job::{Job, Outcome};
use crate::agent::record::{FinishedJob, JobRecord, JobRecords};
use crate::mcp::message::INVALID_PARAMS;
use crate::mcp::{CallEvent, Connection, McpError, Tool, ToolResult};

/// How often a tool that can be repeated is called for one job.
const CALLS_MAX: u32 = 2;
/// The shortest time between two reports to the hub.
const REPORT_PAUSE: Duration = Duration::from_millis(500);

/// How long the log of a job goes on after its answer.
const LOG_TIME: Duration = Duration::from_millis(200);
/// Maximum log size of one job, in bytes.
const LOG_BYTES_MAX: usize = 16 << 20;

/// A handler that calls a tool.
pub struct McpTool {
    server: McpServer,
    tool: Arc<Tool>,
    journal: CallJournal,
    records: JobRecords,
}

/// A call that may have an effect. If it is dropped before its end, a job whose tool cannot be repeated
/// has failed: the stopping agent must not hand it to another worker.
struct BegunCall {
    record: Option<JobRecord>,
    since: Instant,
}

impl Drop for BegunCall {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let outcome = Outcome::Failed(OUTCOME_UNKNOWN.to_owned());
            let took_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
            // The record of a cancelled job is gone.
            let _ = record.write_finished(&FinishedJob { outcome, took_ms });
        }
    }
}

impl McpTool {
    /// A handler of this tool of a server. The journal and the records are those of its agent.
    pub fn new(server: McpServer, tool: Tool, journal: CallJournal, records: JobRecords) -> Self {
        Self { server, tool: Arc::new(tool), journal, records }
    }

    /// Calls the tool until there is an outcome.
    async fn run(&self, job: &Job) -> Outcome {
        let known = self.journal.find(job);
        if let Some(outcome) = known.outcome {
            return outcome;
        }
        let is_repeatable = self.tool.hints.is_repeatable();
        let mut calls = known.calls;
        loop {
            if calls > 0 && (!is_repeatable || calls >= CALLS_MAX) {
                return Outcome::Failed(OUTCOME_UNKNOWN.to_owned());
            }
            let connection = match (self.server.connection(), calls) {
                (Some(connection), _) => connection,
                (None, 0) => return outcome::of_error(McpError::NotSent(String::new())),
                (None, _) => self.server.connected().await,
            };
            let before = calls;
            calls += 1;
            if let Err(error) = self.journal.begin(job, calls) {
                let why = format!("the agent cannot write down its calls: {}", error.kind());
                return Outcome::Declined(why);
            }
            let mut begun = self.begun_call(job, is_repeatable);
            let result = self.call(&connection, job).await;
            begun.record = None;
            let error = match result {
                Ok(result) => return outcome::of_result(&self.tool, result),
                Err(error) => error,
            };
            match error {
                McpError::Lost(_) => self.server.report_lost(&connection),
                McpError::NotSent(_) | McpError::Refused(_) | McpError::SessionOver => {
                    // A server that refuses is still there.
                    if matches!(error, McpError::NotSent(_)) {
                        self.server.report_lost(&connection);
                    }
                    // Whether an earlier call had an effect is still unknown.
                    if before > 0 {
                        return Outcome::Failed(OUTCOME_UNKNOWN.to_owned());
                    }
                    return outcome::of_error(error);
                }
                // Servers answer calls of a tool that they have no more like this, too.
                McpError::Server(error)
                    if error.code == INVALID_PARAMS && self.is_gone(&connection).await =>
                {
                    return Outcome::Declined("the tool is no longer offered".to_owned());
                }
                error => return outcome::of_error(error),
            }
        }
    }

    /// Whether the server lists the tool no more. The news of it may still be on the way.
    async fn is_gone(&self, connection: &Connection) -> bool {
        match connection.list_tools().await {
            Ok((tools, _)) => tools.iter().all(|tool| tool.name != self.tool.name),
            Err(_) => false,
        }
    }

    fn begun_call(&self, job: &Job, is_repeatable: bool) -> BegunCall {
        // Peers have no assignments that could be handed back.
        let is_kept = !is_repeatable && job.epoch > 0;
        let record = is_kept.then(|| self.records.open_record(job).ok()).flatten();
        BegunCall { record, since: Instant::now() }
    }

    /// One call. What the server reports meanwhile goes to the requester, and renews the lease.
    async fn call(&self, connection: &Connection, job: &Job) -> Result<ToolResult, McpError> {
        let (events, mut news) = watch::channel(None);
        let mut on_event = |event: CallEvent| {
            events.send_replace(Some(event));
        };
        let call = connection.call_tool(&self.tool, &job.input, &mut on_event);
        let report = async {
            let mut told = None;
            // The sender lives as long as the call.
            while news.changed().await.is_ok() {
                let event = news.borrow_and_update().clone();
                let text = match &event {
                    Some(CallEvent::Progress(_, text) | CallEvent::Working(text)) => text.clone(),
                    None => None,
                };
                let dialogue = &job.dialogue;
                let _ = match &event {
                    Some(CallEvent::Progress(fraction, text)) => {
                        dialogue.report_progress(*fraction, text.as_deref()).await
                    }
                    Some(CallEvent::Working(Some(text))) if Some(text) != told.as_ref() => {
                        dialogue.report(text).await
                    }
                    _ => dialogue.go_on().await,
                };
                told = text;
                sleep(REPORT_PAUSE).await;
            }
            std::future::pending().await
        };
        let mut log = JobLog::open(&self.records, job, self.server.log_lines());
        tokio::select! {
            biased;
            result = call => {
                // What the server wrote before its answer may arrive after it.
                tokio::spawn(async move { timeout(LOG_TIME, log.follow::<()>()).await });
                result
            }
            never = report => never,
            never = log.follow() => never,
        }
    }
}

/// The log of a job: what the server writes to its own during the call.
struct JobLog {
    lines: broadcast::Receiver<String>,
    file: Option<File>,
    bytes_left: usize,
}

impl JobLog {
    fn open(records: &JobRecords, job: &Job, lines: broadcast::Receiver<String>) -> Self {
        Self { lines, file: records.open_log(job).ok(), bytes_left: LOG_BYTES_MAX }
    }

    async fn follow<T>(&mut self) -> T {
        loop {
            match self.lines.recv().await {
                Ok(line) => self.add(&line),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// A log that cannot be written does not stop the work.
    fn add(&mut self, line: &str) {
        let line = format!("{line}\n");
        if let (Some(file), Some(left)) = (&mut self.file, self.bytes_left.checked_sub(line.len()))
            && file.write_all(line.as_bytes()).is_ok()
        {
            self.bytes_left = left;
        }
    }
}

impl Handler for McpTool {
    async fn work(&self, job: Job) -> Outcome {
        let limit_reached = job.dialogue.limit_reached(job.time_limit, Duration::ZERO);
        let outcome = tokio::select! {
            biased;
            outcome = self.run(&job) => outcome,
            // The call is dropped, which cancels it.
            () = limit_reached => Outcome::Failed(time_limit_message(job.time_limit)),
        };
        let calls = self.journal.find(&job).calls;
        match &outcome {
            Outcome::Declined(_) => self.journal.forget(&job),
            outcome => self.journal.finish(&job, calls, outcome),
        }
        outcome
    }

    async fn close(&self) {
        self.server.close().await;
    }
}
