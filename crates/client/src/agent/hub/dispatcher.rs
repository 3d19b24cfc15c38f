//! Dispatches assigned jobs: one task per job, with its record on disk.

use std::collections::BTreeMap;
use std::io;
use std::time::{Instant, SystemTime};

use tokio::task::{AbortHandle, JoinSet};

use super::event::{AgentEvent, EventCallback};
use super::report::{self, ReportReceipt};
use super::wire::{KnownAssignments, WorkResponse};
use crate::agent::handlers::Handlers;
use crate::agent::job::Job;
use crate::agent::outcome::Outcome;
use crate::agent::program;
use crate::agent::record::{AssignmentRef, FinishedJob, JobRecord, JobRecords};
use crate::call::{CallError, Hub};

/// How many assignments end before old logs are pruned again.
const PRUNE_EVERY: u32 = 500;

/// Dispatches the jobs of one agent.
pub(super) struct Dispatcher {
    runner: JobRunner,
    tasks: JoinSet<AssignmentRef>,
    running: BTreeMap<String, (u32, AbortHandle)>,
    /// Assignments that ended since the last prune.
    ended: u32,
    known_assignments: KnownAssignments,
    /// Whether the jobs left by an earlier run of this program were checked.
    orphans_ended: bool,
}

/// Runs one assignment from start to end.
#[derive(Clone)]
struct JobRunner {
    hub: Hub,
    handlers: Handlers,
    records: JobRecords,
    on_event: EventCallback,
}

impl Dispatcher {
    /// Creates a dispatcher that updates `known`, the assignments the hub need not send again.
    pub(super) fn new(
        hub: Hub,
        workshop: Handlers,
        records: JobRecords,
        known: KnownAssignments,
        tell: EventCallback,
    ) -> Self {
        Self {
            runner: JobRunner { hub, handlers: workshop, records, on_event: tell },
            tasks: JoinSet::new(),
            running: BTreeMap::new(),
            ended: 0,
            known_assignments: known,
            orphans_ended: false,
        }
    }

    /// Checks the records left by an earlier run of this program. Finished jobs are reported now,
    /// since the hub may not have received their results. Unfinished ones continue when the hub
    /// lists them.
    pub(super) fn recover(&mut self) {
        let _ = self.runner.records.prune(SystemTime::now());
        for (turn, record) in self.runner.records.list_open().unwrap_or_default() {
            if let Some(ended) = record.finished() {
                let record_writer = self.runner.clone();
                self.spawn(turn.clone(), async move {
                    record_writer.report(turn, &record, ended).await
                });
            }
        }
    }

    /// Applies the hub's list of new and removed assignments. Returns whether the next poll
    /// differs.
    pub(super) fn handle_work(&mut self, work: WorkResponse) -> bool {
        let (gone, more) = (work.gone.clone(), work.more);
        let mut is_news = self.known_assignments.remove(&gone);
        self.cancel(&gone);
        let jobs = work.into_jobs();
        self.end_orphans(&jobs, more);
        for job in jobs {
            let turn = AssignmentRef { id: job.id.clone(), epoch: job.epoch };
            if self.is_running(&turn) {
                continue;
            }
            (self.runner.on_event)(AgentEvent::JobStarted {
                job: job.id.clone(),
                skill: job.skill.clone(),
            });
            let record_writer = self.runner.clone();
            self.spawn(turn, async move { record_writer.run(job).await });
            is_news = true;
        }
        is_news
    }

    /// Ends, once, the jobs that an earlier run of this program started and that the hub has
    /// reassigned.
    fn end_orphans(&mut self, jobs: &[Job], more: bool) {
        // An assignment that was not listed may still be ours.
        if self.orphans_ended || more {
            return;
        }
        self.orphans_ended = true;
        for (turn, record) in self.runner.records.list_open().unwrap_or_default() {
            let named = jobs.iter().any(|job| job.id == turn.id && job.epoch == turn.epoch);
            // A hub's epochs start at 1. Epoch 0 is a peer's job, which the hub does not know.
            if turn.epoch > 0 && !named && !self.running.contains_key(&turn.id) {
                let work = async move {
                    if program::end_run(record.path()).await.is_ok() {
                        close_record(&record);
                    }
                };
                self.spawn(turn, work);
            }
        }
    }

    /// Waits until an assignment ends; `None` if none is running.
    pub(super) async fn next_finished(&mut self) -> Option<()> {
        let turn = self.tasks.join_next().await?;
        if let Ok(turn) = turn {
            // It stays in `known_assignments` until the hub removes it. Otherwise the hub would
            // list an assignment it still has as new, over and over.
            if self.is_running(&turn) {
                self.running.remove(&turn.id);
            }
            self.ended += 1;
            if self.ended == PRUNE_EVERY {
                // Old logs are pruned now and then, not only at startup.
                self.ended = 0;
                let _ = self.runner.records.prune(SystemTime::now());
            }
        }
        Some(())
    }

    /// Aborts everything that still runs, waits for it to stop, and returns what was running.
    pub(super) async fn abort_all(&mut self) -> Vec<AssignmentRef> {
        let running = std::mem::take(&mut self.running);
        self.tasks.shutdown().await;
        running.into_iter().map(|(id, (turn, _))| AssignmentRef { id, epoch: turn }).collect()
    }

    /// The record of an assignment and its result, if it has finished.
    pub(super) fn find_record(
        &self,
        turn: &AssignmentRef,
    ) -> Option<(JobRecord, Option<FinishedJob>)> {
        let open = self.runner.records.list_open().unwrap_or_default();
        let (_, record) = open.into_iter().find(|(of, _)| of == turn)?;
        let ended = record.finished();
        Some((record, ended))
    }

    /// Cancels assignments that the hub took away.
    fn cancel(&mut self, gone: &[String]) {
        for id in gone {
            let Some((turn, task)) = self.running.get(id) else { continue };
            let turn = AssignmentRef { id: id.clone(), epoch: *turn };
            // If its outcome is being reported or was received, it ends by itself.
            let Some((record, None)) = self.find_record(&turn) else { continue };
            task.abort();
            close_record(&record);
            self.running.remove(id);
            (self.runner.on_event)(AgentEvent::JobCancelled { job: id.clone() });
        }
    }

    fn is_running(&self, turn: &AssignmentRef) -> bool {
        self.running.get(&turn.id).is_some_and(|(number, _)| *number == turn.epoch)
    }

    fn spawn(&mut self, turn: AssignmentRef, work: impl Future<Output = ()> + Send + 'static) {
        let (id, number) = (turn.id.clone(), turn.epoch);
        self.known_assignments.add(turn.clone());
        let task = self.tasks.spawn(async move {
            work.await;
            turn
        });
        self.running.insert(id, (number, task));
    }
}

impl JobRunner {
    /// Does a job and reports its outcome to the hub.
    async fn run(self, job: Job) {
        let turn = AssignmentRef { id: job.id.clone(), epoch: job.epoch };
        let record = match self.begin(&job).await {
            Ok(record) => record,
            Err(error) => {
                // Work without a record is not started, because it might be done twice.
                let (job, what) = (turn.id.clone(), "cannot write the job record");
                (self.on_event)(AgentEvent::JobError { job, what, why: error.to_string() });
                let why = format!("the agent cannot write job records: {}", error.kind());
                let ended = FinishedJob { outcome: Outcome::Declined(why), took_ms: 0 };
                let told = self.report_event(turn, &ended).await;
                return (self.on_event)(told);
            }
        };
        let ended = match record.finished() {
            Some(ended) => ended,
            None => {
                let began = Instant::now();
                let outcome = self.handlers.run_job(job).await;
                let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                let ended = FinishedJob { outcome, took_ms };
                if let Err(error) = record.write_finished(&ended) {
                    let (job, what) = (turn.id.clone(), "cannot write the result to disk");
                    (self.on_event)(AgentEvent::JobError { job, what, why: error.to_string() });
                }
                ended
            }
        };
        self.report(turn, &record, ended).await;
    }

    /// Opens the record of a job. First ends what still runs of an earlier assignment, since its
    /// outcome would be refused.
    async fn begin(&self, job: &Job) -> io::Result<JobRecord> {
        let own = self.records.open_record(job)?;
        for (turn, record) in self.records.list_open()? {
            // Another record for this assignment belongs to a job that had different content then.
            if turn.id == job.id && record != own {
                program::end_run(record.path()).await?;
                record.close()?;
            }
        }
        Ok(own)
    }

    /// Reports the outcome of an assignment to the hub, and closes its record.
    async fn report(self, turn: AssignmentRef, record: &JobRecord, ended: FinishedJob) {
        let told = self.report_event(turn, &ended).await;
        // A result the hub did not accept is kept: the key may work again after the next start.
        if !matches!(told, AgentEvent::JobError { .. }) {
            close_record(record);
        }
        (self.on_event)(told);
    }

    async fn report_event(&self, turn: AssignmentRef, ended: &FinishedJob) -> AgentEvent {
        match report::report_result(&self.hub, &turn, ended, &self.on_event).await {
            Ok(ReportReceipt { outcome, paid, repeated }) => {
                AgentEvent::JobEnded { job: turn.id, outcome, paid, repeated }
            }
            // The assignment was taken away, or another outcome was reported before.
            Err(error @ CallError::Refused { status: 400 | 404 | 409 | 413 | 422, .. }) => {
                AgentEvent::ResultRefused { job: turn.id, reason: error.to_string() }
            }
            Err(error) => {
                let what = "the hub did not accept a result";
                AgentEvent::JobError { job: turn.id, what, why: error.to_string() }
            }
        }
    }
}

/// Closes a record. If that fails, it is reported again after the next start, and refused.
pub(super) fn close_record(record: &JobRecord) {
    let _ = record.close();
}
