//! The audit of a hub in PostgreSQL: one snapshot is copied into a temporary SQLite file, and audited
//! there like any other. The log is checked where it is.

use rusqlite::Connection;

use super::{Check, Report, audit};
use crate::store::StoreError;
use crate::store::postgres::admin::{DatabaseAdmin, LogCheck};
use crate::store::sqlite::store_error;

/// Audits the hub in a database, also while nodes run.
pub fn audit_database(url: &str) -> Result<Report, StoreError> {
    let mut database = DatabaseAdmin::open(url)?;
    let copy = open_scratch()?;
    let log = database.read_into(&copy)?;
    let mut report = audit(&copy)?;
    report.checks.insert(0, check_log(log));
    Ok(report)
}

/// An empty database that SQLite deletes when it is closed.
pub fn open_scratch() -> Result<Connection, StoreError> {
    // An empty name is a temporary file.
    let scratch = Connection::open("").map_err(store_error)?;
    scratch
        .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        .map_err(store_error)?;
    Ok(scratch)
}

fn check_log(log: LogCheck) -> Check {
    let breaches_total = log.problems.len() as u64;
    Check { name: "log", rows: log.rows, breaches: log.problems, breaches_total }
}
