//! The embedded store: one SQLite file in WAL mode, fsynced at every commit.
//!
//! One connection writes, and belongs to the lane. Readers have connections of their own. A
//! background thread moves the log into the file, so that no commit has to.

mod checkpoint;
mod claims;
mod row;
mod schema;
mod write;

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rialto_core::changes::Changes;
use rialto_core::id::AnswerId;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{Key, Page, Reader, Row, Store, StoreError};
use checkpoint::Checkpointer;
use claims::Tail;

/// The database inside the data directory.
pub const FILE: &str = "rialto.db";
/// Held for as long as a hub uses the directory.
const LOCK: &str = "rialto.lock";
/// Pages of the writer's cache: 64 MiB.
const CACHE_KIB: i64 = -65_536;
/// A log that once had to be longer is cut back to this.
const LOG_BYTES_KEPT: u32 = checkpoint::LOG_PAGES_MAX * 4_096;
/// How long a connection waits for another.
const BUSY: Duration = Duration::from_secs(5);

/// What a failed call means for us.
fn trouble(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt(error.to_string())
        }
        _ => StoreError::Broken(error.to_string()),
    }
}

/// Rows in one file.
pub struct SqliteStore {
    db: Connection,
    path: PathBuf,
    tail: Arc<RwLock<Tail>>,
    checkpointer: Checkpointer,
    _lock: File,
}

impl SqliteStore {
    /// Opens or makes the store in a data directory.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let lock = lock(dir)?;
        let path = dir.join(FILE);
        let mut db = Connection::open(&path).map_err(trouble)?;
        db.busy_timeout(BUSY).map_err(trouble)?;
        let mode: String = db
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(trouble)?;
        // An error while switching silently leaves the old mode, and with it another durability.
        if mode != "wal" {
            return Err(StoreError::Broken(format!("journal mode is {mode}, not wal")));
        }
        db.execute_batch(&format!(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = {CACHE_KIB}; PRAGMA journal_size_limit = {LOG_BYTES_KEPT};"
        ))
        .map_err(trouble)?;
        db.set_prepared_statement_cache_capacity(128);
        schema::migrate(&db)?;
        let tail = Arc::new(RwLock::new(Tail::load(&db)?));
        let checkpointer = Checkpointer::start(&path, &mut db)?;
        Ok(Self { db, path, tail, checkpointer, _lock: lock })
    }
}

fn lock(dir: &Path) -> Result<File, StoreError> {
    let broken = |error: std::io::Error| StoreError::Broken(error.to_string());
    let path = dir.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(broken)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(StoreError::InUse(dir.display().to_string())),
        Err(std::fs::TryLockError::Error(error)) => Err(broken(error)),
    }
}

impl Store for SqliteStore {
    fn rebuild(&mut self) -> Result<Changes, StoreError> {
        write::rebuild(&self.db)
    }

    fn commit(&mut self, batch: &Changes, forgotten: &[AnswerId]) -> Result<(), StoreError> {
        self.checkpointer.before_commit(&self.db)?;
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(trouble)?;
        let written = write::batch(&self.db, batch, forgotten)
            .and_then(|()| self.tail.write().write(&self.db, &batch.claims))
            .and_then(|()| self.db.execute_batch("COMMIT").map_err(trouble));
        if let Err(error) = written {
            let _ = self.db.execute_batch("ROLLBACK");
            return Err(error);
        }
        self.tail.write().keep(&batch.claims);
        if self.tail.read().is_long() {
            self.tail.write().index_slice(&self.db)?;
        }
        self.checkpointer.committed();
        Ok(())
    }

    fn load(&mut self, key: Key) -> Result<Option<Row>, StoreError> {
        load(&self.db, &self.tail, key)
    }

    fn tend(&mut self) -> Result<bool, StoreError> {
        self.tail.write().index_slice(&self.db)
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&self.path, flags).map_err(trouble)?;
        db.set_prepared_statement_cache_capacity(32);
        Ok(Box::new(SqliteReader { db, tail: self.tail.clone(), gate: self.checkpointer.gate() }))
    }
}

/// Reads beside the lane; sees what is committed.
struct SqliteReader {
    gate: Arc<RwLock<()>>,
    db: Connection,
    tail: Arc<RwLock<Tail>>,
}

impl Reader for SqliteReader {
    fn load(&mut self, key: Key) -> Result<Option<Row>, StoreError> {
        let _gate = self.gate.read();
        load(&self.db, &self.tail, key)
    }

    fn page(&mut self, page: Page) -> Result<Vec<Row>, StoreError> {
        let _gate = self.gate.read();
        write::page(&self.db, page)
    }
}

fn load(db: &Connection, tail: &RwLock<Tail>, key: Key) -> Result<Option<Row>, StoreError> {
    Ok(match key {
        Key::Claim(digest) => {
            let newest = tail.read().get(digest);
            newest.map_or_else(|| claims::indexed(db, digest), |found| Ok(Some(found)))?.map(Row::Claim)
        }
        Key::Job(id) => {
            let archived = row::get(db, "archive", id.0)?;
            archived.map_or_else(|| row::get(db, "jobs", id.0), |job| Ok(Some(job)))?.map(Row::Job)
        }
        Key::Transfer(id) => row::get(db, "transfers", id.0)?.map(Row::Transfer),
        Key::Entry(id) => row::get(db, "entries", id.0)?.map(Row::Entry),
        Key::Notice(id) => row::get(db, "notices", id.0)?.map(Row::Notice),
        Key::Outcome(id) => row::get(db, "outcomes", id.0)?.map(Row::Outcome),
    })
}
