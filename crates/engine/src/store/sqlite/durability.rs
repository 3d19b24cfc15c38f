//! Durability settings besides syncing: the journal mode, and syncing of directories.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;

use super::checkpoint::Limits;
use super::{CACHE_KIB, PAGE, broken, trouble};
use crate::store::StoreError;

/// Errors of systems that do not sync directories, or do not let us.
const UNABLE: [ErrorKind; 4] = [
    ErrorKind::InvalidInput,
    ErrorKind::PermissionDenied,
    ErrorKind::ReadOnlyFilesystem,
    ErrorKind::Unsupported,
];

/// Configures durability, and checks that the settings took effect.
pub fn set(db: &Connection, limits: Limits) -> Result<(), StoreError> {
    // SQLite returns the new mode before it is on disk, so the statement is run to its end.
    let mut switch = db.prepare("PRAGMA journal_mode = WAL").map_err(trouble)?;
    let mut told = switch.query([]).map_err(trouble)?;
    while told.next().map_err(trouble)?.is_some() {}
    let mode: String =
        db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(trouble)?;
    // An error while switching silently leaves the old mode, which has another durability.
    if mode != "wal" {
        return Err(StoreError::Broken(format!("journal mode is {mode}, not wal")));
    }
    // A WAL that had to grow longer is truncated to its limit.
    let kept = limits.pages_max * PAGE;
    db.execute_batch(&format!(
        "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
         PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = {kept};
         PRAGMA temp_store = MEMORY; PRAGMA cache_size = {CACHE_KIB};"
    ))
    .map_err(trouble)?;
    let level: i64 = db.query_row("PRAGMA synchronous", [], |row| row.get(0)).map_err(trouble)?;
    if level != 2 {
        return Err(StoreError::Broken(format!("synchronous is {level}, not full")));
    }
    Ok(())
}

/// Syncs the names of new files: without this a power cut can lose the whole directory.
pub fn keep_names(dir: &Path) -> Result<(), StoreError> {
    let parent = dir.canonicalize().map_err(broken)?;
    for dir in std::iter::once(dir).chain(parent.parent()) {
        let synced = File::open(dir).and_then(|names| names.sync_all());
        // Not every directory can be opened or synced; such systems persist names by themselves.
        if let Err(error) = synced
            && !UNABLE.contains(&error.kind())
        {
            return Err(broken(error));
        }
    }
    Ok(())
}
