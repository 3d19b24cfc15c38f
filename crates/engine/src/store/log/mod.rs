//! The log: two files beside the database, to which every batch is appended and synced before
//! anything is answered.
//!
//! The database is a checkpoint of the log, written behind (see `sqlite/checkpoint.rs`). A start
//! reads the database and then the batches after its place. A file is used again from its beginning
//! once every batch in it is in the database, so a log that is in use has the size of what the
//! database lacks, and syncing it changes no metadata of the file system.

pub mod record;

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rialto_core::changes::{Changes, Counters, ExpiredRows};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;

use crate::metrics::Histogram;
use crate::permissions;
use crate::store::sqlite::{DB_FILE, durability};
use crate::store::{BatchLog, StoreError};
pub use record::{ChainHash, LogId, LoggedBatch, Place};
use record::{FoundRecord, RecordHeader, chain_after, encode_record, find_records};

/// A file longer than this is followed by the other, if that is free.
pub(crate) const FILE_BYTES: u64 = 8 << 20;
/// A file that had to grow longer is truncated to this before it is used again.
const KEPT_BYTES: u64 = 4 * FILE_BYTES;

/// The two files of a log.
pub fn log_paths(dir: &Path) -> [PathBuf; 2] {
    [0, 1].map(|index| dir.join(format!("{DB_FILE}-log{index}")))
}

/// Creates the files of a log that does not exist yet.
pub fn create(dir: &Path) -> Result<(), StoreError> {
    for path in log_paths(dir) {
        permissions::open_private_file(&path).and_then(|file| file.sync_all()).map_err(io_error)?;
    }
    durability::sync_directories(dir)
}

/// Whether at least one file of a log exists.
pub fn exists(dir: &Path) -> bool {
    log_paths(dir).iter().any(|path| path.exists())
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
        let [first, second] = log_paths(dir).map(|path| match std::fs::read(path) {
            Ok(bytes) => Ok(find_records(log, &bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(io_error(error)),
        });
        Ok(Self([first?, second?]))
    }

    /// The batches after the database's place, in order.
    pub fn batches_after(self, place: Place) -> Result<Vec<LoggedBatch>, StoreError> {
        chain_after(place, self.0.into_iter().flatten().collect())
    }
}

/// The writing side of the log.
pub struct LogWriter {
    id: LogId,
    files: [File; 2],
    /// The newest batch in each file.
    newest: [u64; 2],
    /// Which file is written, and where.
    current: usize,
    offset: u64,
    place: Place,
    /// The next ids to hand out.
    next: Counters,
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
    pub checkpointed: Arc<AtomicU64>,
    pub syncs: Arc<Histogram>,
    /// Counts the bytes that are appended.
    pub bytes: Arc<AtomicU64>,
}

impl LogWriter {
    /// Opens or creates the files, and returns the batches that the database lacks.
    pub fn open(dir: &Path, options: LogOptions) -> Result<(Self, Vec<LoggedBatch>), StoreError> {
        let LogOptions { id, place, next, checkpointed, syncs, bytes } = options;
        let [first, second] = log_paths(dir).map(|path| {
            let file = permissions::open_private_file(&path)?;
            // A batch that was written but not synced before a crash is read below.
            file.sync_all()?;
            Ok(file)
        });
        let files = [first.map_err(io_error)?, second.map_err(io_error)?];
        let found = LogSnapshot::read(dir, id)?;
        let ends = found.0.each_ref().map(|records| {
            let newest = records.iter().max_by_key(|record| record.number());
            newest.map_or((0, 0), |record| (record.number(), record.end()))
        });
        let batches = found.batches_after(place)?;
        let current = usize::from(ends[1].0 > ends[0].0);
        let writer = Self {
            id,
            files,
            newest: ends.map(|(number, _)| number),
            current,
            offset: ends[current].1,
            place: batches.last().map_or(place, |batch| batch.place),
            next: batches.iter().rev().find_map(|batch| batch.changes.next).unwrap_or(next),
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

    /// Refuses rows that would replace history, and negative balances. The rules of core exclude
    /// both; here they are checked again, before anything is written.
    fn check(&self, changes: &Changes) -> Result<(), StoreError> {
        let next = &self.next;
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

    /// Goes on in the other file once this one is long and the database has everything in the
    /// other.
    fn switch_file(&mut self) -> std::io::Result<()> {
        let other = 1 - self.current;
        let is_free = self.newest[other] <= self.checkpointed.load(Ordering::Acquire);
        if self.offset < FILE_BYTES || !is_free {
            return Ok(());
        }
        if self.files[other].metadata()?.len() > KEPT_BYTES {
            self.files[other].set_len(KEPT_BYTES)?;
        }
        (self.current, self.offset) = (other, 0);
        Ok(())
    }

    fn write(&mut self) -> std::io::Result<()> {
        self.switch_file()?;
        let mut file = &self.files[self.current];
        file.seek(SeekFrom::Start(self.offset))?;
        file.write_all(&self.buffer)
    }
}

impl BatchLog for LogWriter {
    fn append(&mut self, changes: &Changes, expired: &ExpiredRows) -> Result<Place, StoreError> {
        // After an error nothing is synced again: a repeated sync may succeed and prove nothing.
        if self.failed {
            return Err(StoreError::Failed("an earlier write to the log failed".to_owned()));
        }
        if let Err(error) = self.check(changes) {
            self.failed = true;
            return Err(error);
        }
        let header = RecordHeader { log: self.id, before: self.place, epoch: 0 };
        let place = encode_record(header, changes, expired, &mut self.buffer)?;
        if let Err(error) = self.write() {
            // What was written in part is no record, and the next batch overwrites it.
            if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
                return Err(StoreError::Full);
            }
            self.failed = true;
            return Err(io_error(error));
        }
        let began = Instant::now();
        if let Err(error) = self.files[self.current].sync_data() {
            self.failed = true;
            return Err(io_error(error));
        }
        self.syncs.observe_duration(began.elapsed());
        self.bytes.fetch_add(self.buffer.len() as u64, Ordering::Relaxed);
        self.offset += self.buffer.len() as u64;
        self.newest[self.current] = place.number;
        self.place = place;
        self.next = next_ids(changes.next.unwrap_or(self.next), changes);
        Ok(place)
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

fn io_error(error: std::io::Error) -> StoreError {
    StoreError::Failed(format!("the log: {error}"))
}
