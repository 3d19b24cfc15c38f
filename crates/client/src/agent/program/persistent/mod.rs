//! A persistent program: it reads one job per line and writes one result per line of its
//! own, `{"job_id","output"}`, `{"job_id","error"}` or `{"job_id","decline"}`, in any order.
//!
//! It is started with the first job, and again after it ended, or reads no more, or took longer than
//! its skill allows. What it had in hand when it ended has failed.

mod hand;
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
use crate::agent::workshop::over;
use crate::clock;
use hand::{Answer, JobLog};
#[cfg(any(test, feature = "testkit"))]
pub use line::told;
use running::Running;

/// How often a program is started for one job, if it reads none.
const TRIES_MAX: usize = 3;

/// Gives jobs to a program that stays.
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
    /// Gives jobs to `command`, a line for the shell, run in the current directory.
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

    /// Runs it in another directory.
    pub fn within(mut self, place: impl Into<PathBuf>) -> Self {
        self.place = place.into();
        self
    }

    /// Gives it more variables of this process's environment.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Keeps what it writes to its standard error in the log of every job that is in hand then.
    pub fn logging_to(mut self, records: Records) -> Self {
        self.records = Some(records);
        self
    }

    /// How long the skill gives it for one job. A requester may have less time: that is over without
    /// an answer, and the program goes on for the others. One that has said nothing for this long is
    /// restarted for the next job.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The outcome of a job, however long it takes. `given` becomes the program that has it.
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

    /// The program that takes jobs now. One that takes no more goes on until it has answered what it
    /// has in hand.
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

    /// Whether the time that is over was the skill's, and not only a requester's.
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
            // Whoever has not answered in time may never answer again.
            Some(program) if self.is_own_limit(&job, began) => program.end(),
            Some(_) => {}
            None => {
                return Outcome::Declined(
                    "the program still works on a job of the same id".to_owned(),
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
