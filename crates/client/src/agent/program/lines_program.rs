//! A program that is run once per job and talks with its agent in JSON lines, from the job to the
//! result: see the module `lines`.
//!
//! It gets the job, the answers to its questions and further messages on its standard input, which
//! ends after its result. A program whose agent was killed sees the end of its input; the agent runs it
//! again from the start, and gives it the answers it had.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::conversation::Conversation;
use super::environment::Environment;
use super::exec::outcome_of_status;
use super::pending::{JobLog, JobReply};
use super::process_group::GRACE;
use super::running::{ProgramStart, RunningProgram};
use super::tail::LogSink;
use crate::agent::handler::Handler;
use crate::agent::handlers::time_limit_message;
use crate::agent::job::{Job, Outcome};
use crate::agent::record::JobRecords;

/// A handler that runs a command for each job and talks with it in JSON lines.
pub struct LinesProgram {
    command: String,
    working_dir: PathBuf,
    environment: Environment,
    log: LogSink,
    records: Option<JobRecords>,
}

impl LinesProgram {
    /// Runs `command`, a shell command line, in the current directory.
    pub fn new(command: impl Into<String>, log: LogSink) -> Self {
        Self {
            command: command.into(),
            working_dir: PathBuf::from("."),
            environment: Environment::default(),
            log,
            records: None,
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

    /// Adds its standard error to the log of the job.
    pub fn log_to(mut self, records: JobRecords) -> Self {
        self.records = Some(records);
        self
    }

    async fn run(&self, job: &Job) -> Outcome {
        let start = ProgramStart {
            command: &self.command,
            working_dir: &self.working_dir,
            environment: &self.environment,
            log: &self.log,
            only: Some(&job.id),
        };
        let cannot_run = || Outcome::Declined("the program cannot be run".to_owned());
        let Ok(program) = RunningProgram::start(&start) else { return cannot_run() };
        let log = || Some(JobLog::new(self.records.as_ref()?.open_log(job).ok()?));
        let Some(replies) = program.pending.add(&job.id, log).await else { return cannot_run() };
        program.send(job);
        let outcome = match Conversation::new(&program, job, true).run(replies).await {
            Some(JobReply::Outcome(outcome)) => outcome,
            // It has exited without a result, or does not read its job.
            Some(JobReply::NotSent) | None => {
                let exit = timeout(GRACE, program.exited()).await.ok().flatten();
                outcome_of_status(exit.and_then(|status| status.code()).unwrap_or_default(), None)
            }
        };
        program.finish();
        outcome
    }
}

impl Handler for LinesProgram {
    async fn work(&self, job: Job) -> Outcome {
        let limit_reached = job.dialogue.limit_reached(job.time_limit, Duration::ZERO);
        tokio::select! {
            biased;
            outcome = self.run(&job) => outcome,
            // The program is terminated with its run.
            () = limit_reached => Outcome::Failed(time_limit_message(job.time_limit)),
        }
    }
}
