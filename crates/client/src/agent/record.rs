//! Records: what was begun and what came of it, on disk, so that a program that is killed and
//! started again neither loses a job nor does it twice.
//!
//! A job's turn has one directory. It is there before the work begins, holds the outcome before
//! anybody is told, and is cleared when whoever asked has it. The log of the work stays for a while.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::job::Job;
use super::outcome::Outcome;
use crate::keep;

/// What a handler wrote about its work.
pub const LOG: &str = "stderr";
/// Where the logs of what is over are, beside the directory of what is not.
pub const LOGS: &str = "logs";
const JOB: &str = "job";
const OUTCOME: &str = "outcome";
/// How long the directory of a finished job is kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The longest part of a job's id that is used in a name.
const ID_MAX: usize = 64;

/// Where the records of one agent are.
#[derive(Clone, Debug)]
pub struct Records(PathBuf);

/// The record of one turn of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(PathBuf);

/// What came of a job, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What came of it.
    pub outcome: Outcome,
    /// In milliseconds.
    pub took_ms: u64,
}

/// Which turn of which job a record is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Turn {
    /// The job.
    pub id: String,
    /// Its turn.
    pub turn: u32,
}

impl Records {
    /// Records in a directory, which is made if need be.
    pub fn at(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        keep::directory(&directory)?;
        Ok(Self(directory))
    }

    /// The record of a job's turn, begun if there is none. Jobs that differ in anything have
    /// different records, so that nobody gets what was made for somebody else.
    pub fn of(&self, job: &Job) -> io::Result<Record> {
        let record = Record(self.0.join(name(job)));
        keep::directory(&record.0)?;
        if !record.0.join(JOB).exists() {
            let turn = Turn { id: job.id.clone(), turn: job.turn };
            write(&record.0, JOB, serde_json::to_string(&turn)?.as_bytes())?;
        }
        Ok(record)
    }

    /// The log of a job's turn, to write on, whether or not there is a record of it.
    pub fn log_of(&self, job: &Job) -> io::Result<File> {
        let name = name(job);
        let open = self.0.join(&name);
        let directory = if open.is_dir() { open } else { self.0.with_file_name(LOGS).join(&name) };
        keep::directory(&directory)?;
        keep::own().append(true).open(directory.join(LOG))
    }

    /// Every record that is not closed, with what it is about.
    pub fn open_ones(&self) -> io::Result<Vec<(Turn, Record)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let record = Record(entry?.path());
            let turn = fs::read_to_string(record.0.join(JOB)).ok();
            if let Some(turn) = turn.and_then(|text| serde_json::from_str(&text).ok()) {
                found.push((turn, record));
            }
        }
        Ok(found)
    }

    /// Removes what was closed, or not touched, long ago.
    pub fn prune(&self, now: SystemTime) -> io::Result<()> {
        let logs = fs::read_dir(self.0.with_file_name(LOGS));
        for entry in fs::read_dir(&self.0)?.chain(logs.into_iter().flatten()) {
            let entry = entry?;
            let touched = entry.metadata().and_then(|about| about.modified())?;
            if now.duration_since(touched).is_ok_and(|age| age > KEPT) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Record {
    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What came of the work, once it has ended.
    pub fn ended(&self) -> Option<Ended> {
        let text = fs::read_to_string(self.0.join(OUTCOME)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Writes down what came of the work, for good.
    pub fn keep(&self, ended: &Ended) -> io::Result<()> {
        write(&self.0, OUTCOME, serde_json::to_string(ended)?.as_bytes())
    }

    /// Whoever asked has what came of it: everything goes but the log, and that goes elsewhere, so
    /// that finding what is open takes no longer the more was done.
    pub fn close(&self) -> io::Result<()> {
        // First what makes it a record: one that is half removed must not be taken for a new job.
        remove(&self.0.join(JOB))?;
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_name() != LOG {
                remove(&entry.path())?;
            }
        }
        let (Some(jobs), Some(name)) = (self.0.parent(), self.0.file_name()) else { return Ok(()) };
        let logs = jobs.with_file_name(LOGS);
        keep::directory(&logs)?;
        match fs::rename(&self.0, logs.join(name)) {
            // A turn that was looked at again after its end has its log there already.
            Err(_) => fs::remove_dir_all(&self.0),
            moved => moved,
        }
    }
}

/// A name that says which job it is to people, and differs for all that differ.
fn name(job: &Job) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let id: String = job.id.chars().filter(plain).take(ID_MAX).collect();
    let mut hash = Sha256::new();
    let turn = job.turn.to_be_bytes();
    for part in [job.id.as_bytes(), &turn, job.skill.as_bytes(), job.requester.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update(job.input.as_bytes());
    format!("{id}.{}", &hex::encode(hash.finalize())[..16])
}

/// Writes a file that is there whole or not at all, also when two write it at the same time.
pub(super) fn write(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let new = directory.join(format!("{name}.{}.{number}.new", std::process::id()));
    let mut file = keep::own().write(true).truncate(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, directory.join(name))?;
    File::open(directory)?.sync_all()
}

/// Removes a file that may not be there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
