//! The duties of an agent that is there: it tells how it is whenever that changes and every so
//! often, and how well it does after every collaboration and every day.
//!
//! A [`Duty`] does so by itself for as long as it lives. Trouble with the hub is waited out.

mod book;
mod claims;
mod heartbeat;
mod pause;
mod record;

use std::sync::Arc;
use std::time::Duration;

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::state::ErrorType;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::agent::Agent;
use crate::clock;
use crate::retry::Retry;
use book::{Book, Mood};
pub use record::{Done, Record};

/// How often what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rhythm {
    /// How long after the last status an idle or busy agent tells it again. The hub takes an agent
    /// for gone after 90 seconds, and the spec wants to hear of it every 60.
    pub heartbeat: Duration,
    /// How long changes are gathered before the next is told; the spec allows 5 seconds.
    pub gather: Duration,
    /// How long after the last one a reputation is told again without a reason.
    pub reputation: Duration,
    /// How to wait when the hub cannot be told. It is tried for ever.
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

/// An agent on duty, until this is dropped.
#[derive(Debug)]
pub struct Duty {
    agent: Agent,
    book: Arc<Book>,
    tasks: [JoinHandle<()>; 2],
}

/// One collaboration that is being worked on, until this is dropped.
#[derive(Debug)]
pub struct Busy(Arc<Book>);

/// Counts what is being worked on.
#[derive(Clone, Debug)]
pub(super) struct Counter(Arc<Book>);

impl Agent {
    /// Goes on duty with what was recorded of earlier work.
    pub fn on_duty(&self, rhythm: Rhythm, record: Record) -> Duty {
        let book = Arc::new(Book::new(record, clock::now()));
        let status = heartbeat::keep(self.clone(), Arc::clone(&book), rhythm);
        let claims = claims::keep(self.clone(), Arc::clone(&book), rhythm);
        let tasks = [tokio::spawn(status), tokio::spawn(claims)];
        Duty { agent: self.clone(), book, tasks }
    }
}

impl Duty {
    /// Who is on duty.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Counts one more collaboration until what this gives is dropped. [`Duty::serve`] does so by
    /// itself.
    pub fn begin(&self) -> Busy {
        self.counter().begin()
    }

    /// What counts for this agent.
    pub(super) fn counter(&self) -> Counter {
        Counter(Arc::clone(&self.book))
    }

    /// Records a finished collaboration and tells the hub. [`Duty::serve`] does so by itself.
    pub fn finished(&self, done: Done) {
        self.book.finished(done);
    }

    /// Tells that something is broken, until it is [`Duty::well`] again.
    pub fn error(&self, code: &str, message: &str, error_type: ErrorType) {
        let (code, message) = (code.to_owned(), message.to_owned());
        self.book.set(Mood::Broken { code, message, error_type });
    }

    /// Tells that the agent is away until some time, unless it is [`Duty::well`] before.
    pub fn maintenance(&self, until: Timestamp, reason: Option<&str>) {
        self.book.set(Mood::Away { until, reason: reason.map(str::to_owned) });
    }

    /// Tells that all is well: idle, or busy with what is being worked on.
    pub fn well(&self) {
        self.book.set(Mood::Well);
    }

    /// What was recorded so far, to be kept until the agent is next on duty.
    pub fn record(&self) -> Record {
        self.book.record()
    }

    /// Why the hub could not be told last, if it could not.
    pub fn trouble(&self) -> Option<String> {
        self.book.trouble()
    }

    /// Waits until the hub knows everything, or for this long; says whether it does.
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
