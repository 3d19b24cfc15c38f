//! A program that stays: it reads jobs line by line and writes what came of each on a line of its
//! own, `{"job_id","output"}`, `{"job_id","error"}` or `{"job_id","decline"}`, in any order.
//!
//! It is started with the first job, and again after it ended. What it had in hand then has failed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::group::Group;
use super::tail::Log;
use super::{OUTPUT_MAX, REASON_MAX};
use crate::agent::handler::Handler;
use crate::agent::job::Job;
use crate::agent::outcome::Outcome;
use crate::agent::workshop::over;

/// The longest line that is read: an output of the longest kind, and room for what stands around it.
const LINE_MAX: u64 = 4 * OUTPUT_MAX as u64;
/// The longest line of a log; what goes on is a line of its own.
const LOG_LINE_MAX: u64 = 8 << 10;

/// Jobs that wait for their line.
type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Outcome>>>>;

/// Gives jobs to a program that stays.
pub struct Persistent {
    command: String,
    place: PathBuf,
    log: Log,
    running: tokio::sync::Mutex<Option<Running>>,
}

struct Running {
    /// Lines for the program: written by a task of its own, so that none is ever half written.
    lines: mpsc::UnboundedSender<String>,
    waiting: Waiting,
    /// Ends the program when it is dropped.
    _group: Group,
}

/// One line of what a program says.
#[derive(Deserialize)]
struct Line<'a> {
    job_id: String,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    error: Option<String>,
    decline: Option<String>,
}

impl Persistent {
    /// Gives jobs to `command`, a line for the shell, run in the current directory.
    pub fn new(command: impl Into<String>, log: Log) -> Self {
        let (command, place) = (command.into(), PathBuf::from("."));
        Self { command, place, log, running: tokio::sync::Mutex::default() }
    }

    /// Runs it in another directory.
    pub fn within(mut self, place: impl Into<PathBuf>) -> Self {
        self.place = place.into();
        self
    }

    /// Hands a job over and says where its outcome will come from.
    async fn give(&self, job: &Job) -> std::io::Result<oneshot::Receiver<Outcome>> {
        let mut running = self.running.lock().await;
        if running.as_ref().is_none_or(|running| Arc::strong_count(&running.waiting) == 1) {
            *running = Some(self.start()?);
        }
        let Some(program) = running.as_mut() else { return Err(std::io::ErrorKind::Other.into()) };
        let (sender, receiver) = oneshot::channel();
        lock(&program.waiting).insert(job.id.clone(), sender);
        // One whose writer has gone has ended; whoever waits is told so.
        let _ = program.lines.send(format!("{}\n", job.document()));
        Ok(receiver)
    }

    fn start(&self) -> std::io::Result<Running> {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .current_dir(&self.place)
            .process_group(0)
            .spawn()?;
        let group = Group::of(child.id().unwrap_or_default());
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(std::io::ErrorKind::Other.into());
        };
        let waiting = Waiting::default();
        let (lines, unwritten) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, unwritten));
        tokio::spawn(log(stderr, self.log.clone()));
        tokio::spawn(listen(stdout, child, Arc::clone(&waiting)));
        Ok(Running { lines, waiting, _group: group })
    }

    /// Ends the program: whoever has not answered in time may never answer again.
    async fn end(&self) {
        if let Some(program) = self.running.lock().await.take() {
            // What else it had in hand is not to blame, and may be done elsewhere.
            for (_, waits) in lock(&program.waiting).drain() {
                let _ = waits.send(Outcome::Declined("the program had to be restarted".to_owned()));
            }
        }
    }
}

impl Handler for Persistent {
    async fn work(&self, job: Job) -> Outcome {
        let until = Instant::now().checked_add(job.time_limit);
        let outcome = match self.give(&job).await {
            Ok(outcome) => outcome,
            Err(_) => return Outcome::Declined("the program cannot be run".to_owned()),
        };
        let gone = || Outcome::Failed("the program ended at this".to_owned());
        match until {
            None => outcome.await.unwrap_or_else(|_| gone()),
            Some(until) => match timeout_at(until, outcome).await {
                Ok(outcome) => outcome.unwrap_or_else(|_| gone()),
                Err(_) => {
                    self.end().await;
                    Outcome::Failed(over(job.time_limit))
                }
            },
        }
    }

    async fn close(&self) {
        self.end().await;
    }
}

/// Reads what the program says until it ends; whoever still waits then waits in vain.
async fn listen(stdout: impl AsyncRead + Unpin, mut child: Child, waiting: Waiting) {
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut lines).take(LINE_MAX).read_until(b'\n', &mut line).await {
        // A line without an end would fill the memory; who writes one is not listened to any more.
        if line.len() as u64 == LINE_MAX && !line.ends_with(b"\n") {
            break;
        }
        if let Some((job, outcome)) = told(&line)
            && let Some(waits) = lock(&waiting).remove(&job)
        {
            // Whoever does not wait any more does not want to know.
            let _ = waits.send(outcome);
        }
        line.clear();
    }
    drop(lines);
    lock(&waiting).clear();
    drop(waiting);
    let _ = child.wait().await;
}

/// What a line says about which job, if it is a line about one.
pub fn told(line: &[u8]) -> Option<(String, Outcome)> {
    let text = std::str::from_utf8(line).ok()?;
    let line: Line<'_> = serde_json::from_str(text).ok()?;
    let short = |text: String| text.chars().take(REASON_MAX).collect();
    let outcome = match (line.output, line.error, line.decline) {
        (_, Some(why), _) => Outcome::Failed(short(why)),
        (_, None, Some(why)) => Outcome::Declined(short(why)),
        (Some(output), None, None) if output.get().len() <= OUTPUT_MAX => {
            Outcome::read(output.get())
        }
        _ => Outcome::Failed("the program gave no output".to_owned()),
    };
    Some((line.job_id, outcome))
}

/// Writes the lines one after the other, whole.
async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn log(stderr: impl AsyncRead + Unpin, log: Log) {
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut lines).take(LOG_LINE_MAX).read_until(b'\n', &mut line).await {
        log("", String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        line.clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
