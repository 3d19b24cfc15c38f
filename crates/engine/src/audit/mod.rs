//! The audit: an offline check of every invariant that can be recomputed.
//!
//! It reads one snapshot of the database and the log, and never writes to them, so a running hub
//! does not disturb it, and a killed one leaves everything it needs. If the database lacks batches
//! of the log, they are added to a temporary copy. Balances, scores, positions and states are
//! recomputed from the rows alone and compared with what the rows say.

mod claims;
mod database;
mod inboxes;
mod jobs;
mod ledger;
mod negotiated;
mod registrations;
mod reputation;
mod scratch;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use crate::store::StoreError;
use crate::store::sqlite::snapshot::StoreSnapshot;
use crate::store::sqlite::{DB_FILE, check_wal_of_stopped_hub, schema, store_error};
use tables::TableReader;

pub use database::audit_database;
pub(crate) use database::open_scratch;

/// Breaches reported in full; the rest are only counted.
const BREACHES_MAX: usize = 100;

/// The result of an audit.
#[derive(Debug, Serialize)]
pub struct Report {
    pub checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    /// Rows checked.
    pub rows: u64,
    /// The first hundred breaches.
    pub breaches: Vec<String>,
    pub breaches_total: u64,
}

impl Report {
    /// The number of breaches.
    pub fn breach_count(&self) -> u64 {
        self.checks.iter().map(|check| check.breaches_total).sum()
    }

    /// Whether there are no breaches.
    pub fn is_clean(&self) -> bool {
        self.checks.iter().all(|check| check.breaches_total == 0)
    }
}

impl Check {
    fn new(name: &'static str) -> Self {
        Self { name, rows: 0, breaches: Vec::new(), breaches_total: 0 }
    }

    /// Records a breach.
    fn add_breach(&mut self, what: impl FnOnce() -> String) {
        self.breaches_total += 1;
        if self.breaches.len() < BREACHES_MAX {
            self.breaches.push(what());
        }
    }

    /// Records a breach unless the condition holds.
    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add_breach(what);
        }
    }
}

/// Audits a data directory.
pub fn audit_dir(dir: &Path) -> Result<Report, StoreError> {
    let path = dir.join(DB_FILE);
    if !path.exists() {
        return Err(StoreError::Missing(dir.display().to_string()));
    }
    check_wal_of_stopped_hub(dir)?;
    let snapshot = StoreSnapshot::open(dir)?;
    if snapshot.is_complete() {
        return audit(&snapshot.db);
    }
    let mut copy = open_scratch()?;
    snapshot.copy_to(&mut copy)?;
    audit(&copy)
}

/// Audits one file that no log belongs to: of a backup, or of a hub that was stopped.
pub fn audit_file(path: &Path) -> Result<Report, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(store_error)?;
    // Everything is read from one snapshot.
    db.execute_batch("BEGIN").map_err(store_error)?;
    schema::check_version(&db)?;
    audit(&db)
}

/// Audits a database that is complete by itself.
pub(crate) fn audit(db: &Connection) -> Result<Report, StoreError> {
    let file = check_file(db)?;
    let mut rows = TableReader::new(db)?;
    let (people, keys, aliases) = registrations::load(&mut rows)?;
    let mut claims = claims::check(&mut rows)?;
    let books = ledger::check(&mut rows, &people)?;
    let jobs::JobChecks { states, holds, logs } =
        jobs::check(&mut rows, &people, books.holds, &books.movements, &mut claims)?;
    let reputation = reputation::check(&mut rows, &people)?;
    let inbox = inboxes::check(&mut rows, &people, logs)?;
    let (checksums, counters) = rows.into_checks()?;
    let [chain, sums, history, transfers] = books.checks;
    let checks = vec![
        file,
        chain,
        sums,
        history,
        transfers,
        holds,
        states,
        reputation,
        inbox,
        claims.check,
        aliases,
        keys,
        checksums,
        counters,
    ];
    Ok(Report { checks })
}

/// The file itself: its pages and trees.
fn check_file(db: &Connection) -> Result<Check, StoreError> {
    let mut check = Check::new("file");
    check.rows = db
        .query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))
        .map_err(store_error)?
        .unsigned_abs();
    let mut statement = db.prepare("PRAGMA integrity_check").map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let said: String = row.get(0).map_err(store_error)?;
        check.require(said == "ok", || said.clone());
    }
    Ok(check)
}

/// The ids a query returns.
fn query_ids(db: &Connection, sql: &str) -> Result<Vec<u64>, StoreError> {
    let mut statement = db.prepare(sql).map_err(store_error)?;
    let rows = statement.query_map([], |row| row.get::<_, i64>(0)).map_err(store_error)?;
    rows.map(|id| id.map(i64::unsigned_abs).map_err(store_error)).collect()
}
