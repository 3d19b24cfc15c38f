//! The log: two files beside the database, to which every batch is appended and synced before
//! anything is answered.
//!
//! The database is a checkpoint of the log, written behind (see `sqlite/checkpoint.rs`). A start
//! reads the database and then the batches after its place. A file is used again from its beginning
//! once every batch in it is in the database, so a log that is in use has the size of what the
//! database lacks, and syncing it changes no metadata of the file system.

pub mod record;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rialto_core::changes::{Batch, Changes, Counters};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;

use crate::metrics::Histogram;
use crate::permissions;
use crate::store::sqlite::{DB_FILE, durability};
use crate::store::{BatchLog, StoreError};
pub use record::{ChainHash, LogId, LoggedBatch, Place};
use record::{
    FoundRecord, RecordHeader, chain_after, encode_record, find_records, is_start_of_log,
};

/// A file that had to grow longer than this many times its limit is truncated before it is used
/// again.
const KEPT_FILES: u64 = 4;

/// The two files of a log.
pub fn log_paths(dir: &Path) -> [PathBuf; 2] {
    [0, 1].map(|index| dir.join(format!("{DB_FILE}-log{index}")))
}

/// Creates the files of a log that is not in use yet. Files that a clean stop had no time to remove
/// are used again; those of another database are refused.
pub fn create(dir: &Path, log: LogId, file_bytes: u64) -> Result<(), StoreError> {
    for path in log_paths(dir) {
        read_file(&path, log)?;
        let file =
            permissions::open_private_file(&path).map_err(|error| io_error(&path, &error))?;
        extend(&file, new_file_bytes(file_bytes))
            .and_then(|_| file.sync_all())
            .map_err(|error| disk_error(&path, &error))?;
    }
    durability::sync_directories(dir)
}

/// A new file has this many bytes, and doubles when it is full: syncing blocks that exist already
/// takes about half as long as syncing a file that grows with every batch.
fn new_file_bytes(file_bytes: u64) -> u64 {
    file_bytes / 32
}

/// Whether there is no file of a log.
pub fn is_absent(dir: &Path) -> bool {
    !log_paths(dir).iter().any(|path| path.exists())
}

/// Refuses a log in use that lacks a file: both were created before it came into use, and the
/// newest batches may be in either.
pub fn require_files(dir: &Path) -> Result<(), StoreError> {
    match log_paths(dir).iter().find(|path| !path.exists()) {
        None => Ok(()),
        Some(path) => Err(StoreError::Corrupt(format!(
            "{} is missing, and {DB_FILE} alone lacks the newest changes; put the file back, or \
             restore a backup",
            file_name(path)
        ))),
    }
}

/// Removes the files, once the database has every batch.
pub fn remove(dir: &Path) -> std::io::Result<()> {
    for path in log_paths(dir) {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The records of a log, as they were at one time.
pub struct LogSnapshot([Vec<FoundRecord>; 2]);

impl LogSnapshot {
    /// Reads the files, also while a hub writes them.
    pub fn read(dir: &Path, log: LogId) -> Result<Self, StoreError> {
        let [first, second] = log_paths(dir).map(|path| read_file(&path, log));
        Ok(Self([first?, second?]))
    }

    /// The batches after the database's place, in order.
    pub fn batches_after(self, place: Place) -> Result<Vec<LoggedBatch>, StoreError> {
        chain_after(place, self.0.into_iter().flatten().collect())
    }
}

/// The records in one file, which may not exist. A file of another database is refused, for it
/// would be taken for an empty one.
fn read_file(path: &Path, log: LogId) -> Result<Vec<FoundRecord>, StoreError> {
    match std::fs::read(path) {
        Ok(bytes) if is_start_of_log(log, &bytes) => Ok(find_records(log, &bytes)),
        Ok(_) => Err(StoreError::Corrupt(format!(
            "{} is damaged or belongs to another database, not to this {DB_FILE}; put back the \
             files that belong together, or restore a backup into an empty directory",
            file_name(path)
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io_error(path, &error)),
    }
}

/// The writing side of the log.
pub struct LogWriter {
    id: LogId,
    paths: [PathBuf; 2],
    files: [File; 2],
    /// A file longer than this is followed by the other, if that is free.
    file_bytes: u64,
    /// The newest batch in each file.
    newest: [u64; 2],
    lengths: [u64; 2],
    /// Which file is written, and where.
    current: usize,
    offset: u64,
    place: Place,
    next: NextIds,
    /// The newest batch that the database has.
    checkpointed: Arc<AtomicU64>,
    buffer: Vec<u8>,
    syncs: Arc<Histogram>,
    bytes: Arc<AtomicU64>,
    /// An error left it unknown what is on disk.
    failed: bool,
}

/// What a log is opened with.
pub struct LogOptions {
    pub id: LogId,
    /// The database's place.
    pub place: Place,
    /// The database's counters.
    pub next: Counters,
    /// A file longer than this is followed by the other, if that is free.
    pub file_bytes: u64,
    pub checkpointed: Arc<AtomicU64>,
    pub syncs: Arc<Histogram>,
    /// Counts the bytes that are appended.
    pub bytes: Arc<AtomicU64>,
}

impl LogWriter {
    /// Opens or creates the files, and returns the batches that the database lacks.
    pub fn open(dir: &Path, options: LogOptions) -> Result<(Self, Vec<LoggedBatch>), StoreError> {
        let LogOptions { id, place, next, file_bytes, checkpointed, syncs, bytes } = options;
        let paths = log_paths(dir);
        let [first, second] = paths.each_ref().map(|path| {
            let file = permissions::open_private_file(path);
            // A batch that was written but not synced before a crash is read below.
            let synced = file.and_then(|file| file.sync_all().map(|()| file));
            synced.map_err(|error| io_error(path, &error))
        });
        let files = [first?, second?];
        let length = |index: usize| match files[index].metadata() {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) => Err(io_error(&paths[index], &error)),
        };
        let lengths = [length(0)?, length(1)?];
        let found = LogSnapshot::read(dir, id)?;
        let ends = found.0.each_ref().map(|records| {
            let newest = records.iter().max_by_key(|record| record.number());
            newest.map_or((0, 0), |record| (record.number(), record.end()))
        });
        let batches = found.batches_after(place)?;
        let current = usize::from(ends[1].0 > ends[0].0);
        let writer = Self {
            id,
            paths,
            files,
            file_bytes,
            lengths,
            newest: ends.map(|(number, _)| number),
            current,
            offset: ends[current].1,
            place: batches.last().map_or(place, |batch| batch.place),
            next: NextIds(
                batches.iter().rev().find_map(|logged| logged.batch.changes.next).unwrap_or(next),
            ),
            checkpointed,
            buffer: Vec::new(),
            syncs,
            bytes,
            failed: false,
        };
        Ok((writer, batches))
    }

    /// Whether an error left it unknown what is on disk.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Goes on in the other file once this one is long and the database has everything in the
    /// other.
    fn switch_file(&mut self) -> std::io::Result<()> {
        let other = 1 - self.current;
        let is_free = self.newest[other] <= self.checkpointed.load(Ordering::Acquire);
        if self.offset < self.file_bytes || !is_free {
            return Ok(());
        }
        let kept = KEPT_FILES * self.file_bytes;
        if self.lengths[other] > kept {
            self.files[other].set_len(kept)?;
            self.lengths[other] = kept;
        }
        (self.current, self.offset) = (other, 0);
        Ok(())
    }

    fn write(&mut self) -> std::io::Result<()> {
        self.switch_file()?;
        let mut file = &self.files[self.current];
        let end = self.offset + self.buffer.len() as u64;
        if end > self.lengths[self.current] {
            let new_file = new_file_bytes(self.file_bytes);
            let length = (2 * self.lengths[self.current]).clamp(new_file, self.file_bytes);
            self.lengths[self.current] = extend(file, length.max(end))?;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        file.write_all(&self.buffer)
    }
}

/// Writes zeros up to a length, if the file is shorter, and returns its length.
fn extend(mut file: &File, length: u64) -> std::io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let zeros = [0; 64 << 10];
    while end < length {
        let more = (length - end).min(zeros.len() as u64);
        file.write_all(&zeros[..more as usize])?;
        end += more;
    }
    Ok(end)
}

impl BatchLog for LogWriter {
    fn append(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        // After an error nothing is synced again: a repeated sync may succeed and prove nothing.
        if self.failed {
            return Err(StoreError::Failed("an earlier write to the log failed".to_owned()));
        }
        let changes = &batch.changes;
        if let Err(error) = self.next.check(changes) {
            self.failed = true;
            return Err(error);
        }
        let header = RecordHeader { log: self.id, before: self.place, epoch: 0 };
        let place = encode_record(header, batch, &mut self.buffer)?;
        if let Err(error) = self.write() {
            // What was written in part is no record, and the next batch overwrites it.
            let error = disk_error(&self.paths[self.current], &error);
            self.failed = !matches!(error, StoreError::Full);
            return Err(error);
        }
        let began = Instant::now();
        if let Err(error) = self.files[self.current].sync_data() {
            self.failed = true;
            return Err(io_error(&self.paths[self.current], &error));
        }
        self.syncs.observe_duration(began.elapsed());
        self.bytes.fetch_add(self.buffer.len() as u64, Ordering::Relaxed);
        self.offset += self.buffer.len() as u64;
        self.newest[self.current] = place.number;
        self.place = place;
        self.next.advance(changes);
        Ok(place)
    }
}

/// The next ids to hand out, to check each batch before it is appended.
#[derive(Clone, Copy, Debug, Default)]
pub struct NextIds(pub Counters);

impl NextIds {
    /// Refuses rows that would replace history, and negative balances. The rules of core exclude
    /// both; here they are checked again, before anything is written.
    pub fn check(&self, changes: &Changes) -> Result<(), StoreError> {
        let next = &self.0;
        let first = [
            ("ledger entry", changes.entries.first().map(|row| row.id.0), next.entry.0),
            ("transfer", changes.transfers.first().map(|row| row.id.0), next.transfer.0),
            ("notice", changes.notices.first().map(|row| row.id.0), next.notice.0),
            ("outcome", changes.outcomes.first().map(|row| row.id.0), next.outcome.0),
            ("history line", changes.history_lines.first().map(|row| row.id.0), next.event.0),
            ("record", changes.market_records.first().map(|row| row.id.0), next.market_record.0),
            ("claim", changes.claims.first().map(|row| row.id.0), next.claim.0),
            ("alias", changes.aliases.first().map(|row| row.id.0), next.alias.0),
        ];
        for (what, id, next) in first {
            if let Some(id) = id.filter(|id| *id < next) {
                return Err(StoreError::Failed(format!("{what} {id} would be written twice")));
            }
        }
        let owners = changes.owners.values();
        let below_zero = owners.filter(|owner| {
            let is_issuance = owner.id == Owner::ISSUANCE;
            (owner.available < Credits::ZERO && !is_issuance) || owner.held < Credits::ZERO
        });
        if let Some(owner) = below_zero.map(|owner| owner.id).next() {
            return Err(StoreError::Failed(format!("account {owner} would be below zero")));
        }
        if let Some(entry) = changes.entries.iter().find(|entry| entry.amount <= Credits::ZERO) {
            return Err(StoreError::Failed(format!("ledger entry {} moves nothing", entry.id)));
        }
        Ok(())
    }

    /// Moves on after a batch that was appended.
    pub fn advance(&mut self, changes: &Changes) {
        self.0 = next_ids(changes.next.unwrap_or(self.0), changes);
    }
}

/// The next ids after these rows.
fn next_ids(mut next: Counters, changes: &Changes) -> Counters {
    fn after<T, Id: Ord + Copy>(rows: &[T], next: &mut Id, id: impl Fn(&T) -> Id) {
        if let Some(last) = rows.last() {
            *next = id(last).max(*next);
        }
    }
    after(&changes.entries, &mut next.entry, |row| row.id.next());
    after(&changes.transfers, &mut next.transfer, |row| row.id.next());
    after(&changes.notices, &mut next.notice, |row| row.id.next());
    after(&changes.outcomes, &mut next.outcome, |row| row.id.next());
    after(&changes.history_lines, &mut next.event, |row| row.id.next());
    after(&changes.market_records, &mut next.market_record, |row| row.id.next());
    after(&changes.claims, &mut next.claim, |row| row.id.next());
    after(&changes.aliases, &mut next.alias, |row| row.id.next());
    next
}

/// The error of a write: a full disk is no damage.
fn disk_error(path: &Path, error: &std::io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::Full,
        _ => io_error(path, error),
    }
}

fn io_error(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Failed(format!("{}: {error}", file_name(path)))
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}
