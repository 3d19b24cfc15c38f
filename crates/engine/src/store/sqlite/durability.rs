//! Durability settings besides syncing: the journal mode, and syncing of directories.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;

use super::checkpoint::CheckpointLimits;
use super::{CACHE_KIB, PAGE_BYTES, io_error, store_error};
use crate::store::StoreError;

/// Errors of systems that do not sync directories, or do not let us.
const UNSUPPORTED: [ErrorKind; 4] = [
    ErrorKind::InvalidInput,
    ErrorKind::PermissionDenied,
    ErrorKind::ReadOnlyFilesystem,
    ErrorKind::Unsupported,
];

/// Configures durability, and checks that the settings took effect.
pub fn configure(db: &Connection) -> Result<(), StoreError> {
    // SQLite returns the new mode before it is on disk, so the statement is run to its end.
    let mut switch = db.prepare("PRAGMA journal_mode = WAL").map_err(store_error)?;
    let mut told = switch.query([]).map_err(store_error)?;
    while told.next().map_err(store_error)?.is_some() {}
    let mode: String =
        db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(store_error)?;
    // An error while switching silently leaves the old mode, which has another durability.
    if mode != "wal" {
        return Err(StoreError::Failed(format!("journal mode is {mode}, not wal")));
    }
    // A WAL that had to grow longer is truncated to its limit.
    let kept = CheckpointLimits::default().wal_pages_max * PAGE_BYTES;
    db.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
         PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = {kept};
         PRAGMA temp_store = MEMORY; PRAGMA cache_size = {CACHE_KIB};"
    ))
    .map_err(store_error)?;
    let level: i64 =
        db.query_row("PRAGMA synchronous", [], |row| row.get(0)).map_err(store_error)?;
    if level != 2 {
        return Err(StoreError::Failed(format!("synchronous is {level}, not full")));
    }
    Ok(())
}

/// Syncs the names of new files: without this a power cut can lose the whole directory.
pub fn sync_directories(dir: &Path) -> Result<(), StoreError> {
    let parent = dir.canonicalize().map_err(io_error)?;
    for dir in std::iter::once(dir).chain(parent.parent()) {
        let synced = File::open(dir).and_then(|names| names.sync_all());
        // Not every directory can be opened or synced; such systems persist names by themselves.
        if let Err(error) = synced
            && !UNSUPPORTED.contains(&error.kind())
        {
            return Err(io_error(error));
        }
    }
    Ok(())
}
