//! A program that is run once for each job: the job on its standard input, the result on its
//! standard output, and how it ended as its exit status.
//!
//! A run outlives the agent that started it. Its input, output and log are files, and a small shell
//! around it writes down how it ended. So an agent that is killed and started again finds its runs
//! where they are: finished ones are not run again, running ones are waited for. That a run goes on
//! is told by a lock on its output, which ends with the last process that has it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

use super::group::{GRACE, Group};
use super::tail::{Log, Tail};
use super::{OUTPUT_MAX, reason};
use crate::agent::handler::Handler;
use crate::agent::job::Job;
use crate::agent::outcome::Outcome;
use crate::agent::record::{self, LOG, Records};
use crate::agent::workshop::over;

/// Exit status of a program that wants somebody else to do the job (`EX_TEMPFAIL`).
const ELSEWHERE: i32 = 75;
/// Exit status of what was asked to end, as a shell tells it.
const ASKED: i32 = 128 + 15;
const INPUT: &str = "stdin";
const OUTPUT: &str = "stdout";
const PID: &str = "pid";
const STATUS: &str = "status";
/// How often a run that somebody else started is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Runs the program and writes down how it ended, whoever is there to see it.
///
/// It hears a request to end, so that it is there when the program has put its things away.
const SHELL: &str = r#"trap : TERM
printf %s "$$" >"$1/pid.new" && mv "$1/pid.new" "$1/pid"
sh -c "$2"
printf %s "$?" >"$1/status.new" && mv "$1/status.new" "$1/status""#;

/// Runs a command for each job.
pub struct Exec {
    command: String,
    place: PathBuf,
    records: Records,
    log: Log,
}

/// How a run ended.
enum End {
    /// With this exit status.
    Status(i32),
    /// Somebody ended it from outside.
    Broken,
    /// Its time was over.
    Over,
}

impl Exec {
    /// Runs `command`, a line for the shell, in the current directory, with its files in `records`.
    pub fn new(command: impl Into<String>, records: Records, log: Log) -> Self {
        Self { command: command.into(), place: PathBuf::from("."), records, log }
    }

    /// Runs it in another directory.
    pub fn within(mut self, place: impl Into<PathBuf>) -> Self {
        self.place = place.into();
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
            End::Broken => Ok(Outcome::Failed("the program was ended from outside".to_owned())),
            End::Over => Ok(Outcome::Failed(over(job.time_limit))),
        }
    }

    /// How the run of a job ends, which may have begun or even ended before.
    async fn end(&self, directory: &Path, job: &Job) -> io::Result<End> {
        let until = Instant::now() + job.time_limit.min(Duration::from_secs(365 * 24 * 3_600));
        // Whoever ended an earlier run did not mean the job, so that is run once more.
        let earlier = match is_running(directory)? {
            true => adopted(directory, until).await?,
            false => how(directory),
        };
        if !matches!(earlier, End::Broken) {
            return Ok(earlier);
        }
        let child = self.start(directory, job)?;
        ended(child, directory, until).await
    }

    fn start(&self, directory: &Path, job: &Job) -> io::Result<Child> {
        for left in [PID, STATUS] {
            record::remove(&directory.join(left))?;
        }
        record::write(directory, INPUT, format!("{}\n", job.document()).as_bytes())?;
        let output = File::create(directory.join(OUTPUT))?;
        output.lock()?;
        Command::new("sh")
            .arg("-c")
            .arg(SHELL)
            .arg("sh")
            .arg(std::path::absolute(directory)?)
            .arg(&self.command)
            .stdin(File::open(directory.join(INPUT))?)
            .stdout(Stdio::from(output))
            .stderr(File::create(directory.join(LOG))?)
            .current_dir(&self.place)
            .process_group(0)
            .spawn()
    }
}

impl Handler for Exec {
    async fn work(&self, job: Job) -> Outcome {
        match self.run(&job).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::Declined(format!("the program cannot be run: {}", error.kind())),
        }
    }
}

/// Waits for a run of our own.
async fn ended(mut child: Child, directory: &Path, until: Instant) -> io::Result<End> {
    let group = Group::of(child.id().unwrap_or_default());
    match timeout_at(until, child.wait()).await {
        Ok(exit) => {
            exit?;
            group.release();
            Ok(how(directory))
        }
        Err(_) => {
            group.ask();
            if timeout_at(until + GRACE, child.wait()).await.is_err() {
                group.end();
                child.wait().await?;
            }
            // What it started may not have heard.
            group.end();
            group.release();
            Ok(End::Over)
        }
    }
}

/// Waits for a run that somebody else started.
async fn adopted(directory: &Path, until: Instant) -> io::Result<End> {
    // Its shell writes this down before anything else.
    let pid = loop {
        match fs::read_to_string(directory.join(PID)) {
            Ok(pid) => break pid.trim().parse().unwrap_or_default(),
            Err(_) if !is_running(directory)? => return Ok(End::Broken),
            Err(_) => sleep(LOOK).await,
        }
    };
    let group = Group::of(pid);
    let end = loop {
        // Looked at in this order: it is written down before the end.
        let is_over = !is_running(directory)?;
        let end = how(directory);
        if is_over || matches!(end, End::Status(_)) {
            break end;
        }
        if Instant::now() >= until + GRACE {
            group.end();
            break End::Over;
        }
        if Instant::now() >= until {
            group.ask();
        }
        sleep(LOOK).await;
    };
    group.release();
    Ok(end)
}

/// Whether a run goes on: somebody has its output open.
fn is_running(directory: &Path) -> io::Result<bool> {
    let output = match File::open(directory.join(OUTPUT)) {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match output.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Ends a run that nobody wants any more; what it was about is forgotten.
pub(in crate::agent) async fn end(directory: &Path) -> io::Result<()> {
    if is_running(directory)? {
        adopted(directory, Instant::now()).await?;
    }
    Ok(())
}

/// How a run that is over has ended, as far as it is written down.
fn how(directory: &Path) -> End {
    let status = fs::read_to_string(directory.join(STATUS)).ok();
    match status.and_then(|status| status.trim().parse().ok()) {
        None | Some(ASKED) => End::Broken,
        Some(status) => End::Status(status),
    }
}

/// What a program made of the job, by its exit status and what it wrote.
fn told(directory: &Path, status: i32) -> io::Result<Outcome> {
    let mut written = Vec::new();
    let output = File::open(directory.join(OUTPUT))?;
    output.take(OUTPUT_MAX as u64 + 1).read_to_end(&mut written)?;
    if written.len() > OUTPUT_MAX {
        return Ok(Outcome::Failed(format!("the output is longer than {OUTPUT_MAX} bytes")));
    }
    let written = String::from_utf8_lossy(&written);
    let why = reason(&written);
    Ok(match status {
        0 => Outcome::read(&written),
        ELSEWHERE => Outcome::Declined(why.unwrap_or_else(|| "not here, not now".to_owned())),
        // The shell's way to say that there is no such program: the agent is broken, not the job.
        126 | 127 => Outcome::Declined("the program cannot be run".to_owned()),
        _ => Outcome::Failed(
            why.unwrap_or_else(|| format!("the program ended with status {status}")),
        ),
    })
}
