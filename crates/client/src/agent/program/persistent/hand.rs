//! What a program that stays has in hand: the jobs it was given and has not answered.

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

/// What becomes of a job that was given.
#[derive(Debug)]
pub(super) enum Answer {
    Told(Outcome),
    /// It never reached the program.
    Unsent,
}

/// The jobs of one program.
#[derive(Debug)]
pub(super) struct Hand {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Debug)]
struct Held {
    jobs: HashMap<String, Entry>,
    /// Whether it takes more.
    is_open: bool,
    /// When it last said something.
    heard: Instant,
}

/// A job that was given. Nobody may wait for it any more: its answer is awaited all the same, so
/// that it is not taken for that of the next job of this name.
#[derive(Debug)]
struct Entry {
    answer: oneshot::Sender<Answer>,
    since: Instant,
    log: Option<JobLog>,
}

/// The log of a job, as long as there is room.
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
        // A log that cannot be written is no reason to stop the work.
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

    /// Takes a job in hand as soon as no other of its name is; nothing if no more are taken.
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

    /// Something was said about a job.
    pub(super) fn answer(&self, id: &str, answer: Answer) {
        if let Some(entry) = self.lock().jobs.remove(id) {
            // Whoever does not wait any more does not want to know.
            let _ = entry.answer.send(answer);
        }
        self.changed.notify_waiters();
    }

    /// The program has said something, whatever it was.
    pub(super) fn hear(&self) {
        self.lock().heard = Instant::now();
    }

    /// Takes no more jobs; what is in hand may still be answered.
    pub(super) fn close(&self) {
        self.lock().is_open = false;
        self.changed.notify_waiters();
    }

    /// Nothing more will be answered. Whoever waits is told this, or that the program has ended.
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

    /// Whether it has had a job for longer than one may take and said nothing since.
    pub(super) fn is_stuck(&self, limit: Duration) -> bool {
        let held = self.lock();
        let silent = |entry: &Entry| held.heard <= entry.since && entry.since.elapsed() >= limit;
        held.jobs.values().any(|entry| entry.answer.is_closed() && silent(entry))
    }

    /// A line of its log goes to the logs of all jobs that are in hand.
    pub(super) fn log(&self, line: &str, tell: &Log) {
        let mut held = self.lock();
        let mut waited_for: Vec<_> =
            held.jobs.iter_mut().filter(|(_, entry)| !entry.answer.is_closed()).collect();
        for (_, entry) in &mut waited_for {
            if let Some(log) = &mut entry.log {
                log.add(line);
            }
        }
        // Whoever watches reads it once, and of whose job only where that is certain.
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
