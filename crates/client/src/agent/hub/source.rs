//! The jobs of an agent at a hub: one task per assignment, with its record on disk.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinError;
use tokio::time::{Instant, timeout, timeout_at};

use super::HubWorker;
use super::calls::{self, DialogueItem, KnownAssignments, ReportReceipt, WorkResponse};
use super::dialogue::{DialogueStart, HubDialogue, KnownDialogue};
use super::event::{AgentEvent, EventCallback};
use crate::agent::dialogue::{Dialogue, RequesterInput};
use crate::agent::handlers::Handlers;
use crate::agent::job::{Job, Outcome};
use crate::agent::program;
use crate::agent::record::{AssignmentRef, FinishedJob, JobRecord, JobRecords};
use crate::call::{CallError, Hub};
use crate::worker::{self, WorkSource};

/// How many assignments end before old logs are pruned again.
const PRUNE_EVERY: u32 = 500;
/// How long running jobs may continue after shutdown. Then they are terminated, and killed two
/// seconds later.
const FINISH_TIME: Duration = Duration::from_millis(1_500);
/// Maximum time for the whole shutdown.
const SHUTDOWN_TIME: Duration = Duration::from_millis(4_500);
/// Timeout of one call to the hub, so that a call that hangs leaves time for the others.
const CALL_TIME: Duration = Duration::from_millis(500);

/// What the hub sends.
pub(super) enum HubEvent {
    /// The hub lists the agent as online.
    Online,
    /// New assignments, and those that were taken away.
    Work(WorkResponse),
}

type Tasks = worker::Tasks<AssignmentRef, ()>;

/// The assignments of one agent.
pub(super) struct HubSource {
    runner: JobRunner,
    start_event: Option<AgentEvent>,
    instance: Option<String>,
    /// Assignments that ended since the last prune.
    ended: u32,
    known: KnownAssignments,
    /// The dialogues of running jobs.
    dialogues: BTreeMap<AssignmentRef, Arc<HubDialogue>>,
    /// Whether the jobs left by an earlier run of this program were checked.
    orphans_ended: bool,
    /// When the shutdown must be over.
    shutdown_until: Instant,
}

impl HubSource {
    /// A source that updates `known`, the assignments the hub need not send again.
    pub(super) fn new(worker: &HubWorker, known: KnownAssignments) -> Self {
        let runner = JobRunner {
            hub: worker.hub.clone(),
            handlers: worker.handlers.clone(),
            records: worker.records.clone(),
            on_event: worker.on_event.clone(),
        };
        Self {
            runner,
            start_event: worker.start_event.clone(),
            instance: worker.instance.clone(),
            ended: 0,
            known,
            dialogues: BTreeMap::new(),
            orphans_ended: false,
            shutdown_until: Instant::now(),
        }
    }
}

impl WorkSource for HubSource {
    type Event = HubEvent;
    type Job = AssignmentRef;
    type End = ();

    async fn handle_event(&mut self, event: HubEvent, tasks: &mut Tasks) {
        match event {
            HubEvent::Online => {
                self.start_event.take().into_iter().for_each(|event| (self.runner.on_event)(event));
                self.recover(tasks);
            }
            HubEvent::Work(work) => self.handle_work(work, tasks),
        }
    }

    async fn handle_end(
        &mut self,
        assignment: AssignmentRef,
        _: Result<(), JoinError>,
        _: &mut Tasks,
    ) {
        self.end_dialogue(&assignment);
        // It stays in `known` until the hub removes it. Otherwise the hub would list an assignment
        // it still has as new, over and over.
        self.ended += 1;
        if self.ended == PRUNE_EVERY {
            // Old logs are pruned now and then, not only at startup.
            self.ended = 0;
            let _ = self.runner.records.prune(SystemTime::now());
        }
    }

    /// A hub that cannot be reached notices by itself that the agent is gone; one that no longer
    /// knows the agent needs no report.
    async fn begin_shutdown(&mut self, _: &mut Tasks, result: &Result<(), CallError>) -> Duration {
        self.shutdown_until = Instant::now() + SHUTDOWN_TIME;
        if result.is_err() {
            return Duration::ZERO;
        }
        // This comes first: a returned job must not be assigned to this agent again.
        let _ = timeout(CALL_TIME, calls::set_status(&self.runner.hub, "offline")).await;
        // Jobs that wait for a permit are not started any more.
        self.runner.handlers.stop_accepting();
        FINISH_TIME
    }

    /// Returns the rest and unregisters. Programs are ended whatever the hub responds.
    async fn end_shutdown(
        &mut self,
        unfinished: Vec<AssignmentRef>,
        result: &Result<(), CallError>,
    ) {
        if result.is_err() {
            return;
        }
        let returned = timeout_at(self.shutdown_until, self.return_all(&unfinished));
        let programs_ended = async {
            self.runner.handlers.close_handlers().await;
            program::wait_for_groups().await;
        };
        let _ = tokio::join!(returned, programs_ended);
    }
}

impl HubSource {
    /// Checks the records left by an earlier run of this program. Finished jobs are reported now,
    /// since the hub may not have received their results. Unfinished ones continue when the hub
    /// lists them.
    fn recover(&self, tasks: &mut Tasks) {
        let _ = self.runner.records.prune(SystemTime::now());
        for (assignment, record) in self.runner.records.list_open().unwrap_or_default() {
            if let Some(finished) = record.finished() {
                let (runner, reported) = (self.runner.clone(), assignment.clone());
                self.spawn(tasks, assignment, async move {
                    runner.report(reported, &record, finished).await;
                });
            }
        }
    }

    /// Applies the hub's list of new and removed assignments.
    fn handle_work(&mut self, mut work: WorkResponse, tasks: &mut Tasks) {
        self.known.remove(&work.gone);
        self.cancel(&work.gone, tasks);
        for answer in std::mem::take(&mut work.answers) {
            self.pass_on(answer, HubDialogue::take_answer);
        }
        for message in std::mem::take(&mut work.messages) {
            self.pass_on(message, HubDialogue::take_message);
        }
        let has_more = work.more;
        let jobs = work.into_jobs();
        self.end_orphans(&jobs, has_more, tasks);
        for (mut job, start) in jobs {
            let assignment = AssignmentRef { id: job.id.clone(), epoch: job.epoch };
            if tasks.jobs().any(|running| *running == assignment) {
                continue;
            }
            let (id, skill) = (job.id.clone(), job.skill.clone());
            (self.runner.on_event)(AgentEvent::JobStarted { job: id, skill });
            let runner = self.runner.clone();
            let (hub, on_event) = (runner.hub.clone(), runner.on_event.clone());
            let dialogue = HubDialogue::new(hub, assignment.clone(), on_event, start);
            let dialogue = Arc::new(dialogue);
            job.dialogue = Dialogue::at_hub(Arc::clone(&dialogue));
            self.known.add(assignment.clone(), dialogue.known());
            self.dialogues.insert(assignment.clone(), dialogue);
            tasks.spawn(assignment, async move { runner.run(job).await });
        }
    }

    /// Passes an answer or a message on to its job, once.
    fn pass_on(&self, item: DialogueItem, take: fn(&HubDialogue, u32, RequesterInput)) {
        let assignment = AssignmentRef { id: item.job_id.clone(), epoch: item.epoch };
        let Some(dialogue) = self.dialogues.get(&assignment) else { return };
        dialogue.set_lease(item.lease_until());
        let number = item.number;
        take(dialogue, number, item.into_input());
        self.known.add(assignment, dialogue.known());
    }

    fn end_dialogue(&mut self, assignment: &AssignmentRef) {
        if let Some(dialogue) = self.dialogues.remove(assignment) {
            dialogue.end();
        }
    }

    /// Ends, once, the jobs that an earlier run of this program started and that the hub has
    /// reassigned.
    fn end_orphans(&mut self, jobs: &[(Job, DialogueStart)], has_more: bool, tasks: &mut Tasks) {
        // An assignment that was not listed may still be ours.
        if self.orphans_ended || has_more {
            return;
        }
        self.orphans_ended = true;
        for (assignment, record) in self.runner.records.list_open().unwrap_or_default() {
            let AssignmentRef { id, epoch } = &assignment;
            let is_listed = jobs.iter().any(|(job, _)| job.id == *id && job.epoch == *epoch);
            let is_running = tasks.jobs().any(|running| running.id == *id);
            // A hub's epochs start at 1. Epoch 0 is a peer's job, which the hub does not know.
            if *epoch > 0 && !is_listed && !is_running {
                self.spawn(tasks, assignment, async move {
                    if program::end_run(record.path()).await.is_ok() {
                        close_record(&record);
                    }
                });
            }
        }
    }

    /// Cancels assignments that the hub took away.
    fn cancel(&mut self, gone: &[String], tasks: &mut Tasks) {
        let cancelled = tasks.cancel(|assignment| {
            // If its outcome is being reported or was received, it ends by itself.
            let is_unfinished = || matches!(self.find_record(assignment), Some((_, None)));
            gone.contains(&assignment.id) && is_unfinished()
        });
        for assignment in cancelled {
            self.end_dialogue(&assignment);
            if let Some((record, _)) = self.find_record(&assignment) {
                close_record(&record);
            }
            (self.runner.on_event)(AgentEvent::JobCancelled { job: assignment.id });
        }
    }

    fn spawn(
        &self,
        tasks: &mut Tasks,
        assignment: AssignmentRef,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        self.known.add(assignment.clone(), KnownDialogue::default());
        tasks.spawn(assignment, work);
    }

    /// The record of an assignment and its result, if it has finished.
    fn find_record(&self, assignment: &AssignmentRef) -> Option<(JobRecord, Option<FinishedJob>)> {
        let open = self.runner.records.list_open().unwrap_or_default();
        let (_, record) = open.into_iter().find(|(of, _)| of == assignment)?;
        let finished = record.finished();
        Some((record, finished))
    }

    /// Returns the remaining assignments, and all that the hub has given the agent in the meantime.
    /// Then unregisters.
    async fn return_all(&self, unfinished: &[AssignmentRef]) {
        for assignment in unfinished {
            let _ = timeout(CALL_TIME, self.return_assignment(assignment)).await;
        }
        let (hub, instance) = (&self.runner.hub, self.instance.as_deref());
        let none = KnownAssignments::default();
        // Unregistering would fail assignments that remain, so then being offline is enough.
        while let Ok(work) = calls::fetch_work(hub, instance, &none, 0).await {
            if work.jobs.is_empty() {
                let _ = calls::unregister(hub).await;
                return;
            }
            for job in &work.jobs {
                let assignment = AssignmentRef { id: job.id.clone(), epoch: job.epoch };
                let _ = timeout(CALL_TIME, self.return_assignment(&assignment)).await;
            }
        }
    }

    /// Reports the outcome of an assignment, or declines it.
    async fn return_assignment(&self, assignment: &AssignmentRef) {
        let record = self.find_record(assignment);
        let finished = record.as_ref().and_then(|(_, finished)| finished.clone());
        let finished = finished.unwrap_or_else(|| {
            let outcome = Outcome::Declined("the agent is shutting down".to_owned());
            FinishedJob { outcome, took_ms: 0 }
        });
        let reported = calls::report_once(&self.runner.hub, assignment, &finished).await;
        if let (Ok(_), Some((record, _))) = (reported, record) {
            close_record(&record);
        }
    }
}

/// Runs one assignment from start to end.
#[derive(Clone)]
struct JobRunner {
    hub: Hub,
    handlers: Handlers,
    records: JobRecords,
    on_event: EventCallback,
}

impl JobRunner {
    /// Does a job and reports its outcome to the hub.
    async fn run(self, job: Job) {
        let assignment = AssignmentRef { id: job.id.clone(), epoch: job.epoch };
        let record = match self.begin(&job).await {
            Ok(record) => record,
            Err(error) => {
                // Work without a record is not started, because it might be done twice.
                self.report_job_error(&assignment, "cannot write the job record", &error);
                let why = format!("the agent cannot write job records: {}", error.kind());
                let finished = FinishedJob { outcome: Outcome::Declined(why), took_ms: 0 };
                let event = self.report_event(assignment, &finished).await;
                return (self.on_event)(event);
            }
        };
        let finished = match record.finished() {
            Some(finished) => finished,
            None => {
                let began = Instant::now();
                let outcome = self.handlers.run_job(job).await;
                let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                let finished = FinishedJob { outcome, took_ms };
                if let Err(error) = record.write_finished(&finished) {
                    self.report_job_error(&assignment, "cannot write the result to disk", &error);
                }
                finished
            }
        };
        self.report(assignment, &record, finished).await;
    }

    fn report_job_error(&self, assignment: &AssignmentRef, what: &'static str, error: &io::Error) {
        let (job, why) = (assignment.id.clone(), error.to_string());
        (self.on_event)(AgentEvent::JobError { job, what, why });
    }

    /// Opens the record of a job. First ends what still runs of an earlier assignment, since its
    /// outcome would be refused.
    async fn begin(&self, job: &Job) -> io::Result<JobRecord> {
        let own = self.records.open_record(job)?;
        for (assignment, record) in self.records.list_open()? {
            // Another record for this assignment belongs to a job that had different content then.
            if assignment.id == job.id && record != own {
                program::end_run(record.path()).await?;
                record.close()?;
            }
        }
        Ok(own)
    }

    /// Reports the outcome of an assignment to the hub, and closes its record.
    async fn report(self, assignment: AssignmentRef, record: &JobRecord, finished: FinishedJob) {
        let event = self.report_event(assignment, &finished).await;
        // A result the hub did not accept is kept: the key may work again after the next start.
        if !matches!(event, AgentEvent::JobError { .. }) {
            close_record(record);
        }
        (self.on_event)(event);
    }

    async fn report_event(&self, assignment: AssignmentRef, finished: &FinishedJob) -> AgentEvent {
        let reported = calls::report_result(&self.hub, &assignment, finished, &self.on_event).await;
        let job = assignment.id;
        match reported {
            Ok(ReportReceipt { outcome, paid, repeated }) => {
                AgentEvent::JobEnded { job, outcome, paid, repeated }
            }
            // The assignment was taken away, or another outcome was reported before.
            Err(error @ CallError::Refused { status: 400 | 404 | 409 | 413 | 422, .. }) => {
                AgentEvent::ResultRefused { job, reason: error.to_string() }
            }
            Err(error) => {
                let what = "the hub did not accept a result";
                AgentEvent::JobError { job, what, why: error.to_string() }
            }
        }
    }
}

/// Closes a record. If that fails, it is reported again after the next start, and refused.
fn close_record(record: &JobRecord) {
    let _ = record.close();
}
