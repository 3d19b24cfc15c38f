//! Runs a program once per job: the job on its standard input, the result on its standard output,
//! and success or failure as its exit status.
//!
//! A run outlives the agent that started it. Its input, output and log are files, and a small shell
//! script records its exit status. A restarted agent finds its runs again: finished ones are not
//! repeated, running ones are waited for. A lock on the output file shows that a run is still
//! going; the OS releases it with the last process that holds it.

mod directory_lock;
mod run;

use std::fs::{File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::environment::Environment;
use super::tail::{Log, Tail};
use super::{OUTPUT_MAX, made, reason};
use crate::agent::handler::Handler;
use crate::agent::job::Job;
use crate::agent::outcome::Outcome;
use crate::agent::record::{self, LOG, Records};
use crate::agent::handlers::over;
use crate::private_files;
use directory_lock::alone_with;
use run::{End, LOOK, OUTPUT, PID, STATUS, UNTIL};

/// Exit status of a program that wants another worker to do the job (`EX_TEMPFAIL`).
const ELSEWHERE: i32 = 75;
/// Exit statuses of the shell for a program that cannot be run.
const NO_PROGRAM: [i32; 2] = [126, 127];
const INPUT: &str = "stdin";
/// Longer than any job, and short enough to compute with.
const LIMIT_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);
/// How often to try to lock the output of a new run.
const LOCK_TRIES_MAX: usize = 100;
/// Runs the program and records its exit status, even if the agent is gone.
///
/// It ignores SIGTERM, so that it can record the exit status after the program has shut down.
const SHELL: &str = r#"trap : TERM
tell() { (umask 077; printf %s "$3" >"$1/$2.new") && mv "$1/$2.new" "$1/$2"; }
tell "$1" pid "$$"
sh -c "$2"
tell "$1" status "$?""#;

/// A handler that runs a command for each job.
pub struct Exec {
    command: String,
    place: PathBuf,
    environment: Environment,
    records: Records,
    log: Log,
}

impl Exec {
    /// Runs `command`, a shell command line, in the current directory, with its files in `records`.
    pub fn new(command: impl Into<String>, records: Records, log: Log) -> Self {
        let (place, environment) = (PathBuf::from("."), Environment::default());
        Self { command: command.into(), place, environment, records, log }
    }

    /// Sets the working directory.
    pub fn within(mut self, place: impl Into<PathBuf>) -> Self {
        self.place = place.into();
        self
    }

    /// Passes more environment variables to the program.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    async fn run(&self, job: &Job) -> io::Result<Outcome> {
        let record = self.records.of(job)?;
        let directory = record.path();
        let mut tail = Tail::new(directory.join(LOG), &job.id, self.log.clone());
        let end = {
            let run = self.end(directory, job);
            tokio::select! {
                biased;
                end = run => end?,
                () = tail.follow() => End::Broken,
            }
        };
        tail.finish();
        match end {
            End::Status(status) => told(directory, status),
            End::Broken => Ok(Outcome::Failed("the program was killed from outside".to_owned())),
            End::Over => Ok(Outcome::Failed(over(job.time_limit))),
            End::TooLong(why) => Ok(Outcome::Failed(why)),
        }
    }

    /// Waits for the run of a job, which may have started or even ended earlier.
    async fn end(&self, directory: &Path, job: &Job) -> io::Result<End> {
        let limit = job.time_limit.min(LIMIT_MAX);
        let mut alone = alone_with(directory).await;
        if run::is_running(directory)? {
            drop(alone);
            let left = run::left(directory).map_or(limit, |left| left.min(limit));
            let earlier = run::adopted(directory, Instant::now() + left).await?;
            // The earlier run was killed from outside, so the job runs again.
            if earlier != End::Broken {
                return Ok(earlier);
            }
            alone = alone_with(directory).await;
        }
        if let Some(earlier) = finished(directory, job) {
            return Ok(earlier);
        }
        let child = self.start(directory, job, limit).await?;
        drop(alone);
        run::ended(child, directory, Instant::now() + limit).await
    }

    async fn start(&self, directory: &Path, job: &Job, limit: Duration) -> io::Result<Child> {
        for left in [PID, STATUS, UNTIL] {
            record::remove(&directory.join(left))?;
        }
        record::write(directory, INPUT, format!("{}\n", job.document()).as_bytes())?;
        run::keep_until(directory, limit)?;
        let own = |name| private_files::own().write(true).truncate(true).open(directory.join(name));
        let output = own(OUTPUT)?;
        lock(&output).await?;
        self.environment
            .apply(&mut Command::new("sh"))
            .arg("-c")
            .arg(SHELL)
            .arg("sh")
            .arg(std::path::absolute(directory)?)
            .arg(&self.command)
            .stdin(File::open(directory.join(INPUT))?)
            .stdout(Stdio::from(output))
            .stderr(own(LOG)?)
            .current_dir(&self.place)
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
fn finished(directory: &Path, job: &Job) -> Option<End> {
    match run::how(directory) {
        End::Broken => None,
        // A peer that sends a declined request again wants it to be tried again.
        End::Status(status) if job.turn == 0 && is_not_done(status) => None,
        end => Some(end),
    }
}

fn is_not_done(status: i32) -> bool {
    status == ELSEWHERE || NO_PROGRAM.contains(&status)
}

/// Locks the output. A process that checks the lock holds it for a moment, hence the retries.
async fn lock(output: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES_MAX {
        match output.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => sleep(LOOK).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Ends a run whose result is no longer wanted.
pub(in crate::agent) async fn end(directory: &Path) -> io::Result<()> {
    if run::is_running(directory)? {
        run::adopted(directory, Instant::now()).await?;
    }
    Ok(())
}

/// The outcome of a run, from its exit status and its output.
fn told(directory: &Path, status: i32) -> io::Result<Outcome> {
    let mut written = Vec::new();
    let output = File::open(directory.join(OUTPUT))?;
    output.take(OUTPUT_MAX as u64 + 1).read_to_end(&mut written)?;
    if status == 0 {
        return Ok(made(&written));
    }
    let why = reason(&String::from_utf8_lossy(&written));
    Ok(match status {
        ELSEWHERE => {
            Outcome::Declined(why.unwrap_or_else(|| {
                "the program asked for another worker (exit status 75)".to_owned()
            }))
        }
        // The agent is broken, not the job.
        _ if NO_PROGRAM.contains(&status) => {
            Outcome::Declined("the program cannot be run".to_owned())
        }
        _ => Outcome::Failed(
            why.unwrap_or_else(|| format!("the program exited with status {status}")),
        ),
    })
}
