//! Integrity check of the database file at a start.
//!
//! Rows have checksums over their key and body, but the trees that lead to them have none. Damage to
//! a tree or to a key hides a row, and a lookup would report that it never existed.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row};

use super::row::check_row;
use super::{PAGE_BYTES, claims, notices, schema, store_error};
use crate::store::StoreError;

/// Pages that are checked at every start: 64 MiB, less than a second. `rialto audit` checks larger
/// files.
const PAGES_MAX: i64 = (64 << 20) / PAGE_BYTES as i64;

/// Tables of numbered rows that are read one at a time while the hub runs, and not at its start.
const COLD_TABLES: [&str; 7] =
    ["archive", "arrivals", "entries", "lines", "outcomes", "postings", "transfers"];

/// Refuses a file with damaged tables, trees or rows.
pub fn check_file(db: &Connection) -> Result<(), StoreError> {
    if tables(db)? != tables(&schema::open_empty_in_memory()?)? {
        return Err(StoreError::Corrupt(
            "the tables do not match the schema of this version".to_owned(),
        ));
    }
    // Its rows are found by name: one whose name is damaged would count as never written.
    for_each_row(db, "SELECT name, body, crc FROM state", |row| check_row("state", row))?;
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
    check_cold_rows(db)
}

/// Refuses rows that are not as they were written. Those that a start loads are checked then.
fn check_cold_rows(db: &Connection) -> Result<(), StoreError> {
    for table in COLD_TABLES {
        let sql = format!("SELECT id, body, crc FROM {table}");
        for_each_row(db, &sql, |row| check_row(table, row))?;
    }
    for_each_row(db, &notices::select_all(), |row| notices::read_notice(row).map(drop))?;
    let sql = "SELECT id, digest, target, crc FROM claims";
    for_each_row(db, sql, |row| claims::read_claim(row).map(drop))?;
    let indexed = claims::last_indexed(db)?;
    match claims::find_mismatches(db, indexed, 1)?.first() {
        Some(claim) => Err(StoreError::Corrupt(claims::describe_mismatch(*claim))),
        None => Ok(()),
    }
}

fn for_each_row(
    db: &Connection,
    sql: &str,
    check: impl Fn(&Row<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement = db.prepare(sql).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        check(row)?;
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
