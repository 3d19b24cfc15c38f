//! What the clients record: every operation they sent, and whether it was acknowledged.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// What is known about one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<T> {
    /// Sent, without a complete response.
    Unknown,
    /// Answered 2xx, with this result.
    Done(T),
}

/// A payment and, once it is acknowledged, the response verbatim.
#[derive(Clone, Debug)]
pub struct Payment {
    pub cents: u64,
    pub fate: Fate<String>,
}

/// A job and the operations on it.
#[derive(Clone, Debug)]
pub struct Job {
    pub posted: Fate<String>,
    /// Whether the work succeeded, and whether the report was acknowledged.
    pub reported: Option<(bool, Fate<()>)>,
    pub cancelled: Option<Fate<()>>,
    /// Once it has ended: the amount paid, in cents.
    pub ended: Option<u64>,
}

/// One map per kind of operation, by the ids the clients chose.
#[derive(Debug, Default)]
pub struct Pages {
    /// Registrations, with the issued key.
    pub agents: BTreeMap<String, Fate<String>>,
    pub payments: BTreeMap<String, Payment>,
    pub jobs: BTreeMap<String, Job>,
    /// Entries from before this round, which are already checked.
    pub settled: (Vec<String>, Vec<String>),
}

/// The record that all clients share.
#[derive(Debug, Default)]
pub struct Book(Mutex<Pages>);

impl Book {
    pub fn open(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().expect("no client panicked")
    }
}

impl Pages {
    /// The number of acknowledged operations.
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
