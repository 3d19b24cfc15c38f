//! The SQLite store: one file in WAL mode, fsynced at every commit.
//!
//! One connection writes, and belongs to the lane. Readers have their own connections. A background
//! thread moves the WAL into the file, so that commits rarely have to.

pub(crate) mod backup;
mod checkpoint;
pub(crate) mod claims;
mod durability;
mod bloom;
mod wal;
pub(crate) mod inboxes;
pub(crate) mod notices;
pub(crate) mod read;
#[cfg(feature = "testkit")]
pub mod row_probe;
pub(crate) mod row;
pub(crate) mod schema;
mod filter_loader;
#[cfg(test)]
mod tests;
mod integrity;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use rialto_core::changes::{Changes, Forgotten};
use rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE as LEAVE_THE_LOG;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Key, Page, Reader, Row, Store, StoreError};
use crate::metrics::Histogram;
use crate::permissions;
use checkpoint::{Checkpointer, Gate, Limits};
use claims::Tail;
use inboxes::Behind;
use filter_loader::Sieving;

/// The database inside the data directory.
pub const FILE: &str = "rialto.db";
/// Locked for as long as a hub uses the directory.
const LOCK: &str = "rialto.lock";
/// Pages of the writer's cache: 8 MiB. SQLite walks the whole table of a cache at every commit, so
/// a large one costs more than it saves; the OS caches the file anyway.
const CACHE_KIB: i64 = -8_192;
/// Bytes in a page, for files made by this program.
const PAGE: u32 = 4_096;
/// How long a connection waits for another.
const BUSY: Duration = Duration::from_secs(5);

/// Converts an SQLite error.
pub(crate) fn trouble(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt(error.to_string())
        }
        _ => StoreError::Broken(error.to_string()),
    }
}

fn broken(error: std::io::Error) -> StoreError {
    StoreError::Broken(error.to_string())
}

/// Rows in one file.
pub struct SqliteStore {
    // First, so that its connection is closed before the one that writes.
    _sieving: Sieving,
    db: Connection,
    path: PathBuf,
    tail: Arc<RwLock<Tail>>,
    behind: Behind,
    checkpointer: Checkpointer,
    syncs: Arc<Histogram>,
    /// An error left it unknown what is on disk.
    failed: bool,
    _lock: File,
}

impl SqliteStore {
    /// Opens or creates the store in a data directory.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_limited(dir, Limits::default())
    }

    fn open_limited(dir: &Path, limits: Limits) -> Result<Self, StoreError> {
        let lock = lock(dir)?;
        wal::check(dir)?;
        let path = own_file(dir)?;
        let mut db = Connection::open(&path).map_err(trouble)?;
        db.busy_timeout(BUSY).map_err(trouble)?;
        // Until a clean close; see `drop`.
        db.set_db_config(LEAVE_THE_LOG, true).map_err(trouble)?;
        schema::recognise(&db)?;
        backup::refuse(&db)?;
        durability::set(&db, limits)?;
        db.set_prepared_statement_cache_capacity(128);
        schema::migrate(&db)?;
        integrity::check(&db)?;
        durability::keep_names(dir)?;
        let tail = Arc::new(RwLock::new(Tail::load(&db)?));
        let checkpointer = Checkpointer::start(&path, &mut db, limits)?;
        let behind = Behind::default();
        let sieving = Sieving::start(reading(&path)?, tail.clone(), checkpointer.gate())?;
        Ok(Self {
            _sieving: sieving,
            db,
            path,
            tail,
            behind,
            checkpointer,
            syncs: Arc::new(Histogram::seconds()),
            failed: false,
            _lock: lock,
        })
    }

    /// Runs a constant statement, which is parsed only once.
    fn say(&self, sql: &'static str) -> Result<(), StoreError> {
        let mut statement = self.db.prepare_cached(sql).map_err(trouble)?;
        statement.execute([]).map(drop).map_err(trouble)
    }

    /// Runs one transaction: all of it or nothing.
    fn at_once<R>(
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
        self.say("BEGIN IMMEDIATE")?;
        let written = work(self).and_then(|done| {
            let began = Instant::now();
            self.say("COMMIT")?;
            self.syncs.time(began.elapsed());
            Ok(done)
        });
        if written.is_err() && !self.db.is_autocommit() {
            // If the rollback fails too, the state is no longer certain.
            self.db
                .execute_batch("ROLLBACK")
                .map_err(|error| StoreError::Broken(error.to_string()))?;
        }
        self.checkpointer.committed();
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
        if fine && let Err(error) = self.checkpointer.empty_the_log(&self.db) {
            tracing::warn!(%error, "the WAL could not be moved into the database file; copy both files");
        }
    }
}

/// Creates the database file and returns its path. SQLite gives the files it creates beside it the
/// same permissions.
fn own_file(dir: &Path) -> Result<PathBuf, StoreError> {
    let path = dir.join(FILE);
    permissions::file(&path).map_err(broken)?;
    for beside in ["-wal", "-shm"] {
        permissions::narrow_file(&dir.join(format!("{FILE}{beside}")));
    }
    Ok(path)
}

/// A read-only connection.
fn reading(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(trouble)?;
    db.busy_timeout(BUSY).map_err(trouble)?;
    Ok(db)
}

/// Refuses a damaged WAL, unless a hub is writing it now; that hub has checked it already.
pub(crate) fn log_is_sound(dir: &Path) -> Result<(), StoreError> {
    if is_in_use(dir) { Ok(()) } else { wal::check(dir) }
}

/// Whether a hub is running on this data directory.
pub(crate) fn is_in_use(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK));
    matches!(lock.as_ref().map(File::try_lock_shared), Ok(Err(_)))
}

fn lock(dir: &Path) -> Result<File, StoreError> {
    let file = permissions::file(&dir.join(LOCK)).map_err(broken)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse(dir.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => Err(broken(error)),
    }
}

impl Store for SqliteStore {
    fn rebuild(&mut self) -> Result<Changes, StoreError> {
        let (at_hand, behind) = read::rebuild(&self.db)?;
        self.behind = behind;
        Ok(at_hand)
    }

    fn commit(&mut self, batch: &Changes, forgotten: &Forgotten) -> Result<(), StoreError> {
        if batch.is_empty() && forgotten.is_empty() {
            self.behind.keep(batch, false);
            return Ok(());
        }
        let all = self.behind.is_far(batch);
        let moved = self.at_once(|store| {
            write::batch(&store.db, batch, forgotten)?;
            match all {
                true => inboxes::catch_up(&store.db, &store.behind, batch)?,
                false => inboxes::settle(&store.db, batch)?,
            }
            claims::append(&store.db, &batch.claims)?;
            let overflow = store.tail.read().overflow(batch.claims.len());
            claims::index(&store.db, &overflow)?;
            Ok(overflow.len())
        })?;
        if moved + batch.claims.len() > 0 {
            let mut tail = self.tail.write();
            tail.release(moved);
            tail.keep(&batch.claims);
        }
        self.behind.keep(batch, all);
        Ok(())
    }

    fn load(&mut self, key: Key) -> Result<Option<Row>, StoreError> {
        read::load(&self.db, &self.tail, key)
    }

    fn tend(&mut self) -> Result<bool, StoreError> {
        if !self.behind.is_empty() {
            let nothing = Changes::default();
            self.at_once(|store| inboxes::catch_up(&store.db, &store.behind, &nothing))?;
            self.behind.clear();
        }
        let slice = self.tail.read().slice();
        if slice.is_empty() {
            return Ok(false);
        }
        self.at_once(|store| claims::index(&store.db, &slice))?;
        self.tail.write().release(slice.len());
        Ok(!self.tail.read().slice().is_empty())
    }

    fn sync_times(&self) -> Option<Arc<Histogram>> {
        Some(self.syncs.clone())
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        let db = reading(&self.path)?;
        db.set_prepared_statement_cache_capacity(32);
        Ok(Box::new(SqliteReader { db, tail: self.tail.clone(), gate: self.checkpointer.gate() }))
    }
}

/// Reads beside the lane; sees what is committed.
struct SqliteReader {
    db: Connection,
    tail: Arc<RwLock<Tail>>,
    gate: Gate,
}

impl Reader for SqliteReader {
    fn load(&mut self, key: Key) -> Result<Option<Row>, StoreError> {
        let _pass = self.gate.pass();
        read::load(&self.db, &self.tail, key)
    }

    fn page(&mut self, page: Page) -> Result<Vec<Row>, StoreError> {
        let _pass = self.gate.pass();
        read::page(&self.db, page)
    }
}
