//! Integrity check of the database file at start.
//!
//! Rows have checksums, but the trees that lead to them have none. A damaged table or tree can hide
//! a row, and a lookup would report that it never existed.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::{PAGE_BYTES, schema, store_error};
use crate::store::StoreError;

/// Pages that are checked at every start: 64 MiB, a few tenths of a second. `rialto audit` checks
/// larger files.
const PAGES_MAX: i64 = (64 << 20) / PAGE_BYTES as i64;

/// Refuses a file with damaged tables or trees.
pub fn check_file(db: &Connection) -> Result<(), StoreError> {
    if tables(db)? != tables(&schema::open_empty_in_memory()?)? {
        return Err(StoreError::Corrupt(
            "the tables do not match the schema of this version".to_owned(),
        ));
    }
    let pages: i64 =
        db.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(store_error)?;
    if pages > PAGES_MAX {
        return Ok(());
    }
    let found: String =
        db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(store_error)?;
    if found != "ok" {
        return Err(StoreError::Corrupt(found));
    }
    Ok(())
}

/// The SQL that created each table.
fn tables(db: &Connection) -> Result<BTreeMap<String, String>, StoreError> {
    let sql = "SELECT type || ' ' || name || ' ' || tbl_name, ifnull(sql, '') FROM sqlite_schema";
    let mut statement = db.prepare(sql).map_err(store_error)?;
    let rows =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(store_error)?;
    rows.map(|row| row.map_err(store_error)).collect()
}
