//! The pending jobs of a persistent program: sent to it and not yet answered.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use super::LOG_MAX;
use super::conversation::Replies;
use super::lines::ProgramReport;
use super::tail::LogSink;
use crate::agent::job::Outcome;
use crate::worker::lock_ignoring_poison;

/// Reports of one job that wait to be passed on.
const REPORTS_MAX: usize = 1_000;

/// The reply to a pending job.
#[derive(Debug)]
pub(super) enum JobReply {
    Outcome(Outcome),
    /// The job never reached the program.
    NotSent,
}

/// The pending jobs of one program.
#[derive(Debug)]
pub(super) struct PendingJobs {
    state: Mutex<PendingState>,
    changed: Notify,
}

#[derive(Debug)]
struct PendingState {
    jobs: HashMap<String, PendingJob>,
    /// Whether it accepts more jobs.
    is_open: bool,
    /// When it last wrote a line.
    last_activity: Instant,
}

/// A pending job. It stays here even if its caller no longer waits, so that a late reply is not
/// matched to the next job with the same id.
#[derive(Debug)]
struct PendingJob {
    answer: oneshot::Sender<JobReply>,
    reports: mpsc::Sender<ProgramReport>,
    since: Instant,
    log: Option<JobLog>,
}

/// The log of a job, up to its maximum size.
#[derive(Debug)]
pub(super) struct JobLog {
    file: File,
    bytes_left: u64,
}

impl JobLog {
    pub(super) fn new(file: File) -> Self {
        Self { file, bytes_left: LOG_MAX }
    }

    fn add(&mut self, line: &str) {
        let line = format!("{line}\n");
        let rest = self.bytes_left.checked_sub(line.len() as u64);
        // A log that cannot be written does not stop the work.
        if rest.is_some() && self.file.write_all(line.as_bytes()).is_ok() {
            self.bytes_left = rest.unwrap_or_default();
        }
    }
}

impl PendingJobs {
    pub(super) fn new() -> Self {
        let state =
            PendingState { jobs: HashMap::new(), is_open: true, last_activity: Instant::now() };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Adds a job as soon as no other job with its id is pending; `None` if closed.
    pub(super) async fn add(
        &self,
        id: &str,
        log: impl FnOnce() -> Option<JobLog>,
    ) -> Option<Replies> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                if !state.is_open {
                    return None;
                }
                if !state.jobs.contains_key(id) {
                    let (answer, reply) = oneshot::channel();
                    let (sender, reports) = mpsc::channel(REPORTS_MAX);
                    let (since, log) = (Instant::now(), log());
                    let entry = PendingJob { answer, reports: sender, since, log };
                    state.jobs.insert(id.to_owned(), entry);
                    return Some(Replies { reports, reply });
                }
            }
            changed.await;
        }
    }

    /// Passes a report of the program on to its job. One that reports faster than its hub takes it
    /// has failed: what it says must not fill the memory.
    pub(super) fn report(&self, id: &str, report: ProgramReport) {
        let sent = self.lock().jobs.get(id).map(|entry| entry.reports.try_send(report));
        if let Some(Err(mpsc::error::TrySendError::Full(_))) = sent {
            let why = "the program reports faster than the hub takes it";
            self.resolve(id, JobReply::Outcome(Outcome::Failed(why.to_owned())));
        }
    }

    /// Resolves a job with the program's reply.
    pub(super) fn resolve(&self, id: &str, answer: JobReply) {
        if let Some(entry) = self.lock().jobs.remove(id) {
            // Fails if the caller no longer waits.
            let _ = entry.answer.send(answer);
        }
        self.changed.notify_waiters();
    }

    /// The program wrote a line.
    pub(super) fn record_activity(&self) {
        self.lock().last_activity = Instant::now();
    }

    /// Accepts no more jobs; pending ones can still be answered.
    pub(super) fn close(&self) {
        self.lock().is_open = false;
        self.changed.notify_waiters();
    }

    /// Fails all pending jobs, as declined with this reason, or as ended with the program.
    pub(super) fn fail_all(&self, why: Option<&str>) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        for (_, entry) in jobs {
            if let Some(why) = why {
                let _ = entry.answer.send(JobReply::Outcome(Outcome::Declined(why.to_owned())));
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().is_open
    }

    /// Whether a job exceeded its time limit and the program has written nothing since it got it.
    pub(super) fn is_stuck(&self, limit: Duration) -> bool {
        let state = self.lock();
        let silent = |entry: &PendingJob| {
            state.last_activity <= entry.since && entry.since.elapsed() >= limit
        };
        state.jobs.values().any(|entry| entry.answer.is_closed() && silent(entry))
    }

    /// Adds a line of the program's log to the logs of all pending jobs.
    pub(super) fn log_line(&self, line: &str, log: &LogSink) {
        let mut state = self.lock();
        let mut awaited: Vec<_> =
            state.jobs.iter_mut().filter(|(_, entry)| !entry.answer.is_closed()).collect();
        for (_, entry) in &mut awaited {
            if let Some(job_log) = &mut entry.log {
                job_log.add(line);
            }
        }
        // The log sink gets the line once, with a job id only if exactly one job is pending.
        let only = match awaited.as_slice() {
            [(id, _)] => id.as_str(),
            _ => "",
        };
        log(only, line);
    }

    fn lock(&self) -> MutexGuard<'_, PendingState> {
        lock_ignoring_poison(&self.state)
    }
}
