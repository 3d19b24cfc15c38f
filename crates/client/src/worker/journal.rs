//! A journal of requests and answers on disk. With it a request is executed only once, even if the
//! agent is killed and restarted.
//!
//! One line is one entry; the last line for a key counts. A line is synced before the work starts,
//! and another before the answer is sent. At startup the entries that have not expired are read;
//! each protocol interprets its own notes.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rialto_core::alias::Digest;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::lock_ignoring_poison;
use crate::{clock, private_files};

/// Maximum number of requests kept across a restart. Larger than any in-memory limit of a protocol
/// that must not drop requests.
const ENTRIES_MAX: usize = 20_000;
/// Maximum size of all entries in bytes.
const BYTES_MAX: usize = 32 << 20;
/// How much larger than these limits the file may grow before it is compacted.
const COMPACT_FACTOR: usize = 2;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Identifies the request; the same for all repeats.
    #[serde(rename = "scope")]
    pub(crate) key: Digest,
    /// Digest of the content; the same for all requests with the same content.
    pub(crate) content: Digest,
    /// When the entry expires.
    #[serde(rename = "until")]
    pub(crate) expires_at: Timestamp,
    /// Whether it was answered; otherwise it was only started.
    #[serde(rename = "over")]
    pub(crate) is_finished: bool,
    /// Protocol-specific data. `None` if there was no space to keep it.
    pub(crate) note: Option<String>,
}

impl Entry {
    /// The size of the entry in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.note.as_ref().map_or(0, String::len)
    }
}

/// The journal of one protocol.
pub(crate) struct Journal(Option<Mutex<JournalFile>>);

struct JournalFile {
    path: PathBuf,
    file: File,
    entries: usize,
    bytes: usize,
}

impl Journal {
    /// A journal that is not stored: everything is lost when the program exits.
    pub(crate) fn disabled() -> Self {
        Self(None)
    }

    /// Opens the journal in a file, and returns its entries.
    pub(crate) fn open(path: PathBuf) -> io::Result<(Self, Vec<Entry>)> {
        if let Some(parent) = path.parent() {
            private_files::create_dir(parent)?;
        }
        let (file, entries) = JournalFile::compact(path, clock::now())?;
        Ok((Self(Some(Mutex::new(file))), entries))
    }

    /// Whether the journal is stored.
    pub(crate) fn is_persistent(&self) -> bool {
        self.0.is_some()
    }

    /// Appends an entry; it is on disk when this returns.
    pub(crate) fn write(&self, entry: &Entry) -> io::Result<()> {
        let Some(file) = &self.0 else { return Ok(()) };
        let mut line = serde_json::to_string(entry)?;
        line.push('\n');
        lock_ignoring_poison(file).append(&line)
    }

    /// Removes a request, so that it can come again as a new one.
    pub(crate) fn remove(&self, key: Digest) -> io::Result<()> {
        let (content, expires_at) = (Digest([0; 16]), Timestamp(0));
        self.write(&Entry { key, content, expires_at, is_finished: true, note: None })
    }
}

impl JournalFile {
    /// Reads a file and rewrites it with the entries that still count.
    fn compact(path: PathBuf, now: Timestamp) -> io::Result<(Self, Vec<Entry>)> {
        let entries = drop_oldest(read(&path, now)?);
        let mut text = String::new();
        for entry in &entries {
            text.push_str(&serde_json::to_string(entry)?);
            text.push('\n');
        }
        private_files::write_atomically(&path, &text)?;
        let file = OpenOptions::new().append(true).open(&path)?;
        Ok((Self { path, file, entries: entries.len(), bytes: text.len() }, entries))
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let full = self.entries >= ENTRIES_MAX * COMPACT_FACTOR
            || self.bytes >= BYTES_MAX * COMPACT_FACTOR;
        if full {
            *self = Self::compact(self.path.clone(), clock::now())?.0;
        }
        // A line cut off by a full disk must not corrupt the next one.
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            let _ = self.file.set_len(self.bytes as u64);
            return Err(error);
        }
        self.entries += 1;
        self.bytes += line.len();
        self.file.sync_data()
    }
}

/// The last entry of each key, oldest first. A line truncated by a power cut was never answered, so
/// it is skipped.
fn read(path: &Path, now: Timestamp) -> io::Result<Vec<Entry>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut last = HashMap::new();
    for (at, line) in BufReader::new(file).split(b'\n').enumerate() {
        if let Ok(entry) = serde_json::from_slice::<Entry>(&line?) {
            last.insert(entry.key, (at, entry));
        }
    }
    let mut entries: Vec<_> =
        last.into_values().filter(|(_, entry)| entry.expires_at >= now).collect();
    entries.sort_by_key(|(at, _)| *at);
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Keeps the newest entries up to the limits. The fact that a request came is kept longer than its
/// answer, because a forgotten request would be executed twice.
fn drop_oldest(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.drain(..entries.len().saturating_sub(ENTRIES_MAX));
    let mut bytes = 0;
    for entry in entries.iter_mut().rev() {
        bytes += entry.bytes();
        if bytes > BYTES_MAX {
            entry.note = None;
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u8, is_finished: bool, note: &str) -> Entry {
        let (key, content, note) = (Digest([key; 16]), Digest([7; 16]), Some(note.to_owned()));
        Entry { key, content, expires_at: Timestamp(i64::MAX), is_finished, note }
    }

    fn journal() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("peers/registry");
        (dir, path)
    }

    #[test]
    fn the_last_entry_of_a_request_is_there_after_a_restart() {
        let (_dir, path) = journal();
        let (journal, before) = Journal::open(path.clone()).expect("opened");
        assert_eq!(before, []);
        journal.write(&entry(1, false, "a")).expect("written");
        journal.write(&entry(2, false, "b")).expect("written");
        journal.write(&entry(1, true, "c\n")).expect("written");
        journal.write(&entry(3, true, "d")).expect("written");
        journal.remove(Digest([3; 16])).expect("written");
        journal
            .write(&Entry { expires_at: Timestamp(1), ..entry(4, true, "old") })
            .expect("written");
        let expected = [entry(2, false, "b"), entry(1, true, "c\n")];
        assert_eq!(Journal::open(path).expect("opened").1, expected);
    }

    #[test]
    fn a_line_that_was_cut_off_takes_nothing_else_along() {
        let (_dir, path) = journal();
        let (journal, _) = Journal::open(path.clone()).expect("opened");
        journal.write(&entry(1, true, "a")).expect("written");
        let half = serde_json::to_string(&entry(2, true, "b")).expect("JSON");
        let mut file = OpenOptions::new().append(true).open(&path).expect("a file");
        file.write_all(&half.as_bytes()[..20]).expect("written");
        let (journal, before) = Journal::open(path.clone()).expect("opened");
        assert_eq!(before, [entry(1, true, "a")]);
        journal.write(&entry(3, true, "c")).expect("written");
        let expected = [entry(1, true, "a"), entry(3, true, "c")];
        assert_eq!(Journal::open(path).expect("opened").1, expected);
    }

    #[test]
    fn a_file_does_not_grow_without_end_and_a_request_is_known_for_longer_than_its_answer() {
        let (_dir, path) = journal();
        let (journal, _) = Journal::open(path.clone()).expect("opened");
        let note = "x".repeat(BYTES_MAX / 8);
        for n in 0..40 {
            journal.write(&entry(n % 10, true, &note)).expect("written");
        }
        assert!(std::fs::metadata(&path).expect("there").len() < (BYTES_MAX * 3) as u64);
        let (_, before) = Journal::open(path).expect("opened");
        let with_note: Vec<_> = before.iter().map(|entry| entry.note.is_some()).collect();
        assert_eq!(with_note, [[false; 2].as_slice(), &[true; 8]].concat());
    }

    #[test]
    fn a_journal_without_a_file_keeps_nothing() {
        let journal = Journal::disabled();
        journal.write(&entry(1, true, "a")).expect("nothing to do");
        assert!(!journal.is_persistent());
    }
}
