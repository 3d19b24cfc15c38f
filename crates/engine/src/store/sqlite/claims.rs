//! Claims (used ids): appended in order, indexed later.
//!
//! The newest are in memory. The others are found through an index that is filled in slices while
//! the hub is idle, because inserting random keys is the slow part of writing.

use parking_lot::RwLock;
use rialto_core::alias::{Claim, Digest};
use rialto_core::id::ClaimId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::row::{RowBuffer, column_error, read_row, sql_id, text};
use super::store_error;
use crate::store::StoreError;
pub use crate::store::claims::checksum;
use crate::store::claims::{RecentClaims, decode_claim};

/// Claims indexed at a time; fewer are not worth a separate fsync.
pub const INDEX_SLICE: usize = 512;
/// Above this many in memory, about 20 MB, the lane indexes some with every commit.
const UNINDEXED_MAX: usize = 200_000;
/// Index rows read at a time for the Bloom filter.
const FILTER_SLICE: u32 = 1_024;
/// State row with the newest claim up to which the index is complete.
pub const INDEXED_STATE: &str = "claims_indexed";

/// Loads the claims that are missing from the index.
pub fn load_unindexed(db: &Connection) -> Result<RecentClaims, StoreError> {
    let indexed = last_indexed(db)?;
    let mut statement = db
        .prepare("SELECT id, digest, target, crc FROM claims WHERE id > ?1 ORDER BY id")
        .map_err(store_error)?;
    let mut rows = statement.query([sql_id(indexed.0)]).map_err(store_error)?;
    let mut recent = RecentClaims::with_indexed(indexed.0);
    while let Some(row) = rows.next().map_err(store_error)? {
        recent.add(&[read_claim(row)?]);
    }
    Ok(recent)
}

/// The oldest claims of those in the table, if there are enough of them to be worth indexing.
pub fn next_slice(recent: &RecentClaims, in_table: ClaimId) -> Vec<(ClaimId, Digest)> {
    let slice: Vec<_> = recent.up_to(in_table).take(INDEX_SLICE).collect();
    if slice.len() < INDEX_SLICE { Vec::new() } else { slice }
}

/// The claims that must be indexed although the hub is busy: once there are many, more than were
/// added.
pub fn overflow(recent: &RecentClaims, in_table: ClaimId, added: usize) -> Vec<(ClaimId, Digest)> {
    let enough = if recent.len() > UNINDEXED_MAX { INDEX_SLICE.max(2 * added) } else { 0 };
    recent.up_to(in_table).take(enough).collect()
}

/// Adds a part of the index to the filter, and returns where the next part starts.
pub fn fill_filter(
    db: &Connection,
    recent: &RwLock<RecentClaims>,
    after: Option<Digest>,
) -> Result<Option<Digest>, StoreError> {
    let sql = "SELECT digest FROM claim_index WHERE digest > ?1 ORDER BY digest LIMIT ?2";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    // Every digest sorts after an empty one.
    let from = after.as_ref().map_or(&[][..], |digest| &digest.0);
    let mut rows = statement.query(params![from, FILTER_SLICE]).map_err(store_error)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(store_error)? {
        found.push(Digest(row.get(0).map_err(store_error)?));
    }
    let is_last = found.len() < FILTER_SLICE as usize;
    recent.write().fill_filter(&found, is_last);
    Ok(found.last().copied().filter(|_| !is_last))
}

/// Appends new claims to the table.
pub fn append(db: &Connection, claims: &[Claim]) -> Result<(), StoreError> {
    if claims.is_empty() {
        return Ok(());
    }
    let mut insert = db
        .prepare_cached("INSERT INTO claims (id, digest, target, crc) VALUES (?1, ?2, ?3, ?4)")
        .map_err(store_error)?;
    let mut page = RowBuffer::default();
    for claim in claims {
        let target = page.encode_body(&claim.target)?;
        let (id, crc) = (sql_id(claim.id.0), checksum(claim.id, claim.digest, target));
        insert.execute(params![id, claim.digest.0, text(target), crc]).map_err(store_error)?;
    }
    Ok(())
}

/// Adds a slice to the index, in the index's own order; of one digest the newest stays.
pub fn index_slice(db: &Connection, slice: &[(ClaimId, Digest)]) -> Result<(), StoreError> {
    let Some((last, _)) = slice.last() else { return Ok(()) };
    let mut sorted = slice.to_vec();
    sorted.sort_by_key(|(id, digest)| (*digest, *id));
    let mut insert = db
        .prepare_cached("INSERT OR REPLACE INTO claim_index (digest, claim) VALUES (?1, ?2)")
        .map_err(store_error)?;
    for (id, digest) in sorted {
        insert.execute(params![digest.0, sql_id(id.0)]).map_err(store_error)?;
    }
    write_last_indexed(db, *last)
}

/// Fills the index of a table that was copied, up to its newest claim.
pub fn index_all(db: &Connection, newest: ClaimId) -> Result<(), StoreError> {
    let sql = "INSERT INTO claim_index (digest, claim)
               SELECT digest, max(id) FROM claims GROUP BY digest ORDER BY digest";
    db.execute(sql, []).map_err(store_error)?;
    write_last_indexed(db, newest)
}

fn write_last_indexed(db: &Connection, last: ClaimId) -> Result<(), StoreError> {
    let mut page = RowBuffer::default();
    let (body, crc) = page.encode(ValueRef::Text(INDEXED_STATE.as_bytes()), &last)?;
    let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    let mut insert = db.prepare_cached(sql).map_err(store_error)?;
    insert.execute(params![INDEXED_STATE, body, crc]).map_err(store_error)?;
    Ok(())
}

/// The newest claim in the index.
pub fn last_indexed(db: &Connection) -> Result<ClaimId, StoreError> {
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([INDEXED_STATE]).map_err(store_error)?;
    let found = rows.next().map_err(store_error)?;
    found.map_or(Ok(ClaimId(0)), |row| read_row("state", row))
}

/// Finds a claim in the index.
pub fn find_indexed(db: &Connection, digest: Digest) -> Result<Option<Claim>, StoreError> {
    // Two simple lookups: SQLite plans a join again for every value, and most ids are new.
    let sql = "SELECT claim FROM claim_index WHERE digest = ?1";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([digest.0]).map_err(store_error)?;
    let Some(row) = rows.next().map_err(store_error)? else { return Ok(None) };
    let id: i64 = row.get(0).map_err(store_error)?;
    let sql = "SELECT id, digest, target, crc FROM claims WHERE id = ?1";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([id]).map_err(store_error)?;
    let found = rows.next().map_err(store_error)?.map(read_claim).transpose()?;
    // An id must never look unused because its claim was lost.
    let lost = || {
        StoreError::Corrupt(format!(
            "the claim index points to claim {id}, which has another digest"
        ))
    };
    found.filter(|claim| claim.digest == digest).ok_or_else(lost).map(Some)
}

/// Claims whose entry in the index does not match the table, at most `limit`.
pub fn find_mismatches(
    db: &Connection,
    indexed: ClaimId,
    limit: u32,
) -> Result<Vec<ClaimId>, StoreError> {
    let sql = "SELECT i.claim FROM claim_index i LEFT JOIN claims c ON c.id = i.claim
               WHERE c.id IS NULL OR c.digest <> i.digest OR i.claim > ?1 LIMIT ?2";
    let mut statement = db.prepare(sql).map_err(store_error)?;
    let found = statement
        .query_map(params![sql_id(indexed.0), limit], |row| row.get::<_, i64>(0))
        .map_err(store_error)?;
    found.map(|id| Ok(ClaimId(id.map_err(store_error)?.unsigned_abs()))).collect()
}

/// What is wrong with such a claim.
pub fn describe_mismatch(claim: ClaimId) -> String {
    format!("the index entry of claim {claim} does not match the claims table")
}

/// Reads a row of the table and checks its checksum.
pub fn read_claim(row: &rusqlite::Row<'_>) -> Result<Claim, StoreError> {
    let id = row.get_ref(0).map_err(store_error)?.as_i64().map_err(column_error)?;
    let wrong = |why: &str| StoreError::Corrupt(format!("row {id} of claims {why}"));
    let digest: [u8; 16] = row.get(1).map_err(|_| wrong("has no digest"))?;
    let target = row.get_ref(2).map_err(store_error)?.as_str().map_err(|_| wrong("is not text"))?;
    let crc = row.get_ref(3).map_err(store_error)?.as_i64();
    decode_claim(id, digest, target, crc.ok())
}

#[cfg(test)]
mod tests {
    use rialto_core::alias::ClaimTarget;

    use super::*;

    fn claims(from: u64, count: u64) -> Vec<Claim> {
        let claim = |id: u64| {
            let digest = Digest::of(&[&id.to_be_bytes()]);
            Claim { id: ClaimId(id), digest, target: ClaimTarget::Released }
        };
        (from..from + count).map(claim).collect()
    }

    #[test]
    fn a_lane_that_is_never_idle_still_keeps_the_tail_short() {
        let mut tail = RecentClaims::default();
        let (mut next, mut longest) = (1, 0);
        for _ in 0..60 {
            let coming = claims(next, 5_000);
            tail.add(&coming);
            let written = ClaimId(next + 4_999);
            let moved = overflow(&tail, written, coming.len()).len();
            tail.remove_indexed(moved);
            next += 5_000;
            longest = longest.max(tail.len());
        }
        assert!(next > 250_000 && longest <= UNINDEXED_MAX + 5_000, "{longest} of {next}");
    }

    #[test]
    fn a_few_are_not_worth_moving() {
        let mut tail = RecentClaims::default();
        tail.add(&claims(1, INDEX_SLICE as u64 - 1));
        let all = ClaimId(u64::MAX);
        assert!(next_slice(&tail, all).is_empty() && overflow(&tail, all, 9).is_empty());
        tail.add(&claims(INDEX_SLICE as u64, 2));
        assert_eq!(next_slice(&tail, all).len(), INDEX_SLICE);
        assert!(
            next_slice(&tail, ClaimId(INDEX_SLICE as u64 - 1)).is_empty(),
            "not in the table yet"
        );
    }
}
