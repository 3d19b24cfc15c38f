//! What the clients remember: every operation they sent, and whether they were told that it is done.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// What is known about one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<T> {
    /// Sent; no whole answer came back.
    Unknown,
    /// Answered 2xx, with this to remember.
    Done(T),
}

/// A payment and, once it is done, the answer word for word.
#[derive(Clone, Debug)]
pub struct Payment {
    pub cents: u64,
    pub fate: Fate<String>,
}

/// A job and what was said about it.
#[derive(Clone, Debug)]
pub struct Job {
    pub posted: Fate<String>,
    /// Whether it went well, and whether the report was taken.
    pub reported: Option<(bool, Fate<()>)>,
    pub cancelled: Option<Fate<()>>,
    /// Once it has ended: what was paid, in cents.
    pub ended: Option<u64>,
}

/// One page for each kind of operation, by the ids the clients chose.
#[derive(Debug, Default)]
pub struct Pages {
    /// Registrations, with the key that was given.
    pub agents: BTreeMap<String, Fate<String>>,
    pub payments: BTreeMap<String, Payment>,
    pub jobs: BTreeMap<String, Job>,
    /// What was in the book before this round; it has been checked.
    pub settled: (Vec<String>, Vec<String>),
}

/// The book all clients write in.
#[derive(Debug, Default)]
pub struct Book(Mutex<Pages>);

impl Book {
    pub fn open(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().expect("no client panicked")
    }
}

impl Pages {
    /// How many operations are known to be done.
    pub fn done(&self) -> usize {
        let agents = self.agents.values().filter(|fate| fate.is_done()).count();
        let payments = self.payments.values().filter(|one| one.fate.is_done()).count();
        agents + payments + self.jobs.values().filter(|job| job.posted.is_done()).count()
    }
}

impl<T> Fate<T> {
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}
