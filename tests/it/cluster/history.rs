//! What the clients record: every request, when it began and ended, where, and how.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// What a command does, as far as the checks need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A message to the inbox of an agent. Its text is the key of the command.
    Send {
        inbox: String,
    },
    Transfer {
        from: String,
        to: String,
        cents: u64,
    },
    Grant {
        owner: String,
        cents: u64,
    },
    PostJob {
        requester: String,
    },
    /// The result of a job under an epoch.
    Report {
        job: String,
        epoch: u64,
        worker: String,
    },
    Decline {
        job: String,
        epoch: u64,
    },
    /// One step of a flow of another protocol, which checks itself.
    Step {
        protocol: &'static str,
    },
}

/// How an attempt ended for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered 2xx, with this body.
    Done(String),
    /// Answered that nothing was done, with this status and body.
    Refused(u16, String),
    /// No answer, or one that leaves it open.
    Unknown(String),
}

/// One attempt of a command.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub client: u32,
    pub node: usize,
    pub operation: Operation,
    /// The same for all attempts of one command.
    pub key: String,
    pub begin: Duration,
    pub end: Duration,
    pub outcome: Outcome,
}

/// What a read showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The newest position of an inbox.
    Inbox {
        agent: String,
        head: u64,
    },
    /// Available and held cents.
    Account {
        owner: String,
        available: u64,
        held: u64,
    },
    Job {
        job: String,
        epoch: u64,
        state: String,
    },
    /// The newest entry of the ledger.
    Ledger {
        newest: u64,
    },
    /// Jobs ever opened, which may be up to a second old.
    Statistics {
        jobs: u64,
    },
    /// Work that a worker was given.
    Assignment {
        job: String,
        epoch: u64,
        worker: String,
    },
}

/// One read.
#[derive(Clone, Debug)]
pub struct Read {
    pub client: u32,
    pub node: usize,
    pub begin: Duration,
    pub end: Duration,
    pub seen: Seen,
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub struct StreamEvent {
    pub at: Duration,
    pub node: usize,
    pub position: u64,
    pub text: String,
}

/// All attempts of one command.
#[derive(Clone, Debug)]
pub struct CommandHistory {
    pub operation: Operation,
    pub begin: Duration,
    /// When the first answer came; `None` if there is none.
    pub end: Option<Duration>,
    pub attempts: usize,
    /// Answers without those that left it open.
    pub answers: Vec<(usize, Outcome)>,
}

impl CommandHistory {
    /// The body of the first answer, if it was done.
    pub fn done(&self) -> Option<&str> {
        self.answers.iter().find_map(|(_, outcome)| match outcome {
            Outcome::Done(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Whether it was refused, and never done.
    pub fn is_refused(&self) -> bool {
        !self.answers.is_empty() && self.done().is_none()
    }
}

#[derive(Debug, Default)]
struct Records {
    attempts: Vec<Attempt>,
    reads: Vec<Read>,
    streams: BTreeMap<String, Vec<StreamEvent>>,
    violations: Vec<String>,
}

/// The record of one round. All times are of one clock.
#[derive(Debug)]
pub struct History {
    began: Instant,
    records: Mutex<Records>,
}

impl Default for History {
    fn default() -> Self {
        Self { began: Instant::now(), records: Mutex::default() }
    }
}

impl History {
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().expect("no client panicked")
    }

    /// The time since the record began.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn add_attempt(&self, attempt: Attempt) {
        self.lock().attempts.push(attempt);
    }

    pub fn add_read(&self, read: Read) {
        self.lock().reads.push(read);
    }

    pub fn add_event(&self, inbox: &str, event: StreamEvent) {
        self.lock().streams.entry(inbox.to_owned()).or_default().push(event);
    }

    /// Something that must not be, seen by a client.
    pub fn violation(&self, text: String) {
        self.lock().violations.push(text);
    }

    /// Commands that were acknowledged so far.
    pub fn acknowledged(&self) -> usize {
        self.count(|_| true)
    }

    /// Commands that a node acknowledged and that began at this time or later.
    pub fn acknowledged_at(&self, node: usize, since: Duration) -> usize {
        self.count(|attempt| attempt.node == node && attempt.begin >= since)
    }

    fn count(&self, which: impl Fn(&Attempt) -> bool) -> usize {
        let is_done = |attempt: &&Attempt| matches!(attempt.outcome, Outcome::Done(_));
        self.lock().attempts.iter().filter(is_done).filter(|attempt| which(attempt)).count()
    }

    /// Everything that was recorded, in the order in which it began, to look into a violation.
    pub fn text(&self) -> String {
        let records = self.lock();
        let mut lines: Vec<(Duration, String)> = Vec::new();
        for one in &records.attempts {
            let Attempt { client, node, operation, key, begin, end, outcome } = one;
            let text = format!("{client} at {node} {operation:?} {key}: {outcome:?}");
            lines.push((*begin, format!("{begin:?} to {end:?}: client {text}")));
        }
        for Read { client, node, begin, end, seen } in &records.reads {
            let text = format!("{begin:?} to {end:?}: client {client} at {node} saw {seen:?}");
            lines.push((*begin, text));
        }
        for (inbox, events) in &records.streams {
            for StreamEvent { node, position, text, at } in events {
                let text = format!("{at:?}: the stream of {inbox} at {node}: {position} {text}");
                lines.push((*at, text));
            }
        }
        lines.sort();
        lines.into_iter().map(|(_, line)| line + "\n").collect()
    }

    pub fn reads(&self) -> Vec<Read> {
        self.lock().reads.clone()
    }

    pub fn streams(&self) -> BTreeMap<String, Vec<StreamEvent>> {
        self.lock().streams.clone()
    }

    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    /// All commands by their keys.
    pub fn commands(&self) -> BTreeMap<String, CommandHistory> {
        let mut commands: BTreeMap<String, CommandHistory> = BTreeMap::new();
        for attempt in &self.lock().attempts {
            let command = commands.entry(attempt.key.clone()).or_insert_with(|| CommandHistory {
                operation: attempt.operation.clone(),
                begin: attempt.begin,
                end: None,
                attempts: 0,
                answers: Vec::new(),
            });
            command.attempts += 1;
            command.begin = command.begin.min(attempt.begin);
            if !matches!(attempt.outcome, Outcome::Unknown(_)) {
                command.end = Some(command.end.map_or(attempt.end, |end| end.min(attempt.end)));
                command.answers.push((attempt.node, attempt.outcome.clone()));
            }
        }
        commands
    }

    /// The longest time in which nothing was acknowledged, between two moments.
    pub fn longest_gap(&self, from: Duration, to: Duration) -> Duration {
        let mut ends: Vec<Duration> = self
            .lock()
            .attempts
            .iter()
            .filter(|attempt| matches!(attempt.outcome, Outcome::Done(_)))
            .map(|attempt| attempt.end)
            .filter(|end| (from..=to).contains(end))
            .collect();
        ends.extend([from, to]);
        ends.sort_unstable();
        ends.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
    }
}
