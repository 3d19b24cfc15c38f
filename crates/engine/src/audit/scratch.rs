//! A temporary database for sums that may not fit in memory.

use rusqlite::{Connection, params};

use crate::store::StoreError;
use crate::store::sqlite::store_error;

/// What one job moved, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobMovements {
    pub held: i64,
    pub captured: i64,
    pub released: i64,
    /// How many holds were made.
    pub holds: i64,
    /// Whose held balance it passed through, and which owner was paid; `MULTIPLE_OWNERS` if that
    /// varied.
    pub payer: Option<i64>,
    pub payee: Option<i64>,
}

/// No owner has this id.
const MULTIPLE_OWNERS: i64 = -1;

/// One table for each kind of record.
pub struct ScratchDb(Connection);

impl ScratchDb {
    /// An empty database.
    pub fn new() -> Result<Self, StoreError> {
        // An empty name is a temporary file that SQLite deletes when it is closed.
        let db = Connection::open("").map_err(store_error)?;
        db.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;
             CREATE TABLE moved (job INTEGER PRIMARY KEY, held INTEGER, captured INTEGER,
                                 released INTEGER, holds INTEGER, payer INTEGER, payee INTEGER);
             CREATE TABLE seen (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID;
             CREATE TABLE replaced (digest BLOB, claim INTEGER, target TEXT,
                                    PRIMARY KEY (digest, claim)) WITHOUT ROWID;",
        )
        .map_err(store_error)?;
        db.set_prepared_statement_cache_capacity(16);
        Ok(Self(db))
    }

    /// Adds to what a job moved.
    pub fn add_movements(&self, job: u64, more: JobMovements) -> Result<(), StoreError> {
        let mut statement = self
            .0
            .prepare_cached(
                "INSERT INTO moved VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (job) DO UPDATE SET held = held + ?2, captured = captured + ?3,
                     released = released + ?4, holds = holds + ?5,
                     payer = iif(coalesce(payer <> ?6, 0), ?8, coalesce(payer, ?6)),
                     payee = iif(coalesce(payee <> ?7, 0), ?8, coalesce(payee, ?7))",
            )
            .map_err(store_error)?;
        let JobMovements { held, captured, released, holds, payer, payee } = more;
        let row =
            params![job as i64, held, captured, released, holds, payer, payee, MULTIPLE_OWNERS];
        statement.execute(row).map_err(store_error)?;
        Ok(())
    }

    /// Takes what a job moved. What remains at the end belongs to jobs that do not exist.
    pub fn take_movements(&self, job: u64) -> Result<JobMovements, StoreError> {
        let sql = "DELETE FROM moved WHERE job = ?1
                   RETURNING held, captured, released, holds, payer, payee";
        let mut statement = self.0.prepare_cached(sql).map_err(store_error)?;
        let mut rows = statement.query([job as i64]).map_err(store_error)?;
        let mut moved = JobMovements::default();
        while let Some(row) = rows.next().map_err(store_error)? {
            moved = JobMovements {
                held: row.get(0).map_err(store_error)?,
                captured: row.get(1).map_err(store_error)?,
                released: row.get(2).map_err(store_error)?,
                holds: row.get(3).map_err(store_error)?,
                payer: row.get(4).map_err(store_error)?,
                payee: row.get(5).map_err(store_error)?,
            };
        }
        Ok(moved)
    }

    /// Jobs that moved something and were not taken.
    pub fn remaining_jobs(&self) -> Result<Vec<u64>, StoreError> {
        let mut statement =
            self.0.prepare("SELECT job FROM moved LIMIT 1000").map_err(store_error)?;
        let rows = statement.query_map([], |row| row.get::<_, i64>(0)).map_err(store_error)?;
        rows.map(|id| id.map(i64::unsigned_abs).map_err(store_error)).collect()
    }

    /// Records a pair; false if it was there already.
    pub fn insert_pair(&self, a: u64, b: u64) -> Result<bool, StoreError> {
        let sql = "INSERT OR IGNORE INTO seen VALUES (?1, ?2)";
        let mut statement = self.0.prepare_cached(sql).map_err(store_error)?;
        Ok(statement.execute([a as i64, b as i64]).map_err(store_error)? == 1)
    }

    /// Records a claim that was replaced by a later one of the same id, or that is the last one.
    pub fn add_claim_step(
        &self,
        digest: &[u8; 16],
        claim: u64,
        target: &str,
    ) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO replaced VALUES (?1, ?2, ?3)";
        let mut statement = self.0.prepare_cached(sql).map_err(store_error)?;
        statement.execute(params![digest, claim as i64, target]).map_err(store_error)?;
        Ok(())
    }

    /// Every such claim, grouped by id and in order.
    pub fn for_each_claim_step(
        &self,
        mut each: impl FnMut([u8; 16], u64, &str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT digest, claim, target FROM replaced ORDER BY digest, claim";
        let mut statement = self.0.prepare(sql).map_err(store_error)?;
        let mut rows = statement.query([]).map_err(store_error)?;
        while let Some(row) = rows.next().map_err(store_error)? {
            let id: i64 = row.get(1).map_err(store_error)?;
            let target: String = row.get(2).map_err(store_error)?;
            each(row.get(0).map_err(store_error)?, id.unsigned_abs(), &target)?;
        }
        Ok(())
    }
}
