//! Runs a program once per job: the job on its standard input, the result on its standard output,
//! and success or failure as its exit status.
//!
//! A run outlives the agent that started it. Its input, output and log are files, and a small shell
//! script records its exit status. A restarted agent finds its runs again: finished ones are not
//! repeated, running ones are waited for. A lock on the output file shows that a run is still
//! going; the OS releases it with the last process that holds it.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep};

use super::environment::Environment;
use super::run::{self, DEADLINE, OUTPUT, PID, POLL_INTERVAL, RunEnd, STATUS};
use super::tail::{LogSink, LogTail};
use super::{OUTPUT_MAX, outcome_of_output, reason};
use crate::agent::handler::Handler;
use crate::agent::handlers::time_limit_message;
use crate::agent::job::{Job, Outcome};
use crate::agent::record::{self, JobRecords, LOG_FILE};
use crate::private_files;
use crate::worker::lock_ignoring_poison;

/// Exit status of a program that wants another worker to do the job (`EX_TEMPFAIL`).
const EXIT_TRY_ELSEWHERE: i32 = 75;
/// Exit status of a program that refuses the job, whichever worker gets it (`EX_NOPERM`).
const EXIT_REFUSED: i32 = 77;
/// Exit statuses of the shell for a program that cannot be run.
const EXIT_CANNOT_RUN: [i32; 2] = [126, 127];
const INPUT: &str = "stdin";
/// Longer than any job, and short enough to compute with.
const LIMIT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);
/// How often to try to lock the output of a new run.
const LOCK_TRIES_MAX: usize = 100;
/// Runs the program and records its exit status, even if the agent is gone.
///
/// It ignores SIGTERM, so that it can record the exit status after the program has shut down.
const SHELL: &str = r#"trap : TERM
record() { (umask 077; printf %s "$3" >"$1/$2.new") && mv "$1/$2.new" "$1/$2"; }
record "$1" pid "$$"
sh -c "$2"
record "$1" status "$?""#;

/// A handler that runs a command for each job.
pub struct Exec {
    command: String,
    working_dir: PathBuf,
    environment: Environment,
    records: JobRecords,
    log: LogSink,
}

impl Exec {
    /// Runs `command`, a shell command line, in the current directory, with its files in `records`.
    pub fn new(command: impl Into<String>, records: JobRecords, log: LogSink) -> Self {
        let (working_dir, environment) = (PathBuf::from("."), Environment::default());
        Self { command: command.into(), working_dir, environment, records, log }
    }

    /// Sets the working directory.
    pub fn working_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.working_dir = directory.into();
        self
    }

    /// Passes more environment variables to the program.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    async fn run(&self, job: &Job) -> io::Result<Outcome> {
        let record = self.records.open_record(job)?;
        let directory = record.path();
        let mut tail = LogTail::new(directory.join(LOG_FILE), &job.id, self.log.clone());
        let end = {
            let run = self.end(directory, job);
            tokio::select! {
                biased;
                end = run => end?,
                () = tail.follow() => RunEnd::Killed,
            }
        };
        tail.finish();
        match end {
            RunEnd::Status(status) => outcome_of_exit(directory, status),
            RunEnd::Killed => Ok(Outcome::Failed("the program was killed from outside".to_owned())),
            RunEnd::TimedOut => Ok(Outcome::Failed(time_limit_message(job.time_limit))),
            RunEnd::OutputTooLong(why) => Ok(Outcome::Failed(why)),
        }
    }

    /// Waits for the run of a job, which may have started or even ended earlier.
    async fn end(&self, directory: &Path, job: &Job) -> io::Result<RunEnd> {
        let limit = job.time_limit.min(LIMIT_MAX);
        let mut lock = lock_directory(directory).await;
        if run::is_running(directory)? {
            drop(lock);
            let left = run::time_left(directory).map_or(limit, |left| left.min(limit));
            let earlier = run::wait_for_adopted(directory, Instant::now() + left).await?;
            // The earlier run was killed from outside, so the job runs again.
            if earlier != RunEnd::Killed {
                return Ok(earlier);
            }
            lock = lock_directory(directory).await;
        }
        if let Some(earlier) = earlier_end(directory, job) {
            return Ok(earlier);
        }
        let child = self.start(directory, job, limit).await?;
        drop(lock);
        run::wait_for_child(child, directory, Instant::now() + limit).await
    }

    async fn start(&self, directory: &Path, job: &Job, limit: Duration) -> io::Result<Child> {
        for name in [PID, STATUS, DEADLINE] {
            record::remove_if_exists(&directory.join(name))?;
        }
        record::write_atomically(directory, INPUT, format!("{}\n", job.to_json_line()).as_bytes())?;
        run::write_deadline(directory, limit)?;
        let own = |name| {
            private_files::open_options().write(true).truncate(true).open(directory.join(name))
        };
        let output = own(OUTPUT)?;
        lock_output(&output).await?;
        self.environment
            .apply(&mut Command::new("sh"))
            .arg("-c")
            .arg(SHELL)
            .arg("sh")
            .arg(std::path::absolute(directory)?)
            .arg(&self.command)
            .stdin(File::open(directory.join(INPUT))?)
            .stdout(Stdio::from(output))
            .stderr(own(LOG_FILE)?)
            .current_dir(&self.working_dir)
            .process_group(0)
            .spawn()
    }
}

impl Handler for Exec {
    async fn work(&self, job: Job) -> Outcome {
        match self.run(&job).await {
            Ok(outcome) => outcome,
            Err(error) => {
                Outcome::Declined(format!("the program cannot be started: {}", error.kind()))
            }
        }
    }
}

/// How an earlier run ended, unless the job is to run again.
fn earlier_end(directory: &Path, job: &Job) -> Option<RunEnd> {
    match run::read_end(directory) {
        RunEnd::Killed => None,
        // A peer that sends a declined request again wants it to be tried again.
        RunEnd::Status(status) if job.epoch == 0 && is_not_done(status) => None,
        end => Some(end),
    }
}

fn is_not_done(status: i32) -> bool {
    status == EXIT_TRY_ELSEWHERE || EXIT_CANNOT_RUN.contains(&status)
}

/// Locks the output. A process that checks the lock holds it for a moment, hence the retries.
async fn lock_output(output: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES_MAX {
        match output.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => sleep(POLL_INTERVAL).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Ends a run whose result is no longer wanted.
pub(in crate::agent) async fn end_run(directory: &Path) -> io::Result<()> {
    if run::is_running(directory)? {
        run::wait_for_adopted(directory, Instant::now()).await?;
    }
    Ok(())
}

/// The outcome of a run, from its exit status and its output.
fn outcome_of_exit(directory: &Path, status: i32) -> io::Result<Outcome> {
    let mut written = Vec::new();
    let output = File::open(directory.join(OUTPUT))?;
    output.take(OUTPUT_MAX as u64 + 1).read_to_end(&mut written)?;
    if status == 0 {
        return Ok(outcome_of_output(&written));
    }
    Ok(outcome_of_status(status, reason(&String::from_utf8_lossy(&written))))
}

/// The outcome of a program without a usable output, from its exit status and its own reason.
pub(super) fn outcome_of_status(status: i32, why: Option<String>) -> Outcome {
    let reason = |text: &str| why.clone().unwrap_or_else(|| text.to_owned());
    match status {
        0 => Outcome::Failed(reason("the program gave no output")),
        EXIT_TRY_ELSEWHERE => {
            Outcome::Declined(reason("the program asked for another worker (exit status 75)"))
        }
        EXIT_REFUSED => Outcome::Refused(reason("the program refused the job (exit status 77)")),
        // The agent is broken, not the job.
        _ if EXIT_CANNOT_RUN.contains(&status) => {
            Outcome::Declined("the program cannot be run".to_owned())
        }
        _ => Outcome::Failed(reason(&format!("the program exited with status {status}"))),
    }
}

/// The run directories that are locked or waited for.
static LOCKS: Mutex<BTreeMap<PathBuf, Weak<tokio::sync::Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// Waits for the lock of a run directory within this process. It is held while checking for an
/// earlier run and starting a new one: the same job may be requested twice at the same moment.
async fn lock_directory(directory: &Path) -> OwnedMutexGuard<()> {
    let lock = {
        let mut locks = lock_ignoring_poison(&LOCKS);
        locks.retain(|_, lock| lock.strong_count() > 0);
        let known = locks.get(directory).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let lock = Arc::default();
            locks.insert(directory.to_owned(), Arc::downgrade(&lock));
            lock
        })
    };
    lock.lock_owned().await
}
