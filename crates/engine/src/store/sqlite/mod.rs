//! The SQLite store: one file in WAL mode, fsynced at every commit.
//!
//! One connection writes, and belongs to the lane. Readers have their own connections. A background
//! thread moves the WAL into the file, so that commits rarely have to.

pub(crate) mod backup;
mod bloom;
mod checkpoint;
pub(crate) mod claims;
mod durability;
pub(crate) mod inboxes;
pub(crate) mod notices;
pub(crate) mod read;
pub(crate) mod row;
#[cfg(feature = "testkit")]
pub mod row_probe;
pub(crate) mod schema;
mod table_loader;
#[cfg(test)]
mod tests;
mod wal;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rialto_core::changes::{Changes, ExpiredRows};
use rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE as LEAVE_THE_LOG;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{PageQuery, Reader, Row, RowKey, Store, StoreError};
use crate::metrics::Histogram;
use crate::permissions;
use bloom::FilterLoader;
use checkpoint::{Checkpointer, ReaderGate, WalLimits};
use claims::UnindexedClaims;
use inboxes::UnwrittenInboxes;

/// The database inside the data directory.
pub const DB_FILE: &str = "rialto.db";
/// Locked for as long as a hub uses the directory.
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

/// Rows in one file.
pub struct SqliteStore {
    // First, so that its connection is closed before the one that writes.
    _filter_loader: FilterLoader,
    db: Connection,
    path: PathBuf,
    unindexed: Arc<RwLock<UnindexedClaims>>,
    unwritten_inboxes: UnwrittenInboxes,
    checkpointer: Checkpointer,
    syncs: Arc<Histogram>,
    /// An error left it unknown what is on disk.
    failed: bool,
    _lock: File,
}

impl SqliteStore {
    /// Opens or creates the store in a data directory.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with_limits(dir, WalLimits::default())
    }

    fn open_with_limits(dir: &Path, limits: WalLimits) -> Result<Self, StoreError> {
        let lock = acquire_lock(dir)?;
        wal::check_wal(dir)?;
        let path = create_db_file(dir)?;
        let mut db = Connection::open(&path).map_err(store_error)?;
        db.busy_timeout(BUSY_TIMEOUT).map_err(store_error)?;
        // Until a clean close; see `drop`.
        db.set_db_config(LEAVE_THE_LOG, true).map_err(store_error)?;
        schema::check_version(&db)?;
        backup::reject_backup(&db)?;
        durability::configure(&db, limits)?;
        db.set_prepared_statement_cache_capacity(128);
        schema::migrate(&db)?;
        durability::check_file(&db)?;
        durability::sync_directories(dir)?;
        let tail = Arc::new(RwLock::new(UnindexedClaims::load(&db)?));
        let checkpointer = Checkpointer::start(&path, &mut db, limits)?;
        let behind = UnwrittenInboxes::default();
        let sieving =
            FilterLoader::start(open_read_only(&path)?, tail.clone(), checkpointer.gate())?;
        Ok(Self {
            _filter_loader: sieving,
            db,
            path,
            unindexed: tail,
            unwritten_inboxes: behind,
            checkpointer,
            syncs: Arc::new(Histogram::for_durations()),
            failed: false,
            _lock: lock,
        })
    }

    /// Runs a constant statement, which is parsed only once.
    fn execute(&self, sql: &'static str) -> Result<(), StoreError> {
        let mut statement = self.db.prepare_cached(sql).map_err(store_error)?;
        statement.execute([]).map(drop).map_err(store_error)
    }

    /// Runs one transaction: all of it or nothing.
    fn in_transaction<R>(
        &mut self,
        work: impl FnOnce(&Self) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let done = self.transaction(work);
        self.failed |= matches!(&done, Err(error) if !matches!(error, StoreError::Full));
        done
    }

    fn transaction<R>(
        &mut self,
        work: impl FnOnce(&Self) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        self.checkpointer.before_commit(&self.db)?;
        self.execute("BEGIN IMMEDIATE")?;
        let written = work(self).and_then(|done| {
            let began = Instant::now();
            self.execute("COMMIT")?;
            self.syncs.observe_duration(began.elapsed());
            Ok(done)
        });
        if written.is_err() && !self.db.is_autocommit() {
            // If the rollback fails too, the state is no longer certain.
            self.db
                .execute_batch("ROLLBACK")
                .map_err(|error| StoreError::Failed(error.to_string()))?;
        }
        self.checkpointer.after_commit();
        written
    }
}

impl Drop for SqliteStore {
    /// A clean close moves the WAL into the file. After an error nothing is touched: a repeated
    /// sync may succeed and would prove nothing.
    fn drop(&mut self) {
        let fine = self.checkpointer.stop() && !self.failed;
        let _ = self.db.set_db_config(LEAVE_THE_LOG, !fine);
        // SQLite does this only for the last connection, and readers may still be open.
        if fine && let Err(error) = self.checkpointer.truncate_wal(&self.db) {
            tracing::warn!(%error, "the WAL could not be moved into the database file; copy both files");
        }
    }
}

/// Creates the database file and returns its path. SQLite gives the files it creates beside it the
/// same permissions.
fn create_db_file(dir: &Path) -> Result<PathBuf, StoreError> {
    let path = dir.join(DB_FILE);
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

fn acquire_lock(dir: &Path) -> Result<File, StoreError> {
    let file = permissions::open_private_file(&dir.join(LOCK_FILE)).map_err(io_error)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse(dir.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => Err(io_error(error)),
    }
}

impl Store for SqliteStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        let (at_hand, behind) = read::load_hot_rows(&self.db)?;
        self.unwritten_inboxes = behind;
        Ok(at_hand)
    }

    fn commit(&mut self, batch: &Changes, forgotten: &ExpiredRows) -> Result<(), StoreError> {
        if batch.is_empty() && forgotten.is_empty() {
            self.unwritten_inboxes.record_batch(batch, false);
            return Ok(());
        }
        let all = self.unwritten_inboxes.must_write_all(batch);
        let moved = self.in_transaction(|store| {
            write::write_batch(&store.db, batch, forgotten)?;
            match all {
                true => inboxes::write_all(&store.db, &store.unwritten_inboxes, batch)?,
                false => inboxes::write_settled(&store.db, batch)?,
            }
            claims::append(&store.db, &batch.claims)?;
            let overflow = store.unindexed.read().overflow(batch.claims.len());
            claims::index_slice(&store.db, &overflow)?;
            Ok(overflow.len())
        })?;
        if moved + batch.claims.len() > 0 {
            let mut tail = self.unindexed.write();
            tail.remove_indexed(moved);
            tail.add(&batch.claims);
        }
        self.unwritten_inboxes.record_batch(batch, all);
        Ok(())
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        read::load_row(&self.db, &self.unindexed, key)
    }

    fn run_maintenance(&mut self) -> Result<bool, StoreError> {
        if !self.unwritten_inboxes.is_empty() {
            let nothing = Changes::default();
            self.in_transaction(|store| {
                inboxes::write_all(&store.db, &store.unwritten_inboxes, &nothing)
            })?;
            self.unwritten_inboxes.clear();
        }
        let slice = self.unindexed.read().next_slice();
        if slice.is_empty() {
            return Ok(false);
        }
        self.in_transaction(|store| claims::index_slice(&store.db, &slice))?;
        self.unindexed.write().remove_indexed(slice.len());
        Ok(!self.unindexed.read().next_slice().is_empty())
    }

    fn sync_durations(&self) -> Option<Arc<Histogram>> {
        Some(self.syncs.clone())
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        let db = open_read_only(&self.path)?;
        db.set_prepared_statement_cache_capacity(32);
        Ok(Box::new(SqliteReader {
            db,
            tail: self.unindexed.clone(),
            gate: self.checkpointer.gate(),
        }))
    }
}

/// Reads beside the lane; sees what is committed.
struct SqliteReader {
    db: Connection,
    tail: Arc<RwLock<UnindexedClaims>>,
    gate: ReaderGate,
}

impl Reader for SqliteReader {
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        let _pass = self.gate.enter();
        read::load_row(&self.db, &self.tail, key)
    }

    fn load_page(&mut self, page: PageQuery) -> Result<Vec<Row>, StoreError> {
        let _pass = self.gate.enter();
        read::load_page(&self.db, page)
    }
}
