//! One process of a persistent program, from its start to its end.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::OUTPUT_MAX;
use super::environment::Environment;
use super::lines::{ProgramLine, parse_line};
use super::pending::{JobReply, PendingJobs};
use super::process_group::{GRACE, ProcessGroup};
use super::tail::LogSink;
use crate::agent::job::Job;
use crate::worker::lock_ignoring_poison;

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
    exit: watch::Receiver<Option<ExitStatus>>,
}

/// What to run, and how.
pub(super) struct ProgramStart<'a> {
    pub(super) command: &'a str,
    pub(super) working_dir: &'a Path,
    pub(super) environment: &'a Environment,
    pub(super) log: &'a LogSink,
    /// The job of a program that has no other.
    pub(super) only: Option<&'a str>,
}

/// A line for the program.
struct QueuedLine {
    /// The job that begins with it.
    begins: Option<String>,
    line: String,
}

/// The program's process group while its leader runs.
#[derive(Clone)]
struct SharedGroup(Arc<Mutex<Option<ProcessGroup>>>);

impl SharedGroup {
    fn take(&self) -> Option<ProcessGroup> {
        lock_ignoring_poison(&self.0).take()
    }
}

impl RunningProgram {
    pub(super) fn start(start: &ProgramStart<'_>) -> std::io::Result<Self> {
        let ProgramStart { command, working_dir, environment, log, only } = *start;
        let mut child = environment
            .apply(&mut Command::new("sh"))
            .arg("-c")
            .arg(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir(working_dir)
            .process_group(0)
            .spawn()?;
        let group = ProcessGroup::new(child.id().unwrap_or_default());
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(std::io::ErrorKind::Other.into());
        };
        let pending = Arc::new(PendingJobs::new());
        let group = SharedGroup(Arc::new(Mutex::new(Some(group))));
        let (queue, queued) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, queued, Arc::clone(&pending)));
        let output = BoundedLines::new(stdout, LINE_MAX);
        let errors =
            LogReader { lines: BoundedLines::new(stderr, LOG_LINE_MAX), log: Arc::clone(log) };
        let (exited, exit) = watch::channel(None);
        let supervisor = Supervisor {
            child,
            only: only.map(str::to_owned),
            pending: Arc::clone(&pending),
            group: group.clone(),
            exited,
        };
        tokio::spawn(supervisor.run(output, errors));
        Ok(Self { pending, queue, group, exit })
    }

    /// Sends a pending job.
    pub(super) fn send(&self, job: &Job) {
        let line = format!("{}\n", job.to_json_line());
        let begins = Some(job.id.clone());
        if self.queue.send(QueuedLine { begins, line }).is_err() {
            self.pending.resolve(&job.id, JobReply::NotSent);
        }
    }

    /// Sends one more line about a job. A program that does not read any more does not get it.
    pub(super) fn say(&self, line: String) {
        let _ = self.queue.send(QueuedLine { begins: None, line });
    }

    /// Waits until the program has exited.
    pub(super) async fn exited(&self) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        exit.wait_for(Option::is_some).await.ok().and_then(|exit| *exit)
    }

    /// Ends the program: its input ends, and it is terminated if it has not exited soon.
    pub(super) fn finish(self) {
        // An empty line ends the writer, and with it the input.
        self.say(String::new());
        tokio::spawn(async move {
            let _ = timeout(GRACE, self.exited()).await;
        });
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
    async fn forward_line(&mut self, pending: &PendingJobs) -> Option<()> {
        let line = self.lines.next().await?;
        pending.log_line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']), &self.log);
        Some(())
    }

    /// Forwards the lines that are already there. Lines before a reply belong to its job.
    fn catch_up(&mut self, pending: &PendingJobs) {
        for _ in 0..LOG_LINES_MAX {
            let Some(Some(())) = self.forward_line(pending).now_or_never() else { return };
        }
    }
}

/// Reads what a program writes, until it exits.
struct Supervisor {
    child: Child,
    only: Option<String>,
    pending: Arc<PendingJobs>,
    group: SharedGroup,
    exited: watch::Sender<Option<ExitStatus>>,
}

impl Supervisor {
    /// Reads the program's output until it exits; then fails the pending jobs.
    async fn run<O: AsyncRead + Unpin, E: AsyncRead + Unpin>(
        self,
        mut output: BoundedLines<O>,
        mut errors: LogReader<E>,
    ) {
        let Self { mut child, only, pending, group, exited } = self;
        let mut log_is_open = true;
        loop {
            tokio::select! {
                forwarded = errors.forward_line(&pending), if log_is_open => {
                    log_is_open = forwarded.is_some();
                },
                line = output.next() => {
                    // An endless line would fill the memory, so the program's output is not read
                    // any further.
                    let Some(line) = line.filter(|line| !output.is_truncated(line)) else { break };
                    errors.catch_up(&pending);
                    pending.record_activity();
                    match parse_line(&line, only.as_deref()) {
                        Some((job, ProgramLine::Outcome(outcome))) => {
                            pending.resolve(&job, JobReply::Outcome(outcome));
                        }
                        Some((job, ProgramLine::Report(report))) => pending.report(&job, report),
                        None => {}
                    }
                }
            }
        }
        errors.catch_up(&pending);
        drop(output);
        pending.fail_all(None);
        let ended = async {
            let status = child.wait().await.ok();
            // Child processes that are left have no job.
            if let Some(group) = group.take() {
                group.release_or_terminate();
            }
            exited.send_replace(status);
        };
        let rest = async { while errors.forward_line(&pending).await.is_some() {} };
        tokio::join!(ended, rest);
    }
}

/// Writes the lines one after the other. A program that stops reading gets no more jobs.
async fn write(
    mut stdin: ChildStdin,
    mut lines: mpsc::UnboundedReceiver<QueuedLine>,
    pending: Arc<PendingJobs>,
) {
    while let Some(QueuedLine { begins, line }) = lines.recv().await {
        if line.is_empty() {
            return;
        }
        if stdin.write_all(line.as_bytes()).await.is_err() {
            pending.close();
            lines.close();
            if let Some(id) = begins {
                pending.resolve(&id, JobReply::NotSent);
            }
        }
    }
}

/// Lines of at most this many bytes; the rest of a longer line becomes a line of its own.
struct BoundedLines<R> {
    from: BufReader<R>,
    /// The start of a line that is not complete yet.
    partial: Vec<u8>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    fn new(from: R, bytes_max: usize) -> Self {
        Self { from: BufReader::new(from), partial: Vec::new(), bytes_max }
    }

    /// The next line with its line break, which the last line may lack. Cancel-safe: no data is
    /// lost if the future is dropped.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let left = self.bytes_max.saturating_sub(self.partial.len()) as u64;
        // A read error counts as the end.
        let _ = (&mut self.from).take(left).read_until(b'\n', &mut self.partial).await;
        Some(std::mem::take(&mut self.partial)).filter(|line| !line.is_empty())
    }

    /// Whether a line was cut off at the limit.
    fn is_truncated(&self, line: &[u8]) -> bool {
        line.len() >= self.bytes_max && !line.ends_with(b"\n")
    }
}
