//! Used-up ids: appended as they come, indexed behind.
//!
//! The newest are in memory; the rest can be found through an index that is filled in slices when
//! the lane has nothing else to do, because inserting random keys is what makes writing slow.

use std::collections::{HashMap, VecDeque};

use rialto_core::alias::{Claim, Digest};
use rialto_core::id::ClaimId;
use rusqlite::{Connection, OptionalExtension, params};

use super::row::odd;
use super::trouble;
use crate::store::StoreError;

/// How many are moved into the index at a time.
const SLICE: usize = 512;
/// Above this many in memory the lane moves some even when it is busy.
const TAIL_MAX: usize = 1_000_000;

/// Claims that are not in the index yet.
#[derive(Default)]
pub struct Tail {
    newest: HashMap<Digest, Claim>,
    order: VecDeque<Claim>,
}

impl Tail {
    /// Reads what the index lacks.
    pub fn load(db: &Connection) -> Result<Self, StoreError> {
        let indexed = indexed_to(db)?;
        let mut statement = db
            .prepare("SELECT id, digest, target FROM claims WHERE id > ?1 ORDER BY id")
            .map_err(trouble)?;
        let mut rows = statement.query([indexed]).map_err(trouble)?;
        let mut tail = Self::default();
        while let Some(row) = rows.next().map_err(trouble)? {
            tail.add(read(row)?);
        }
        Ok(tail)
    }

    /// Writes new claims and keeps them at hand.
    pub fn write(&mut self, db: &Connection, claims: &[Claim]) -> Result<(), StoreError> {
        let mut insert = db
            .prepare_cached("INSERT INTO claims (id, digest, target) VALUES (?1, ?2, ?3)")
            .map_err(trouble)?;
        for claim in claims {
            let target = serde_json::to_string(&claim.target).map_err(odd)?;
            insert
                .execute(params![claim.id.0 as i64, claim.digest.0, target])
                .map_err(trouble)?;
        }
        Ok(())
    }

    /// Takes committed claims in.
    pub fn keep(&mut self, claims: &[Claim]) {
        claims.iter().for_each(|claim| self.add(*claim));
    }

    fn add(&mut self, claim: Claim) {
        self.newest.insert(claim.digest, claim);
        self.order.push_back(claim);
    }

    /// The newest claim of that digest that is still in memory.
    pub fn get(&self, digest: Digest) -> Option<Claim> {
        self.newest.get(&digest).copied()
    }

    /// Whether some must be moved even though the lane is busy.
    pub fn is_long(&self) -> bool {
        self.order.len() > TAIL_MAX
    }

    /// Moves a slice into the index; true when there is more to move.
    pub fn index_slice(&mut self, db: &Connection) -> Result<bool, StoreError> {
        let slice: Vec<Claim> = self.order.iter().take(SLICE).copied().collect();
        let Some(last) = slice.last() else { return Ok(false) };
        db.execute_batch("BEGIN IMMEDIATE").map_err(trouble)?;
        let moved = Self::insert_slice(db, &slice, last.id);
        if let Err(error) = moved.and_then(|()| db.execute_batch("COMMIT").map_err(trouble)) {
            let _ = db.execute_batch("ROLLBACK");
            return Err(error);
        }
        for claim in self.order.drain(..slice.len()) {
            // A later claim of the same id may have replaced this one.
            if self.newest.get(&claim.digest).is_some_and(|newest| newest.id == claim.id) {
                self.newest.remove(&claim.digest);
            }
        }
        Ok(!self.order.is_empty())
    }

    fn insert_slice(db: &Connection, slice: &[Claim], last: ClaimId) -> Result<(), StoreError> {
        let mut sorted = slice.to_vec();
        sorted.sort_by_key(|claim| (claim.digest, claim.id));
        let mut insert = db
            .prepare_cached("INSERT OR REPLACE INTO claim_index (digest, claim) VALUES (?1, ?2)")
            .map_err(trouble)?;
        for claim in sorted {
            insert.execute(params![claim.digest.0, claim.id.0 as i64]).map_err(trouble)?;
        }
        db.execute(
            "INSERT OR REPLACE INTO state (name, body, crc) VALUES ('claims_indexed', ?1, 0)",
            [last.0.to_string()],
        )
        .map_err(trouble)?;
        Ok(())
    }
}

fn indexed_to(db: &Connection) -> Result<i64, StoreError> {
    let text: Option<String> = db
        .query_row("SELECT body FROM state WHERE name = 'claims_indexed'", [], |row| row.get(0))
        .optional()
        .map_err(trouble)?;
    text.map_or(Ok(0), |text| text.parse().map_err(odd))
}

/// A claim that has been moved into the index.
pub fn indexed(db: &Connection, digest: Digest) -> Result<Option<Claim>, StoreError> {
    let mut statement = db
        .prepare_cached(
            "SELECT c.id, c.digest, c.target FROM claim_index i JOIN claims c ON c.id = i.claim
             WHERE i.digest = ?1",
        )
        .map_err(trouble)?;
    let mut rows = statement.query([digest.0]).map_err(trouble)?;
    rows.next().map_err(trouble)?.map(read).transpose()
}

fn read(row: &rusqlite::Row<'_>) -> Result<Claim, StoreError> {
    let id: i64 = row.get(0).map_err(trouble)?;
    let digest: [u8; 16] = row.get(1).map_err(trouble)?;
    let target: String = row.get(2).map_err(trouble)?;
    Ok(Claim {
        id: ClaimId(id as u64),
        digest: Digest(digest),
        target: serde_json::from_str(&target).map_err(odd)?,
    })
}
