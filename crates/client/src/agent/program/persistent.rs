//! A persistent program: it reads one job per line and writes one result per line,
//! `{"job_id","output"}`, `{"job_id","error"}` or `{"job_id","decline"}`, in any order.
//!
//! It starts with the first job. It is restarted after it exits, stops reading, or exceeds the time
//! limit of its skill. Jobs that are pending when it exits have failed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::environment::Environment;
use super::pending::{JobLog, JobReply};
use super::running::RunningProgram;
use super::tail::LogSink;
use super::{OUTPUT_MAX, REASON_MAX, too_long};
use crate::agent::handler::Handler;
use crate::agent::handlers::time_limit_message;
use crate::agent::job::{Job, Outcome};
use crate::agent::record::JobRecords;
use crate::clock;

/// How often a program is started for one job that it does not read.
const TRIES_MAX: usize = 3;

/// A handler that sends jobs to a persistent program.
pub struct PersistentProgram {
    command: String,
    working_dir: PathBuf,
    environment: Environment,
    log: LogSink,
    records: Option<JobRecords>,
    limit: Duration,
    running: Mutex<Option<Arc<RunningProgram>>>,
}

impl PersistentProgram {
    /// Sends jobs to `command`, a shell command line, run in the current directory.
    pub fn new(command: impl Into<String>, log: LogSink) -> Self {
        Self {
            command: command.into(),
            working_dir: PathBuf::from("."),
            environment: Environment::default(),
            log,
            records: None,
            limit: Duration::MAX,
            running: Mutex::default(),
        }
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

    /// Adds its standard error to the log of every job that is pending at the time.
    pub fn log_to(mut self, records: JobRecords) -> Self {
        self.records = Some(records);
        self
    }

    /// The skill's time limit for one job. A requester may have less time: its job then times out
    /// and the program continues with the others. A program that writes nothing for this long is
    /// restarted for the next job.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The outcome of a job, however long it takes. `assigned` is set to the program that has the
    /// job.
    async fn outcome(&self, job: &Job, assigned: &mut Option<Arc<RunningProgram>>) -> Outcome {
        let log = || Some(JobLog::new(self.records.as_ref()?.open_log(job).ok()?));
        for _ in 0..TRIES_MAX {
            let Ok(program) = self.program().await else {
                return Outcome::Declined("the program cannot be run".to_owned());
            };
            let Some(answer) = program.pending.add(&job.id, log).await else { continue };
            program.send(job);
            *assigned = Some(program);
            match answer.await {
                Ok(JobReply::Outcome(outcome)) => return outcome,
                Ok(JobReply::NotSent) => {}
                Err(_) => return Outcome::Failed("the program exited during the job".to_owned()),
            }
        }
        Outcome::Declined("the program does not read its standard input".to_owned())
    }

    /// The program that accepts jobs now. One that accepts no more keeps running until it has
    /// answered its pending jobs.
    async fn program(&self) -> std::io::Result<Arc<RunningProgram>> {
        let mut running = self.running.lock().await;
        if let Some(program) = running.as_ref().filter(|program| program.pending.is_open()) {
            if !program.pending.is_stuck(self.limit) {
                return Ok(Arc::clone(program));
            }
            program.kill();
        }
        let program =
            RunningProgram::start(&self.command, &self.working_dir, &self.environment, &self.log)?;
        let program = Arc::new(program);
        *running = Some(Arc::clone(&program));
        Ok(program)
    }

    /// Whether the skill's time limit was exceeded, and not only the requester's deadline.
    fn is_own_limit(&self, job: &Job, began: Instant) -> bool {
        let is_due = job.deadline.is_some_and(|deadline| clock::now() >= deadline);
        !is_due || began.elapsed() >= self.limit
    }
}

impl Handler for PersistentProgram {
    async fn work(&self, job: Job) -> Outcome {
        let (began, mut assigned) = (Instant::now(), None);
        let outcome = self.outcome(&job, &mut assigned);
        let Some(until) = began.checked_add(job.time_limit) else { return outcome.await };
        if let Ok(outcome) = timeout_at(until, outcome).await {
            return outcome;
        }
        match assigned {
            // A program that missed its time limit may never answer again.
            Some(program) if self.is_own_limit(&job, began) => program.kill(),
            Some(_) => {}
            None => {
                return Outcome::Declined(
                    "the program still works on a job with the same id".to_owned(),
                );
            }
        }
        Outcome::Failed(time_limit_message(job.time_limit))
    }

    async fn close(&self) {
        if let Some(program) = self.running.lock().await.take() {
            program.kill();
        }
    }
}

/// One output line of the program.
#[derive(Deserialize)]
struct OutputLine<'a> {
    job_id: String,
    #[serde(borrow, default, deserialize_with = "present")]
    output: Option<&'a RawValue>,
    error: Option<Value>,
    decline: Option<Value>,
}

/// Accepts an output that is present, even if it is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The job and its outcome, if the line is a reply to a job.
pub fn parse_line(line: &[u8]) -> Option<(String, Outcome)> {
    let (text, is_text) = match std::str::from_utf8(line) {
        Ok(text) => (text.into(), true),
        Err(_) => (String::from_utf8_lossy(line), false),
    };
    let line: OutputLine<'_> = serde_json::from_str(&text).ok()?;
    let outcome = match (line.output, line.error, line.decline) {
        (_, Some(why), _) => Outcome::Failed(reason(&why)),
        (_, None, Some(why)) => Outcome::Declined(reason(&why)),
        (Some(_), None, None) if !is_text => {
            Outcome::Failed("the output is not valid UTF-8".to_owned())
        }
        (Some(output), None, None) if output.get().len() > OUTPUT_MAX => {
            Outcome::Failed(too_long("output", OUTPUT_MAX as u64))
        }
        (Some(output), None, None) => Outcome::from_json_text(output.get()),
        (None, None, None) => Outcome::Failed("the program gave no output".to_owned()),
    };
    Some((line.job_id, outcome))
}

/// The reason as text: a string, an object's `message`, or the JSON itself.
fn reason(why: &Value) -> String {
    let text = why.as_str().or_else(|| why.get("message")?.as_str()).map(str::to_owned);
    text.unwrap_or_else(|| why.to_string()).chars().take(REASON_MAX).collect()
}
