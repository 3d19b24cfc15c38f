//! The presence of an online agent. It reports the status at every change and periodically, and the
//! reputation after every collaboration and every day.
//!
//! A [`Duty`] does so by itself for as long as it lives. Errors of the hub are retried.

mod state;
mod claims;
mod heartbeat;
mod backoff;
mod history;

use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::state::ErrorType;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::agent::Agent;
use crate::clock;
use crate::retry::Retry;
use state::{Book, Mood};
pub use history::{Done, Record};

/// How often reports are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// How long after the last report an idle or busy agent sends a heartbeat. The hub considers an
    /// agent offline after 90 seconds, and the spec asks for a report every 60.
    pub heartbeat: Duration,
    /// How long changes are collected before the next report; the spec allows 5 seconds.
    pub gather: Duration,
    /// How long after the last reputation claim the next periodic one is sent.
    pub reputation: Duration,
    /// The backoff when the hub cannot be reached. Retries never stop.
    pub retry: Retry,
}

impl Default for Rhythm {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(45),
            gather: Duration::from_millis(250),
            reputation: Duration::from_secs(24 * 3_600),
            retry: Retry {
                tries_max: u32::MAX,
                first: Duration::from_secs(1),
                longest: Duration::from_secs(30),
            },
        }
    }
}

/// Keeps an agent online until it is dropped.
#[derive(Debug)]
pub struct Duty {
    agent: Agent,
    book: Arc<Book>,
    tasks: [JoinHandle<()>; 2],
}

/// One running collaboration, counted until this is dropped.
#[derive(Debug)]
pub struct Busy(Arc<Book>);

/// Counts running collaborations.
#[derive(Clone, Debug)]
pub(super) struct Counter(Arc<Book>);

impl Agent {
    /// Goes online with the work history so far.
    pub fn on_duty(&self, rhythm: Rhythm, record: Record) -> Duty {
        let book = Arc::new(Book::new(record, clock::now()));
        let status = heartbeat::keep(self.clone(), Arc::clone(&book), rhythm);
        let claims = claims::keep(self.clone(), Arc::clone(&book), rhythm);
        let tasks = [tokio::spawn(status), tokio::spawn(claims)];
        Duty { agent: self.clone(), book, tasks }
    }
}

impl Duty {
    /// The agent.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Counts one more running collaboration until the guard is dropped. [`Duty::serve`] does so by
    /// itself.
    pub fn begin(&self) -> Busy {
        self.counter().begin()
    }

    /// The counter of this agent.
    pub(super) fn counter(&self) -> Counter {
        Counter(Arc::clone(&self.book))
    }

    /// Records a finished collaboration and sends a claim. [`Duty::serve`] does so by itself.
    pub fn finished(&self, done: Done) {
        self.book.finished(done);
    }

    /// Reports an error, until [`Duty::well`] is called.
    pub fn error(&self, code: &str, message: &str, error_type: ErrorType) {
        let (code, message) = (code.to_owned(), message.to_owned());
        self.book.set(Mood::Broken { code, message, error_type });
    }

    /// Reports maintenance until this time, unless [`Duty::well`] is called before.
    pub fn maintenance(&self, until: Timestamp, reason: Option<&str>) {
        self.book.set(Mood::Away { until, reason: reason.map(str::to_owned) });
    }

    /// Reports the agent as healthy: idle, or busy with running collaborations.
    pub fn well(&self) {
        self.book.set(Mood::Well);
    }

    /// The work history so far, to be saved for the next start.
    pub fn record(&self) -> Record {
        self.book.record()
    }

    /// The error of the last report to the hub, if it failed.
    pub fn trouble(&self) -> Option<String> {
        self.book.trouble()
    }

    /// Waits until the hub has all reports, but at most this long; returns whether it has.
    pub async fn settle(&self, within: Duration) -> bool {
        timeout(within, self.book.settled()).await.is_ok()
    }
}

impl Counter {
    pub(super) fn begin(&self) -> Busy {
        self.0.begin();
        Busy(Arc::clone(&self.0))
    }
}

impl Drop for Duty {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.end();
    }
}
