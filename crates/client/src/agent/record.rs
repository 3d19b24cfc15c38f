//! Job records on disk. With them a program that is killed and restarted neither loses a job nor
//! does it twice.
//!
//! Each assignment has one directory. It is created before the work starts, gets the outcome before
//! it is reported, and is removed when the requester has it. The log is kept for a while.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::job::{Job, Outcome};
use crate::private_files;

/// The handler's log file.
pub const LOG_FILE: &str = "stderr";
/// Directory for the logs of finished jobs, beside the open records.
pub const LOGS_DIR: &str = "logs";
const JOB: &str = "job";
const OUTCOME: &str = "outcome";
/// How long the directory of a finished job is kept.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Maximum length of the job id's part in a file name.
const ID_MAX: usize = 64;

/// The records of one agent.
#[derive(Clone, Debug)]
pub struct JobRecords(PathBuf);

/// The record of one assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord(PathBuf);

/// The outcome of a job, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedJob {
    /// The outcome.
    pub outcome: Outcome,
    /// In milliseconds.
    pub took_ms: u64,
}

/// The assignment a record belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AssignmentRef {
    /// The job's id.
    pub id: String,
    /// The assignment's number.
    #[serde(rename = "turn")]
    pub epoch: u32,
}

impl JobRecords {
    /// Opens the records in a directory, and creates it if needed.
    pub fn open(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        private_files::create_dir(&directory)?;
        Ok(Self(directory))
    }

    /// Opens the record of an assignment, or creates it. Jobs that differ in any way have different
    /// records, so that a requester never gets the result of another's job.
    pub fn open_record(&self, job: &Job) -> io::Result<JobRecord> {
        let record = JobRecord(self.0.join(name(job)));
        private_files::create_dir(&record.0)?;
        if !record.0.join(JOB).exists() {
            let assignment = AssignmentRef { id: job.id.clone(), epoch: job.epoch };
            write_atomically(&record.0, JOB, serde_json::to_string(&assignment)?.as_bytes())?;
        }
        Ok(record)
    }

    /// Opens the log of an assignment for appending, whether or not it has a record.
    pub fn open_log(&self, job: &Job) -> io::Result<File> {
        let name = name(job);
        let open = self.0.join(&name);
        let directory =
            if open.is_dir() { open } else { self.0.with_file_name(LOGS_DIR).join(&name) };
        private_files::create_dir(&directory)?;
        private_files::open_options().append(true).open(directory.join(LOG_FILE))
    }

    /// Every open record, with its assignment.
    pub fn list_open(&self) -> io::Result<Vec<(AssignmentRef, JobRecord)>> {
        let mut records = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let record = JobRecord(entry?.path());
            let text = fs::read_to_string(record.0.join(JOB)).ok();
            if let Some(assignment) = text.and_then(|text| serde_json::from_str(&text).ok()) {
                records.push((assignment, record));
            }
        }
        Ok(records)
    }

    /// Removes records and logs that were closed or last changed long ago.
    pub fn prune(&self, now: SystemTime) -> io::Result<()> {
        let logs = fs::read_dir(self.0.with_file_name(LOGS_DIR));
        for entry in fs::read_dir(&self.0)?.chain(logs.into_iter().flatten()) {
            let entry = entry?;
            let touched = entry.metadata().and_then(|about| about.modified())?;
            if now.duration_since(touched).is_ok_and(|age| age > RETENTION) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

impl JobRecord {
    /// The record's directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The outcome, once the work has ended.
    pub fn finished(&self) -> Option<FinishedJob> {
        let text = fs::read_to_string(self.0.join(OUTCOME)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Writes the outcome to disk.
    pub fn write_finished(&self, finished: &FinishedJob) -> io::Result<()> {
        write_atomically(&self.0, OUTCOME, serde_json::to_string(finished)?.as_bytes())
    }

    /// Closes the record once the requester has the outcome. Everything is removed except the log,
    /// which is moved elsewhere, so that listing open records does not get slower over time.
    pub fn close(&self) -> io::Result<()> {
        // The job file goes first: a half-removed record must not be taken for a new job.
        remove_if_exists(&self.0.join(JOB))?;
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_name() != LOG_FILE {
                remove_if_exists(&entry.path())?;
            }
        }
        let (Some(jobs), Some(name)) = (self.0.parent(), self.0.file_name()) else { return Ok(()) };
        let logs = jobs.with_file_name(LOGS_DIR);
        private_files::create_dir(&logs)?;
        match fs::rename(&self.0, logs.join(name)) {
            // The log is already there if the assignment came again after its end.
            Err(_) => fs::remove_dir_all(&self.0),
            moved => moved,
        }
    }
}

/// A readable file name that is unique per job.
fn name(job: &Job) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let id: String = job.id.chars().filter(plain).take(ID_MAX).collect();
    let mut hash = Sha256::new();
    let epoch = job.epoch.to_be_bytes();
    for part in [job.id.as_bytes(), &epoch, job.skill.as_bytes(), job.requester.as_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.update(job.input.as_bytes());
    format!("{id}.{}", &hex::encode(hash.finalize())[..16])
}

/// Writes a file atomically, even if two processes write it at the same time.
pub(super) fn write_atomically(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let new = directory.join(format!("{name}.{}.{number}.new", std::process::id()));
    let mut file = private_files::open_options().write(true).truncate(true).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, directory.join(name))?;
    File::open(directory)?.sync_all()
}

/// Removes a file if it exists.
pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
