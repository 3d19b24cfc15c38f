//! One process of a persistent program, from its start to its end.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;

use super::super::OUTPUT_MAX;
use super::super::environment::Environment;
use super::super::lines::BoundedLines;
use super::super::process_group::ProcessGroup;
use super::super::tail::LogSink;
use super::line::parse_line;
use super::pending::{JobReply, PendingJobs};
use crate::agent::job::Job;

/// Maximum line length: the largest output and the JSON around it.
const LINE_MAX: usize = 4 * OUTPUT_MAX;
/// Maximum length of a log line.
const LOG_LINE_MAX: usize = 8 << 10;
/// Maximum number of log lines read before a reply.
const LOG_LINES_MAX: usize = 10_000;

/// A running program. It is ended when the last reference is dropped.
pub(super) struct RunningProgram {
    pub(super) pending: Arc<PendingJobs>,
    /// Lines for the program. A separate task writes them, so that none is ever cut off.
    queue: mpsc::UnboundedSender<QueuedLine>,
    group: SharedGroup,
}

/// A line for the program, and the job it belongs to.
struct QueuedLine {
    id: String,
    line: String,
}

/// The program's process group while its leader runs.
#[derive(Clone)]
struct SharedGroup(Arc<Mutex<Option<ProcessGroup>>>);

impl SharedGroup {
    fn take(&self) -> Option<ProcessGroup> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl RunningProgram {
    pub(super) fn start(
        command: &str,
        place: &Path,
        environment: &Environment,
        log: &LogSink,
    ) -> std::io::Result<Self> {
        let mut child = environment
            .apply(&mut Command::new("sh"))
            .arg("-c")
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir(place)
            .process_group(0)
            .spawn()?;
        let group = ProcessGroup::new(child.id().unwrap_or_default());
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(std::io::ErrorKind::Other.into());
        };
        let (hand, group) =
            (Arc::new(PendingJobs::new()), SharedGroup(Arc::new(Mutex::new(Some(group)))));
        let (unsent, lines) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, lines, Arc::clone(&hand)));
        let said = BoundedLines::new(stdout, LINE_MAX);
        let logged =
            LogReader { lines: BoundedLines::new(stderr, LOG_LINE_MAX), log: Arc::clone(log) };
        tokio::spawn(supervise(child, said, logged, Arc::clone(&hand), group.clone()));
        Ok(Self { pending: hand, queue: unsent, group })
    }

    /// Sends a pending job.
    pub(super) fn send(&self, job: &Job) {
        let line = format!("{}\n", job.to_json_line());
        if self.queue.send(QueuedLine { id: job.id.clone(), line }).is_err() {
            self.pending.resolve(&job.id, JobReply::NotSent);
        }
    }

    /// Kills the program. Its pending jobs are declined, so that other workers can do them.
    pub(super) fn kill(&self) {
        self.pending.fail_all(Some("the program was restarted"));
        drop(self.group.take());
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        drop(self.group.take());
    }
}

/// Reads the program's standard error.
struct LogReader<R> {
    lines: BoundedLines<R>,
    log: LogSink,
}

impl<R: AsyncRead + Unpin> LogReader<R> {
    /// Forwards the next line; `None` at the end.
    async fn forward_line(&mut self, hand: &PendingJobs) -> Option<()> {
        let line = self.lines.next().await?;
        hand.log_line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']), &self.log);
        Some(())
    }

    /// Forwards the lines that are already there. Lines before a reply belong to its job.
    fn catch_up(&mut self, hand: &PendingJobs) {
        for _ in 0..LOG_LINES_MAX {
            let Some(Some(())) = self.forward_line(hand).now_or_never() else { return };
        }
    }
}

/// Reads the program's output until it exits; then fails the pending jobs.
async fn supervise<O: AsyncRead + Unpin, E: AsyncRead + Unpin>(
    mut child: Child,
    mut said: BoundedLines<O>,
    mut logged: LogReader<E>,
    hand: Arc<PendingJobs>,
    group: SharedGroup,
) {
    let mut log_is_open = true;
    loop {
        tokio::select! {
            passed = logged.forward_line(&hand), if log_is_open => log_is_open = passed.is_some(),
            line = said.next() => {
                // An endless line would fill the memory, so the program's output is not read any
                // further.
                let Some(line) = line.filter(|line| !said.is_truncated(line)) else { break };
                logged.catch_up(&hand);
                hand.record_activity();
                if let Some((job, outcome)) = parse_line(&line) {
                    hand.resolve(&job, JobReply::Outcome(outcome));
                }
            }
        }
    }
    logged.catch_up(&hand);
    drop(said);
    hand.fail_all(None);
    let ended = async {
        let _ = child.wait().await;
        // Child processes that are left have no job.
        if let Some(group) = group.take() {
            group.release_or_terminate();
        }
    };
    let rest = async { while logged.forward_line(&hand).await.is_some() {} };
    tokio::join!(ended, rest);
}

/// Writes the lines one after the other. A program that stops reading gets no more jobs.
async fn write(
    mut stdin: ChildStdin,
    mut lines: mpsc::UnboundedReceiver<QueuedLine>,
    hand: Arc<PendingJobs>,
) {
    while let Some(QueuedLine { id, line }) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            hand.close();
            lines.close();
            hand.resolve(&id, JobReply::NotSent);
        }
    }
}
