//! The SQLite store: a log that is fsynced at every commit, and tables that are its checkpoint.
//!
//! One connection writes the tables, and belongs to the checkpoint thread. The lane and the readers
//! have their own connections, and look at the rows that are not in the tables yet first.

pub(crate) mod backup;
pub(crate) mod checkpoint;
pub(crate) mod claims;
pub(crate) mod durability;
pub(crate) mod inboxes;
mod integrity;
pub(crate) mod notices;
pub(crate) mod read;
pub(crate) mod row;
#[cfg(feature = "testkit")]
pub mod row_probe;
pub(crate) mod schema;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;
mod wal;
mod write;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rialto_core::changes::{Changes, ExpiredRows};
#[cfg(test)]
use rialto_core::id::ClaimId;
use rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE as LEAVE_THE_LOG;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::bloom::FilterLoader;
use super::log::{self, LogId, LogOptions, LogWriter, LoggedBatch, Place};
use super::unwritten::join_page;
use super::{
    BatchLog, FailureHandler, PageQuery, Reader, RecentRows, Row, RowKey, Store, StoreError,
};
use crate::metrics::Histogram;
use crate::permissions;
use checkpoint::{CheckpointLimits, Checkpointer, LogState, SharedRows};

/// The database inside the data directory.
pub const DB_FILE: &str = "rialto.db";
/// Locked for as long as a hub uses the directory. Has content once the directory has a database.
const LOCK_FILE: &str = "rialto.lock";
/// Pages of the writer's cache: 8 MiB. SQLite walks the whole table of a cache at every commit, so
/// a large one costs more than it saves; the OS caches the file anyway.
const CACHE_KIB: i64 = -8_192;
/// Bytes in a page, for files made by this program.
const PAGE_BYTES: u32 = 4_096;
/// How long a connection waits for another.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Converts an SQLite error.
pub(crate) fn store_error(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt(error.to_string())
        }
        _ => StoreError::Failed(error.to_string()),
    }
}

fn io_error(error: std::io::Error) -> StoreError {
    StoreError::Failed(error.to_string())
}

/// Batches in a log, and rows in one file.
pub struct SqliteStore {
    // First, so that its connection is closed before the one that writes.
    _filter_loader: FilterLoader,
    dir: PathBuf,
    /// For the lane's own reads.
    db: Connection,
    shared: Arc<SharedRows>,
    checkpointer: Checkpointer,
    log: Arc<Mutex<LogWriter>>,
    log_id: LogId,
    /// Bytes appended to the log since the start, and before the current generation.
    log_bytes: Arc<AtomicU64>,
    bytes_before: u64,
    /// When the current generation began.
    since: Instant,
    syncs: Arc<Histogram>,
    /// The batches after the last checkpoint, until the world has them.
    tail: Vec<LoggedBatch>,
    _lock: DirectoryLock,
}

impl SqliteStore {
    /// Opens or creates the store in a data directory.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with_limits(dir, CheckpointLimits::default())
    }

    fn open_with_limits(dir: &Path, limits: CheckpointLimits) -> Result<Self, StoreError> {
        let lock = acquire_lock(dir)?;
        wal::check_wal(dir)?;
        let path = create_db_file(dir, &lock)?;
        let writer = open_for_writing(&path)?;
        let (log_id, place) = open_log_state(&writer, dir, limits.file_bytes)?;
        lock.record_database()?;
        let shared = Arc::new(SharedRows::default());
        shared.checkpointed.store(place.number, Ordering::Release);
        shared.unwritten.write().active.place = place;
        let syncs = Arc::new(Histogram::for_durations());
        let log_bytes = Arc::new(AtomicU64::new(0));
        let options = LogOptions {
            id: log_id,
            place,
            next: read::load_counters(&writer)?.unwrap_or_default(),
            file_bytes: limits.file_bytes,
            checkpointed: shared.checkpointed.clone(),
            syncs: syncs.clone(),
            bytes: log_bytes.clone(),
        };
        let (log, tail) = LogWriter::open(dir, options)?;
        durability::sync_directories(dir)?;
        *shared.claims.write() = claims::load_unindexed(&writer)?;
        let db = open_read_only(&path)?;
        db.set_prepared_statement_cache_capacity(128);
        let filter = open_read_only(&path)?;
        let filter_loader = start_filter_loader(filter, shared.clone())?;
        let checkpointer = Checkpointer::start(writer, shared.clone(), limits)?;
        let mut store = Self {
            _filter_loader: filter_loader,
            dir: dir.to_owned(),
            db,
            shared,
            checkpointer,
            log: Arc::new(Mutex::new(log)),
            log_id,
            log_bytes,
            bytes_before: 0,
            since: Instant::now(),
            syncs,
            tail: Vec::new(),
            _lock: lock,
        };
        for LoggedBatch { place, batch, .. } in &tail {
            store.publish(Some(*place), &batch.changes, &batch.expired);
        }
        store.tail = tail;
        Ok(store)
    }

    /// Writes everything to the tables, fills the index of claims, and waits for both.
    #[cfg(test)]
    pub(crate) fn write_tables(&self) {
        let is_indexed = || {
            let newest = ClaimId(u64::MAX);
            claims::next_slice(&self.shared.claims.read(), newest).is_empty()
        };
        while !(self.checkpointer.is_done() && is_indexed()) {
            self.checkpointer.make_room().expect("the tables can be written");
            self.checkpointer.write_all();
            std::thread::yield_now();
        }
    }

    /// Writes everything to the tables and ends the log, so that the file is complete by itself.
    fn close(&mut self, db: &Connection) -> Result<(), StoreError> {
        checkpoint::write_log_state(db, &LogState { id: self.log_id, is_open: false })?;
        // SQLite does this only for the last connection, and readers may still be open.
        if let Err(error) = self.shared.truncate_wal(db) {
            tracing::warn!(%error, "the WAL could not be moved into the database file; copy both files");
        }
        log::remove(&self.dir).map_err(io_error)
    }
}

impl Drop for SqliteStore {
    /// After an error nothing is touched: a repeated sync may succeed and would prove nothing.
    fn drop(&mut self) {
        if self.log.lock().has_failed() {
            return;
        }
        if let Some(db) = self.checkpointer.stop()
            && let Err(error) = self.close(&db)
        {
            tracing::warn!(%error, "the log could not be ended; the next start reads it");
        }
    }
}

/// The connection that writes, with the current schema.
fn open_for_writing(path: &Path) -> Result<Connection, StoreError> {
    let db = Connection::open(path).map_err(store_error)?;
    db.busy_timeout(BUSY_TIMEOUT).map_err(store_error)?;
    // The WAL is moved into the file by a clean close only.
    db.set_db_config(LEAVE_THE_LOG, true).map_err(store_error)?;
    schema::check_version(&db)?;
    backup::reject_backup(&db)?;
    audit_before_migration(&db, path)?;
    durability::configure(&db)?;
    db.set_prepared_statement_cache_capacity(128);
    schema::migrate(&db)?;
    integrity::check_file(&db)?;
    Ok(db)
}

/// Fills the filter of claims beside the lane.
fn start_filter_loader(
    db: Connection,
    shared: Arc<SharedRows>,
) -> Result<FilterLoader, StoreError> {
    let mut after = None;
    FilterLoader::start(move || {
        let _pass = shared.gate.enter();
        after = claims::fill_filter(&db, &shared.claims, after)?;
        Ok(after.is_some())
    })
}

/// Files of older versions are audited before anything in them is changed.
fn audit_before_migration(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let found = schema::version(db)?;
    if found == 0 || found == schema::SCHEMA_VERSION {
        return Ok(());
    }
    tracing::info!(
        from = found,
        to = schema::SCHEMA_VERSION,
        "migrating the store; auditing it first"
    );
    let report = crate::audit::audit_file(path)?;
    let first = report.checks.iter().flat_map(|check| &check.breaches).next();
    match first {
        None => Ok(()),
        Some(first) => Err(StoreError::Corrupt(format!(
            "the audit before the migration to schema {} found {} problems, first: {first}; \
             nothing was changed",
            schema::SCHEMA_VERSION,
            report.breach_count()
        ))),
    }
}

/// Which log belongs to the file, and up to where the tables are complete. From now on the log is
/// in use, and a start without its files is refused.
fn open_log_state(
    db: &Connection,
    dir: &Path,
    file_bytes: u64,
) -> Result<(LogId, Place), StoreError> {
    let place = checkpoint::read_place(db)?;
    let id = match checkpoint::read_log_state(db)? {
        Some(LogState { id, is_open: true }) => {
            log::require_files(dir)?;
            return Ok((id, place));
        }
        Some(LogState { id, is_open: false }) => id,
        None => {
            let mut id = LogId::default();
            getrandom::fill(&mut id).map_err(|error| StoreError::Failed(error.to_string()))?;
            id
        }
    };
    // Created before the state says so.
    log::create(dir, id, file_bytes)?;
    checkpoint::write_log_state(db, &LogState { id, is_open: true })?;
    Ok((id, place))
}

/// Creates the database file and returns its path. SQLite gives the files it creates beside it the
/// same permissions.
fn create_db_file(dir: &Path, lock: &DirectoryLock) -> Result<PathBuf, StoreError> {
    let path = dir.join(DB_FILE);
    let length = |path: &Path| path.metadata().map_or(0, |file| file.len());
    if length(&path) == 0 {
        // SQLite deletes the WAL of an empty database.
        let [first, second] = log::log_paths(dir);
        let beside = [dir.join(format!("{DB_FILE}-wal")), first, second];
        if let Some(left) = beside.iter().find(|path| length(path) > 0) {
            return Err(StoreError::Corrupt(format!(
                "{DB_FILE} is missing or empty, and {} belongs to it; put {DB_FILE} back, or \
                 restore a backup into an empty directory",
                left.file_name().unwrap_or_default().display()
            )));
        }
        if path.exists() && lock.has_database()? {
            return Err(StoreError::Corrupt(format!(
                "{DB_FILE} is empty, and a hub has used it; restore a backup into an empty \
                 directory, or delete {DB_FILE} to start a new hub"
            )));
        }
    }
    permissions::open_private_file(&path).map_err(io_error)?;
    for beside in ["-wal", "-shm"] {
        permissions::restrict_file(&dir.join(format!("{DB_FILE}{beside}")));
    }
    Ok(path)
}

/// A read-only connection.
fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(store_error)?;
    db.busy_timeout(BUSY_TIMEOUT).map_err(store_error)?;
    Ok(db)
}

/// Refuses a damaged WAL, unless a hub is writing it now; that hub has checked it already.
pub(crate) fn check_wal_of_stopped_hub(dir: &Path) -> Result<(), StoreError> {
    if is_in_use(dir) { Ok(()) } else { wal::check_wal(dir) }
}

/// Whether a hub is running on this data directory.
pub(crate) fn is_in_use(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK_FILE));
    matches!(lock.as_ref().map(File::try_lock_shared), Ok(Err(_)))
}

/// The lock of a data directory. It is released when this is dropped, also if a process that was
/// being started at that moment still has the file open.
pub(crate) struct DirectoryLock(File);

impl DirectoryLock {
    /// Whether the directory has had a database: an empty one is damaged then, and not the rest of
    /// a first start that was interrupted.
    fn has_database(&self) -> Result<bool, StoreError> {
        Ok(self.0.metadata().map_err(io_error)?.len() > 0)
    }

    /// Records that the directory has a database.
    fn record_database(&self) -> Result<(), StoreError> {
        if self.has_database()? {
            return Ok(());
        }
        (&self.0).write_all(b"This directory has a database.\n").map_err(io_error)?;
        self.0.sync_all().map_err(io_error)
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing the file releases it too, unless another process has it open.
        let _ = self.0.unlock();
    }
}

pub(crate) fn acquire_lock(dir: &Path) -> Result<DirectoryLock, StoreError> {
    let file = permissions::open_private_file(&dir.join(LOCK_FILE)).map_err(io_error)?;
    match file.try_lock() {
        Ok(()) => Ok(DirectoryLock(file)),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse(dir.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => Err(io_error(error)),
    }
}

impl Store for SqliteStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        let (hot_rows, behind) = read::load_hot_rows(&self.db)?;
        let mut unwritten = self.shared.unwritten.write();
        for (id, inbox) in behind {
            unwritten.active.changes.inboxes.entry(id).or_insert(inbox);
        }
        Ok(hot_rows)
    }

    fn take_tail(&mut self) -> Vec<LoggedBatch> {
        std::mem::take(&mut self.tail)
    }

    fn make_room(&mut self) -> Result<(), StoreError> {
        self.checkpointer.make_room()
    }

    fn log(&self) -> Arc<Mutex<dyn BatchLog>> {
        self.log.clone()
    }

    fn publish(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        if !changes.claims.is_empty() {
            self.shared.claims.write().add(&changes.claims);
        }
        let bytes = self.log_bytes.load(Ordering::Relaxed);
        let mut unwritten = self.shared.unwritten.write();
        if unwritten.active.is_empty() {
            (self.bytes_before, self.since) = (bytes, Instant::now());
        }
        unwritten.active.add(place, changes, expired);
        unwritten.active.bytes = bytes - self.bytes_before;
        drop(unwritten);
        self.checkpointer.write_if_long(self.since.elapsed());
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        load_row(&self.db, &self.shared, key)
    }

    fn recent_rows(&self) -> Option<Arc<dyn RecentRows>> {
        Some(self.shared.clone())
    }

    fn report_failures(&mut self, handler: FailureHandler) {
        self.checkpointer.report_failures(handler);
    }

    fn run_maintenance(&mut self) -> Result<(), StoreError> {
        self.checkpointer.make_room()?;
        self.checkpointer.write_all();
        Ok(())
    }

    fn sync_durations(&self) -> Option<Arc<Histogram>> {
        Some(self.syncs.clone())
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        let db = open_read_only(&self.dir.join(DB_FILE))?;
        db.set_prepared_statement_cache_capacity(32);
        Ok(Box::new(SqliteReader { db, shared: self.shared.clone() }))
    }
}

impl RecentRows for SharedRows {
    fn get(&self, key: RowKey) -> Option<Option<Row>> {
        match key {
            RowKey::Claim(digest) => {
                self.claims.read().get(digest).map(|claim| Some(Row::Claim(claim)))
            }
            key => self.unwritten.read().get(key),
        }
    }
}

/// One row. The tables are read last: a row that is written to them in between is found there.
fn load_row(db: &Connection, shared: &SharedRows, key: RowKey) -> Result<Option<Row>, StoreError> {
    if let Some(row) = shared.get(key) {
        return Ok(row);
    }
    let _pass = shared.gate.enter();
    read::load_row(db, &shared.claims, key)
}

/// Reads beside the lane; sees what is published.
struct SqliteReader {
    db: Connection,
    shared: Arc<SharedRows>,
}

impl Reader for SqliteReader {
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        load_row(&self.db, &self.shared, key)
    }

    fn load_page(&mut self, page: PageQuery) -> Result<Vec<Row>, StoreError> {
        let unwritten = self.shared.unwritten.read().page(page);
        let _pass = self.shared.gate.enter();
        Ok(join_page(page, unwritten, read::load_page(&self.db, page)?))
    }
}
