//! Which calls were begun, and how they ended, on disk.
//!
//! A call is written down before it is made. So a program that was killed during a call knows after its
//! restart that the call may have had an effect, whichever assignment the job comes back with.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rialto_core::alias::Digest;
use rialto_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::agent::job::{Job, Outcome};
use crate::agent::state_dir::StateDir;
use crate::clock;
use crate::worker::bounded_cache::BoundedCache;
use crate::worker::journal::{Entry, Journal};
use crate::worker::lock_ignoring_poison;

/// The file in the state directory.
const FILE: &str = "mcp-calls";
/// How long a call is remembered. No job takes longer.
const RETENTION: Millis = Millis::minutes(7 * 24 * 60);

/// The calls of one agent. Clones share them.
#[derive(Clone)]
pub struct CallJournal(Arc<Inner>);

struct Inner {
    journal: Journal,
    calls: Mutex<BoundedCache<Digest, CallRecord>>,
}

/// What is known of the calls for one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallRecord {
    /// How often the tool was called.
    pub(super) calls: u32,
    /// How the job ended.
    pub(super) outcome: Option<Outcome>,
}

impl CallJournal {
    /// Opens the journal of an agent.
    pub fn open(state_dir: &StateDir) -> io::Result<Self> {
        Self::open_file(state_dir.directory().join(FILE))
    }

    pub(super) fn open_file(path: PathBuf) -> io::Result<Self> {
        let (journal, entries) = Journal::open(path)?;
        let (mut calls, now) = (BoundedCache::default(), clock::now());
        for entry in entries {
            let bytes = entry.bytes();
            let note = entry.note.as_deref().and_then(|note| serde_json::from_str(note).ok());
            // A call whose record had to be dropped was made.
            let record = note.unwrap_or(CallRecord { calls: 1, outcome: None });
            match record.outcome {
                Some(_) => calls.insert_finished(entry.key, record, bytes, now),
                None => calls.insert_running(entry.key, record, now),
            }
        }
        Ok(Self(Arc::new(Inner { journal, calls: Mutex::new(calls) })))
    }

    /// What is known of a job's calls.
    pub(super) fn find(&self, job: &Job) -> CallRecord {
        lock_ignoring_poison(&self.0.calls).get(&key(job), clock::now()).unwrap_or_default()
    }

    /// Writes down that the tool is called now, for the `calls`-th time.
    pub(super) fn begin(&self, job: &Job, calls: u32) -> io::Result<()> {
        let (record, now) = (CallRecord { calls, outcome: None }, clock::now());
        self.write(job, &record, now)?;
        lock_ignoring_poison(&self.0.calls).insert_running(key(job), record, now);
        Ok(())
    }

    /// Writes down how the job ended. If that fails, it is still known that the tool was called.
    pub(super) fn finish(&self, job: &Job, calls: u32, outcome: &Outcome) {
        let record = CallRecord { calls, outcome: Some(outcome.clone()) };
        let now = clock::now();
        if let Ok(bytes) = self.write(job, &record, now) {
            lock_ignoring_poison(&self.0.calls).insert_finished(key(job), record, bytes, now);
        }
    }

    /// The tool was not called after all, so the job may come again.
    pub(super) fn forget(&self, job: &Job) {
        if self.0.journal.remove(key(job)).is_ok() {
            lock_ignoring_poison(&self.0.calls).remove(&key(job));
        }
    }

    fn write(&self, job: &Job, record: &CallRecord, now: Timestamp) -> io::Result<usize> {
        let key = key(job);
        let note = Some(serde_json::to_string(record)?);
        let (is_finished, expires_at) = (record.outcome.is_some(), now.plus(RETENTION));
        let entry = Entry { key, content: key, expires_at, is_finished, note };
        self.0.journal.write(&entry)?;
        Ok(entry.bytes())
    }
}

/// The same for every assignment of a job. Peers choose the ids of their jobs, so what they ask for
/// counts, too.
fn key(job: &Job) -> Digest {
    let mut hash = Sha256::new();
    let requester = if job.epoch == 0 { job.requester.as_str() } else { "" };
    for part in [&job.id, requester, &job.skill, &job.input] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut short = [0; 16];
    short.copy_from_slice(&digest[..16]);
    Digest(short)
}
