//! The marker of a backup: a row that says where a copy comes from, so that no hub starts on it.

use std::path::{Path, PathBuf};

use rialto_core::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::row::{self, RowBuffer};
use super::snapshot::StoreSnapshot;
use super::{checkpoint, open_read_only, read, schema, store_error};
use crate::store::StoreError;

/// The name of the marker's row.
const STATE_NAME: &str = "backup";

/// Where a backup comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupMarker {
    pub taken_at: Timestamp,
    /// The original's epoch.
    pub epoch: u64,
    /// The original's data directory, or what its database is called.
    pub from: PathBuf,
}

/// Copies a consistent snapshot of a data directory, also while a hub writes to it, and marks the
/// copy. The copy is a single file without a WAL.
pub fn copy_store(
    dir: &Path,
    to: &Path,
    taken_at: Timestamp,
    from: PathBuf,
) -> Result<BackupMarker, StoreError> {
    write_copy(to, taken_at, from, |copy| StoreSnapshot::open(dir)?.copy_to(copy))
}

/// Fills an empty file and marks it as a copy.
pub fn write_copy(
    to: &Path,
    taken_at: Timestamp,
    from: PathBuf,
    fill: impl FnOnce(&mut Connection) -> Result<(), StoreError>,
) -> Result<BackupMarker, StoreError> {
    let mut copy = Connection::open(to).map_err(store_error)?;
    fill(&mut copy)?;
    let mode: String = copy
        .query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))
        .map_err(store_error)?;
    if mode != "delete" {
        return Err(StoreError::Failed(format!("the copy's journal mode is {mode}")));
    }
    copy.execute_batch("PRAGMA synchronous = FULL").map_err(store_error)?;
    let epoch = read::load_counters(&copy)?.unwrap_or_default().epoch;
    let mark = BackupMarker { taken_at, epoch, from };
    let mut page = RowBuffer::default();
    let (body, crc) = page.encode(ValueRef::Text(STATE_NAME.as_bytes()), &mark)?;
    let sql = "INSERT INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    copy.execute(sql, params![STATE_NAME, body, crc]).map_err(store_error)?;
    checkpoint::forget_log(&copy)?;
    copy.close().map_err(|(_, error)| store_error(error))?;
    Ok(mark)
}

/// Whether the file has the table for single values; an empty one has not.
pub fn has_state_table(db: &Connection) -> Result<bool, StoreError> {
    let exists = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'state')";
    db.query_row(exists, [], |row| row.get(0)).map_err(store_error)
}

/// The marker of a file, if it has one.
pub fn read_marker(db: &Connection) -> Result<Option<BackupMarker>, StoreError> {
    if !has_state_table(db)? {
        return Ok(None);
    }
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare(sql).map_err(store_error)?;
    let mut rows = statement.query([STATE_NAME]).map_err(store_error)?;
    let found = rows.next().map_err(store_error)?;
    found.map(|found| row::read_row("state", found)).transpose()
}

/// Refuses a file that is a backup.
pub fn reject_backup(db: &Connection) -> Result<(), StoreError> {
    match read_marker(db)? {
        Some(mark) => Err(StoreError::IsBackup { epoch: mark.epoch }),
        None => Ok(()),
    }
}

/// Removes the marker from a file, so that a hub may use it.
pub fn remove_marker(path: &Path) -> Result<(), StoreError> {
    let db = Connection::open(path).map_err(store_error)?;
    db.execute_batch("PRAGMA synchronous = FULL").map_err(store_error)?;
    db.execute("DELETE FROM state WHERE name = ?1", [STATE_NAME]).map_err(store_error)?;
    db.close().map_err(|(_, error)| store_error(error))
}

/// The marker of a file that is not in use.
pub fn read_marker_of_file(path: &Path) -> Result<Option<BackupMarker>, StoreError> {
    let db = open_read_only(path)?;
    schema::check_version(&db)?;
    read_marker(&db)
}
