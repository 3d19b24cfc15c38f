//! A persistent program: it reads one job per line and writes one result per line,
//! `{"job_id","output"}`, `{"job_id","error"}` or `{"job_id","decline"}`, in any order.
//!
//! It starts with the first job. It is restarted after it exits, stops reading, or exceeds the time
//! limit of its skill. Jobs that are pending when it exits have failed.

mod pending;
mod line;
mod running;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::environment::Environment;
use super::tail::Log;
use crate::agent::handler::Handler;
use crate::agent::job::Job;
use crate::agent::outcome::Outcome;
use crate::agent::record::Records;
use crate::agent::handlers::over;
use crate::clock;
use pending::{Answer, JobLog};
#[cfg(any(test, feature = "testkit"))]
pub use line::told;
use running::Running;

/// How often a program is started for one job that it does not read.
const TRIES_MAX: usize = 3;

/// A handler that sends jobs to a persistent program.
pub struct Persistent {
    command: String,
    place: PathBuf,
    environment: Environment,
    log: Log,
    records: Option<Records>,
    limit: Duration,
    running: Mutex<Option<Arc<Running>>>,
}

impl Persistent {
    /// Sends jobs to `command`, a shell command line, run in the current directory.
    pub fn new(command: impl Into<String>, log: Log) -> Self {
        Self {
            command: command.into(),
            place: PathBuf::from("."),
            environment: Environment::default(),
            log,
            records: None,
            limit: Duration::MAX,
            running: Mutex::default(),
        }
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

    /// Adds its standard error to the log of every job that is pending at the time.
    pub fn logging_to(mut self, records: Records) -> Self {
        self.records = Some(records);
        self
    }

    /// The skill's time limit for one job. A requester may have less time: its job then times out
    /// and the program continues with the others. A program that writes nothing for this long is
    /// restarted for the next job.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The outcome of a job, however long it takes. `given` is set to the program that has the job.
    async fn outcome(&self, job: &Job, given: &mut Option<Arc<Running>>) -> Outcome {
        let log = || Some(JobLog::new(self.records.as_ref()?.log_of(job).ok()?));
        for _ in 0..TRIES_MAX {
            let Ok(program) = self.program().await else {
                return Outcome::Declined("the program cannot be run".to_owned());
            };
            let Some(answer) = program.hand.take(&job.id, log).await else { continue };
            program.send(job);
            *given = Some(program);
            match answer.await {
                Ok(Answer::Told(outcome)) => return outcome,
                Ok(Answer::Unsent) => {}
                Err(_) => return Outcome::Failed("the program exited during the job".to_owned()),
            }
        }
        Outcome::Declined("the program does not read its standard input".to_owned())
    }

    /// The program that accepts jobs now. One that accepts no more keeps running until it has
    /// answered its pending jobs.
    async fn program(&self) -> std::io::Result<Arc<Running>> {
        let mut running = self.running.lock().await;
        if let Some(program) = running.as_ref().filter(|program| program.hand.is_open()) {
            if !program.hand.is_stuck(self.limit) {
                return Ok(Arc::clone(program));
            }
            program.end();
        }
        let program = Running::start(&self.command, &self.place, &self.environment, &self.log)?;
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

impl Handler for Persistent {
    async fn work(&self, job: Job) -> Outcome {
        let (began, mut given) = (Instant::now(), None);
        let outcome = self.outcome(&job, &mut given);
        let Some(until) = began.checked_add(job.time_limit) else { return outcome.await };
        if let Ok(outcome) = timeout_at(until, outcome).await {
            return outcome;
        }
        match given {
            // A program that missed its time limit may never answer again.
            Some(program) if self.is_own_limit(&job, began) => program.end(),
            Some(_) => {}
            None => {
                return Outcome::Declined(
                    "the program still works on a job with the same id".to_owned(),
                );
            }
        }
        Outcome::Failed(over(job.time_limit))
    }

    async fn close(&self) {
        if let Some(program) = self.running.lock().await.take() {
            program.end();
        }
    }
}
