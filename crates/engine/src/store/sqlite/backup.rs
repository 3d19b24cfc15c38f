//! The marker of a backup: a row that says where a copy comes from, so that no hub starts on it.

use std::path::{Path, PathBuf};

use rialto_core::time::Timestamp;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::row::{self, Page};
use super::{reading, read, schema, trouble};
use crate::store::StoreError;

/// The name of the marker's row.
const NAME: &str = "backup";

/// Where a backup comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub taken_at: Timestamp,
    /// The original's epoch.
    pub epoch: u64,
    /// The original's data directory.
    pub from: PathBuf,
}

/// Copies a consistent snapshot of a store's file, also while a hub writes to it, and marks the
/// copy. The copy is a single file without a WAL.
pub fn copy(
    path: &Path,
    to: &Path,
    taken_at: Timestamp,
    from: PathBuf,
) -> Result<Mark, StoreError> {
    let source = reading(path)?;
    schema::recognise(&source)?;
    refuse(&source)?;
    let mut copy = Connection::open(to).map_err(trouble)?;
    // All pages in one step are one snapshot; with several steps, each commit in between would
    // restart the copy. A reader blocks no writer; the hub's WAL grows a little meanwhile.
    let step = Backup::new(&source, &mut copy).and_then(|backup| backup.step(-1));
    if step.map_err(trouble)? != StepResult::Done {
        return Err(StoreError::Broken("the store was locked for too long".to_owned()));
    }
    let mode: String =
        copy.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0)).map_err(trouble)?;
    if mode != "delete" {
        return Err(StoreError::Broken(format!("the copy's journal mode is {mode}")));
    }
    copy.execute_batch("PRAGMA synchronous = FULL").map_err(trouble)?;
    let epoch = read::counters(&copy)?.unwrap_or_default().epoch;
    let mark = Mark { taken_at, epoch, from };
    let mut page = Page::default();
    let (body, crc) = page.encode(ValueRef::Text(NAME.as_bytes()), &mark)?;
    let sql = "INSERT INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    copy.execute(sql, params![NAME, body, crc]).map_err(trouble)?;
    copy.close().map_err(|(_, error)| trouble(error))?;
    Ok(mark)
}

/// The marker of a file, if it has one.
pub fn mark(db: &Connection) -> Result<Option<Mark>, StoreError> {
    let exists = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'state')";
    if !db.query_row(exists, [], |row| row.get::<_, bool>(0)).map_err(trouble)? {
        return Ok(None);
    }
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare(sql).map_err(trouble)?;
    let mut rows = statement.query([NAME]).map_err(trouble)?;
    let found = rows.next().map_err(trouble)?;
    found.map(|found| row::read("state", found)).transpose()
}

/// Refuses a file that is a backup.
pub fn refuse(db: &Connection) -> Result<(), StoreError> {
    match mark(db)? {
        Some(mark) => Err(StoreError::Backup { epoch: mark.epoch }),
        None => Ok(()),
    }
}

/// Removes the marker from a file, so that a hub may use it.
pub fn unmark(path: &Path) -> Result<(), StoreError> {
    let db = Connection::open(path).map_err(trouble)?;
    db.execute_batch("PRAGMA synchronous = FULL").map_err(trouble)?;
    db.execute("DELETE FROM state WHERE name = ?1", [NAME]).map_err(trouble)?;
    db.close().map_err(|(_, error)| trouble(error))
}

/// The marker of a file that is not in use.
pub fn mark_of(path: &Path) -> Result<Option<Mark>, StoreError> {
    let db = reading(path)?;
    schema::recognise(&db)?;
    mark(&db)
}
