//! The pending jobs of a persistent program: sent to it and not yet answered.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::super::LOG_MAX;
use super::super::tail::Log;
use crate::agent::outcome::Outcome;

/// The reply to a pending job.
#[derive(Debug)]
pub(super) enum Answer {
    Told(Outcome),
    /// The job never reached the program.
    Unsent,
}

/// The pending jobs of one program.
#[derive(Debug)]
pub(super) struct Hand {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Debug)]
struct Held {
    jobs: HashMap<String, Entry>,
    /// Whether it accepts more jobs.
    is_open: bool,
    /// When it last wrote a line.
    heard: Instant,
}

/// A pending job. It stays here even if its caller no longer waits, so that a late reply is not
/// matched to the next job with the same id.
#[derive(Debug)]
struct Entry {
    answer: oneshot::Sender<Answer>,
    since: Instant,
    log: Option<JobLog>,
}

/// The log of a job, up to its maximum size.
#[derive(Debug)]
pub(super) struct JobLog {
    file: File,
    room: u64,
}

impl JobLog {
    pub(super) fn new(file: File) -> Self {
        Self { file, room: LOG_MAX }
    }

    fn add(&mut self, line: &str) {
        let line = format!("{line}\n");
        let rest = self.room.checked_sub(line.len() as u64);
        // A log that cannot be written does not stop the work.
        if rest.is_some() && self.file.write_all(line.as_bytes()).is_ok() {
            self.room = rest.unwrap_or_default();
        }
    }
}

impl Hand {
    pub(super) fn new() -> Self {
        let held = Held { jobs: HashMap::new(), is_open: true, heard: Instant::now() };
        Self { held: Mutex::new(held), changed: Notify::new() }
    }

    /// Adds a job as soon as no other job with its id is pending; `None` if closed.
    pub(super) async fn take(
        &self,
        id: &str,
        log: impl FnOnce() -> Option<JobLog>,
    ) -> Option<oneshot::Receiver<Answer>> {
        loop {
            let changed = self.changed.notified();
            {
                let mut held = self.lock();
                if !held.is_open {
                    return None;
                }
                if !held.jobs.contains_key(id) {
                    let (answer, told) = oneshot::channel();
                    let entry = Entry { answer, since: Instant::now(), log: log() };
                    held.jobs.insert(id.to_owned(), entry);
                    return Some(told);
                }
            }
            changed.await;
        }
    }

    /// Resolves a job with the program's reply.
    pub(super) fn answer(&self, id: &str, answer: Answer) {
        if let Some(entry) = self.lock().jobs.remove(id) {
            // Fails if the caller no longer waits.
            let _ = entry.answer.send(answer);
        }
        self.changed.notify_waiters();
    }

    /// The program wrote a line.
    pub(super) fn hear(&self) {
        self.lock().heard = Instant::now();
    }

    /// Accepts no more jobs; pending ones can still be answered.
    pub(super) fn close(&self) {
        self.lock().is_open = false;
        self.changed.notify_waiters();
    }

    /// Fails all pending jobs, as declined with this reason, or as ended with the program.
    pub(super) fn drop_all(&self, why: Option<&str>) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        for (_, entry) in jobs {
            if let Some(why) = why {
                let _ = entry.answer.send(Answer::Told(Outcome::Declined(why.to_owned())));
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().is_open
    }

    /// Whether a job exceeded its time limit and the program has written nothing since it got it.
    pub(super) fn is_stuck(&self, limit: Duration) -> bool {
        let held = self.lock();
        let silent = |entry: &Entry| held.heard <= entry.since && entry.since.elapsed() >= limit;
        held.jobs.values().any(|entry| entry.answer.is_closed() && silent(entry))
    }

    /// Adds a line of the program's log to the logs of all pending jobs.
    pub(super) fn log(&self, line: &str, tell: &Log) {
        let mut held = self.lock();
        let mut waited_for: Vec<_> =
            held.jobs.iter_mut().filter(|(_, entry)| !entry.answer.is_closed()).collect();
        for (_, entry) in &mut waited_for {
            if let Some(log) = &mut entry.log {
                log.add(line);
            }
        }
        // The log sink gets the line once, with a job id only if exactly one job is pending.
        let only = match waited_for.as_slice() {
            [(id, _)] => id.as_str(),
            _ => "",
        };
        tell(only, line);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
