//! A persistent program: it reads one job per line and writes one result per line,
//! `{"job_id","output"}`, `{"job_id","error"}`, `{"job_id","decline"}` or `{"job_id","refuse"}`, in any
//! order, and before it what the module `lines` describes.
//!
//! It starts with the first job. It is restarted after it exits, stops reading, or exceeds the time
//! limit of its skill. Jobs that are pending when it exits have failed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::conversation::Conversation;
use super::environment::Environment;
use super::pending::{JobLog, JobReply};
use super::running::{ProgramStart, RunningProgram};
use super::tail::LogSink;
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
    reads_all: bool,
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
            reads_all: false,
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

    /// The program also reads messages of requesters and cancellations, and not only jobs and the
    /// answers to its questions.
    pub fn reads_messages(mut self) -> Self {
        self.reads_all = true;
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
            let Some(replies) = program.pending.add(&job.id, log).await else { continue };
            program.send(job);
            *assigned = Some(Arc::clone(&program));
            match Conversation::new(&program, job, self.reads_all).run(replies).await {
                Some(JobReply::Outcome(outcome)) => return outcome,
                Some(JobReply::NotSent) => {}
                None => return Outcome::Failed("the program exited during the job".to_owned()),
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
        let start = ProgramStart {
            command: &self.command,
            working_dir: &self.working_dir,
            environment: &self.environment,
            log: &self.log,
            only: None,
        };
        let program = Arc::new(RunningProgram::start(&start)?);
        *running = Some(Arc::clone(&program));
        Ok(program)
    }

    /// Whether the skill's time limit was exceeded, and not only the requester's deadline.
    fn is_own_limit(&self, job: &Job, began: Instant) -> bool {
        let is_due = job.deadline.is_some_and(|deadline| clock::now() >= deadline);
        !is_due || began.elapsed().saturating_sub(job.dialogue.waited()) >= self.limit
    }
}

impl Handler for PersistentProgram {
    async fn work(&self, job: Job) -> Outcome {
        let (began, mut assigned) = (Instant::now(), None);
        let limit_reached = job.dialogue.limit_reached(job.time_limit, Duration::ZERO);
        tokio::select! {
            biased;
            outcome = self.outcome(&job, &mut assigned) => return outcome,
            () = limit_reached => {}
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
