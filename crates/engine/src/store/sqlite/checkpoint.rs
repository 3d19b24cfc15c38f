//! The checkpoint: a thread that writes the rows of the log to the tables, behind the lane.
//!
//! Each row that changed is written once, in key order, in one transaction with the place in the log
//! up to which the tables are now complete. After that the log may use its file again. The thread
//! also moves SQLite's own WAL into the database file. Its errors stop the next batch; if the disk
//! is full it tries again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};
use rialto_core::id::ClaimId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::row::{RowBuffer, read_row};
use super::{BUSY_TIMEOUT, backup, claims, inboxes, store_error, write};
use crate::store::claims::RecentClaims;
use crate::store::log::{LogId, Place};
use crate::store::unwritten::{
    AGE_MAX, Generation, UnwrittenRows, limit_divisor, yield_to_callers,
};
use crate::store::{FailureHandler, FailureReport, StoreError};

/// State row with the place in the log up to which the tables are complete.
const PLACE_STATE: &str = "log_place";
/// State row that says which log belongs to the file.
const LOG_STATE: &str = "log";
/// How long the thread waits for readers of other processes before it restarts the WAL. The gate
/// blocks our own readers.
const READER_TIMEOUT: Duration = Duration::from_millis(100);

/// How much may be unwritten.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointLimits {
    /// Bytes in a file of the log after which it goes on in the other.
    pub file_bytes: u64,
    /// Bytes of log after which the rows are written to the tables.
    pub log_bytes: u64,
    /// Bytes of log at which the lane waits for the thread.
    pub log_bytes_max: u64,
    /// Pages of SQLite's WAL after which it is moved into the file.
    pub wal_pages: u32,
    /// Pages at which readers have to wait for that.
    pub wal_pages_max: u32,
}

impl Default for CheckpointLimits {
    /// A start after a crash reads at most some 40 MB of log.
    fn default() -> Self {
        let (bytes, wal_pages) = ((8 << 20) / limit_divisor(), 4_096 / limit_divisor());
        Self {
            file_bytes: bytes.into(),
            log_bytes: bytes.into(),
            log_bytes_max: (2 * bytes).into(),
            wal_pages,
            wal_pages_max: 8 * wal_pages,
        }
    }
}

/// Our own readers enter through this, so that the thread can block them to restart the WAL.
#[derive(Clone, Default)]
pub struct ReaderGate(Arc<RwLock<()>>);

impl ReaderGate {
    /// Blocks a restart of the WAL for the duration of one statement.
    pub fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.0.read()
    }
}

/// What the lane, the readers and the thread share.
#[derive(Default)]
pub struct SharedRows {
    pub unwritten: RwLock<UnwrittenRows>,
    pub claims: RwLock<RecentClaims>,
    pub gate: ReaderGate,
    /// The newest batch that the tables have.
    pub checkpointed: Arc<AtomicU64>,
    /// The lane found nothing else to do.
    is_idle: AtomicBool,
    wal_pages: AtomicU32,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    failed: FailureReport,
    is_full: bool,
    /// How often the thread has tried to write.
    attempts: u64,
}

impl Progress {
    /// Whether the disk is still full: the thread found it so in an attempt after `since`, which is
    /// now if it is not known yet. Space may have come back since the last attempt.
    fn is_still_full(&self, since: &mut Option<u64>) -> bool {
        let since = *since.get_or_insert(self.attempts);
        self.is_full && self.attempts > since
    }
}

/// The thread.
pub struct Checkpointer {
    shared: Arc<SharedRows>,
    wakeup: Option<SyncSender<()>>,
    thread: Option<JoinHandle<Connection>>,
    limits: CheckpointLimits,
}

impl Checkpointer {
    /// Starts the thread, which owns the connection that writes.
    pub fn start(
        mut db: Connection,
        shared: Arc<SharedRows>,
        limits: CheckpointLimits,
    ) -> Result<Self, StoreError> {
        let counted = shared.clone();
        let count = move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            counted.wal_pages.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        };
        db.wal_hook(Some(count)).map_err(store_error)?;
        let (wakeup, wakeups) = sync_channel(1);
        let work = shared.clone();
        let thread = std::thread::Builder::new()
            .name("checkpoint".to_owned())
            .spawn(move || work.run(db, &wakeups, limits))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self { shared, wakeup: Some(wakeup), thread: Some(thread), limits })
    }

    /// Sets what is called when the thread fails.
    pub fn report_failures(&self, handler: FailureHandler) {
        self.shared.progress.lock().failed.set_handler(handler);
    }

    /// Waits until there is room for another batch, or reports the thread's error.
    pub fn make_room(&self) -> Result<(), StoreError> {
        let mut progress = self.shared.progress.lock();
        let mut since = None;
        loop {
            if let Some(error) = &progress.failed.error {
                return Err(error.clone());
            }
            let unwritten = self.shared.unwritten.read();
            if unwritten.active.bytes < self.limits.log_bytes_max || unwritten.frozen.is_empty() {
                return Ok(());
            }
            drop(unwritten);
            if progress.is_still_full(&mut since) {
                return Err(StoreError::Full);
            }
            self.wake();
            self.shared.changed.wait(&mut progress);
        }
    }

    /// Begins to write the unwritten rows, if there are enough or they are old, and none are being
    /// written.
    pub fn write_if_long(&self, age: Duration) {
        let mut unwritten = self.shared.unwritten.write();
        let is_due = unwritten.active.bytes >= self.limits.log_bytes || age >= AGE_MAX;
        if is_due && unwritten.frozen.is_empty() {
            unwritten.freeze();
            drop(unwritten);
            self.wake();
        }
    }

    /// Begins to write whatever is unwritten, and to index claims.
    pub fn write_all(&self) {
        let mut unwritten = self.shared.unwritten.write();
        if !unwritten.active.is_empty() && unwritten.frozen.is_empty() {
            unwritten.freeze();
        }
        drop(unwritten);
        self.shared.is_idle.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether nothing is unwritten.
    pub fn is_done(&self) -> bool {
        let unwritten = self.shared.unwritten.read();
        unwritten.active.is_empty() && unwritten.frozen.is_empty()
    }

    fn wake(&self) {
        // A wake-up that is already pending is enough.
        if let Some(wakeup) = &self.wakeup {
            let _ = wakeup.try_send(());
        }
    }

    /// Writes everything that is left and ends the thread. Returns its connection if all went well.
    pub fn stop(&mut self) -> Option<Connection> {
        let mut since = None;
        while !self.is_done() {
            self.write_all();
            let mut progress = self.shared.progress.lock();
            if progress.failed.error.is_some() || progress.is_still_full(&mut since) {
                break;
            }
            if !self.shared.unwritten.read().frozen.is_empty() {
                self.shared.changed.wait_for(&mut progress, Duration::from_millis(50));
            }
        }
        self.wakeup = None;
        let db = self.thread.take()?.join().ok()?;
        (self.is_done() && self.shared.progress.lock().failed.error.is_none()).then_some(db)
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.wakeup = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SharedRows {
    fn run(&self, db: Connection, wakeups: &Receiver<()>, limits: CheckpointLimits) -> Connection {
        yield_to_callers();
        while wakeups.recv().is_ok() {
            let written = self.write_generation(&db);
            let indexed = written.and_then(|()| match self.is_idle.swap(false, Ordering::AcqRel) {
                true => self.index_claims(&db),
                false => Ok(()),
            });
            let done = indexed.and_then(|()| self.checkpoint_wal(&db, limits));
            let mut progress = self.progress.lock();
            progress.attempts += 1;
            match done {
                Ok(()) => progress.is_full = false,
                Err(StoreError::Full) => {
                    tracing::warn!("disk full: the log could not be written to the tables");
                    progress.is_full = true;
                }
                Err(error) => {
                    tracing::error!(%error, "the log could not be written to the tables");
                    progress.failed.record(error);
                    self.changed.notify_all();
                    return db;
                }
            }
            self.changed.notify_all();
        }
        db
    }

    fn write_generation(&self, db: &Connection) -> Result<(), StoreError> {
        let Some(generation) = self.unwritten.read().frozen.front().cloned() else { return Ok(()) };
        let overflow = in_transaction(db, || {
            write_generation(db, &generation)?;
            let added = &generation.changes.claims;
            let Some(newest) = added.last() else { return Ok(Vec::new()) };
            let overflow = claims::overflow(&self.claims.read(), newest.id, added.len());
            claims::index_slice(db, &overflow)?;
            Ok(overflow)
        })?;
        self.claims.write().remove_indexed(overflow.len());
        self.unwritten.write().frozen.pop_front();
        self.checkpointed.store(generation.place.number, Ordering::Release);
        Ok(())
    }

    /// Adds claims to their index while there is nothing to write.
    fn index_claims(&self, db: &Connection) -> Result<(), StoreError> {
        let in_table = newest_claim(db)?;
        while self.unwritten.read().frozen.is_empty() {
            let slice = claims::next_slice(&self.claims.read(), in_table);
            if slice.is_empty() {
                return Ok(());
            }
            in_transaction(db, || claims::index_slice(db, &slice))?;
            self.claims.write().remove_indexed(slice.len());
        }
        Ok(())
    }

    /// Moves a long WAL into the database file.
    fn checkpoint_wal(&self, db: &Connection, limits: CheckpointLimits) -> Result<(), StoreError> {
        if self.wal_pages.load(Ordering::Relaxed) < limits.wal_pages {
            return Ok(());
        }
        let copied = run_checkpoint(db, "PASSIVE")?;
        if copied.log < limits.wal_pages_max {
            return Ok(());
        }
        // Readers kept SQLite from using the WAL again from its beginning.
        let _nobody_reads = self.gate.0.write();
        db.busy_timeout(READER_TIMEOUT).map_err(store_error)?;
        run_checkpoint(db, "RESTART")?;
        db.busy_timeout(BUSY_TIMEOUT).map_err(store_error)
    }

    /// Moves the whole WAL into the file, so that the file alone is complete. For shutdown, when
    /// nothing more is written.
    pub fn truncate_wal(&self, db: &Connection) -> Result<(), StoreError> {
        let _nobody_reads = self.gate.0.write();
        db.busy_timeout(READER_TIMEOUT).map_err(store_error)?;
        match run_checkpoint(db, "TRUNCATE")?.busy {
            false => Ok(()),
            true => Err(StoreError::Failed("another process is reading the database".to_owned())),
        }
    }
}

/// Runs one transaction: all of it or nothing.
pub fn in_transaction<R>(
    db: &Connection,
    work: impl FnOnce() -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    db.execute_batch("BEGIN IMMEDIATE").map_err(store_error)?;
    let written = work().and_then(|done| {
        db.execute_batch("COMMIT").map_err(store_error)?;
        Ok(done)
    });
    if written.is_err() && !db.is_autocommit() {
        // If the rollback fails too, the state is no longer certain.
        db.execute_batch("ROLLBACK").map_err(|error| StoreError::Failed(error.to_string()))?;
    }
    written
}

/// Writes the rows of a generation and its place, within a transaction of the caller.
pub fn write_generation(db: &Connection, generation: &Generation) -> Result<(), StoreError> {
    write::write_batch(db, &generation.changes, &generation.expired)?;
    inboxes::write_inboxes(db, &generation.changes)?;
    claims::append(db, &generation.changes.claims)?;
    write_place(db, generation.place)
}

/// Which log belongs to a file, and whether a hub has it open or was killed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogState {
    #[serde(with = "hex::serde")]
    pub id: LogId,
    pub is_open: bool,
}

/// The log of a file; `None` if it was not opened by this version yet, or is a copy.
pub fn read_log_state(db: &Connection) -> Result<Option<LogState>, StoreError> {
    read_state(db, LOG_STATE)
}

/// Writes which log belongs to the file.
pub fn write_log_state(db: &Connection, log: &LogState) -> Result<(), StoreError> {
    in_transaction(db, || write_state(db, LOG_STATE, log))
}

/// Separates a copy from the log of its original.
pub fn forget_log(db: &Connection) -> Result<(), StoreError> {
    db.execute("DELETE FROM state WHERE name = ?1", [LOG_STATE]).map(drop).map_err(store_error)
}

/// The place in the log up to which the tables are complete.
pub fn read_place(db: &Connection) -> Result<Place, StoreError> {
    read_state(db, PLACE_STATE).map(Option::unwrap_or_default)
}

/// Writes that place, within a transaction of the caller.
pub fn write_place(db: &Connection, place: Place) -> Result<(), StoreError> {
    write_state(db, PLACE_STATE, &place)
}

fn read_state<T: serde::de::DeserializeOwned>(
    db: &Connection,
    name: &str,
) -> Result<Option<T>, StoreError> {
    if !backup::has_state_table(db)? {
        return Ok(None);
    }
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([name]).map_err(store_error)?;
    let found = rows.next().map_err(store_error)?;
    found.map(|row| read_row("state", row)).transpose()
}

fn write_state<T: Serialize>(db: &Connection, name: &str, value: &T) -> Result<(), StoreError> {
    let mut page = RowBuffer::default();
    let (body, crc) = page.encode(ValueRef::Text(name.as_bytes()), value)?;
    let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    statement.execute(params![name, body, crc]).map(drop).map_err(store_error)
}

/// The newest claim in the table.
fn newest_claim(db: &Connection) -> Result<ClaimId, StoreError> {
    let sql = "SELECT ifnull(max(id), 0) FROM claims";
    let newest: i64 = db.query_row(sql, [], |row| row.get(0)).map_err(store_error)?;
    Ok(ClaimId(newest.unsigned_abs()))
}

/// SQLite's result of a checkpoint.
struct CheckpointProgress {
    /// A reader was in the way, and the WAL is not restarted.
    busy: bool,
    log: u32,
}

fn run_checkpoint(db: &Connection, mode: &str) -> Result<CheckpointProgress, StoreError> {
    let sql = format!("PRAGMA wal_checkpoint({mode})");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let copied = statement.query_row([], |row| {
        let log: i64 = row.get(1)?;
        Ok(CheckpointProgress { busy: row.get(0)?, log: u32::try_from(log).unwrap_or(0) })
    });
    copied.map_err(store_error)
}
