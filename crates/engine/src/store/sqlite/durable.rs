//! What durability rests on besides syncing: the log's mode, and the names of files.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;

use super::checkpoint::Limits;
use super::{CACHE_KIB, PAGE, broken, trouble};
use crate::store::StoreError;

/// How a system says that it does not sync directories, or not for us.
const UNABLE: [ErrorKind; 4] = [
    ErrorKind::InvalidInput,
    ErrorKind::PermissionDenied,
    ErrorKind::ReadOnlyFilesystem,
    ErrorKind::Unsupported,
];

/// Sets what durability rests on, and looks whether it took.
pub fn set(db: &Connection, limits: Limits) -> Result<(), StoreError> {
    // The new mode is told before it is on disk, so the statement is run to its end.
    let mut switch = db.prepare("PRAGMA journal_mode = WAL").map_err(trouble)?;
    let mut told = switch.query([]).map_err(trouble)?;
    while told.next().map_err(trouble)?.is_some() {}
    let mode: String =
        db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(trouble)?;
    // An error while switching silently leaves the old mode, and with it another durability.
    if mode != "wal" {
        return Err(StoreError::Broken(format!("journal mode is {mode}, not wal")));
    }
    // A log that once had to be longer is cut back to what it may be.
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

/// The names of new files are data too: without this a power cut can lose the whole directory.
pub fn keep_names(dir: &Path) -> Result<(), StoreError> {
    let parent = dir.canonicalize().map_err(broken)?;
    for dir in std::iter::once(dir).chain(parent.parent()) {
        let synced = File::open(dir).and_then(|names| names.sync_all());
        // Not every directory can be opened or synced; such systems keep names by themselves.
        if let Err(error) = synced
            && !UNABLE.contains(&error.kind())
        {
            return Err(broken(error));
        }
    }
    Ok(())
}
