//! Claims (used ids): appended in order, indexed later.
//!
//! The newest are in memory. The others are found through an index that is filled in slices while
//! the hub is idle, because inserting random keys is the slow part of writing.

use std::collections::VecDeque;

use parking_lot::RwLock;
use rialto_core::alias::{Claim, Digest};
use rialto_core::id::ClaimId;
use rialto_core::world::id_map::IdMap;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::bloom::BloomFilter;
use super::row::{RowBuffer, column_error, read_row, sql_id, text};
use super::store_error;
use crate::store::StoreError;

/// Claims indexed at a time; fewer are not worth a separate fsync.
pub const INDEX_SLICE: usize = 512;
/// Above this many in memory, about 20 MB, the lane indexes some with every commit.
const UNINDEXED_MAX: usize = 200_000;
/// Index rows read at a time for the Bloom filter.
const FILTER_SLICE: u32 = 1_024;
/// State row with the newest claim up to which the index is complete.
pub const INDEXED_STATE: &str = "claims_indexed";

/// Claims that are not in the index yet.
#[derive(Default)]
pub struct UnindexedClaims {
    by_digest: IdMap<Digest, Claim>,
    order: VecDeque<(ClaimId, Digest)>,
    filter: BloomFilter,
    /// Whether the filter covers the whole index, not only the claims indexed since the start.
    filter_complete: bool,
}

impl UnindexedClaims {
    /// Loads the claims that are missing from the index.
    pub fn load(db: &Connection) -> Result<Self, StoreError> {
        let indexed = last_indexed(db)?;
        let mut statement = db
            .prepare("SELECT id, digest, target, crc FROM claims WHERE id > ?1 ORDER BY id")
            .map_err(store_error)?;
        let mut rows = statement.query([sql_id(indexed.0)]).map_err(store_error)?;
        let sieve = BloomFilter::with_capacity(usize::try_from(indexed.0).unwrap_or(usize::MAX));
        let mut tail = Self { filter: sieve, ..Self::default() };
        while let Some(row) = rows.next().map_err(store_error)? {
            tail.add(&[read_claim(row)?]);
        }
        Ok(tail)
    }

    /// Adds committed claims.
    pub fn add(&mut self, claims: &[Claim]) {
        for claim in claims {
            self.by_digest.insert(claim.digest, *claim);
            self.order.push_back((claim.id, claim.digest));
        }
    }

    /// The newest claim of that digest that is still in memory.
    pub fn get(&self, digest: Digest) -> Option<Claim> {
        self.by_digest.get(&digest).copied()
    }

    /// Whether the index may have a claim of that digest.
    pub fn may_be_indexed(&self, digest: Digest) -> bool {
        !self.filter_complete || self.filter.may_contain(digest)
    }

    /// Whether the filter covers the whole index.
    #[cfg(test)]
    pub fn is_filter_complete(&self) -> bool {
        self.filter_complete
    }

    /// The oldest claims of those in the table, if there are enough of them to be worth indexing.
    pub fn next_slice(&self, in_table: ClaimId) -> Vec<(ClaimId, Digest)> {
        let ready = self.order.iter().take_while(|(id, _)| *id <= in_table);
        let slice: Vec<_> = ready.take(INDEX_SLICE).copied().collect();
        if slice.len() < INDEX_SLICE { Vec::new() } else { slice }
    }

    /// The claims that must be indexed although the hub is busy: once there are many, more than
    /// were added.
    pub fn overflow(&self, in_table: ClaimId, added: usize) -> Vec<(ClaimId, Digest)> {
        let enough = if self.order.len() > UNINDEXED_MAX { INDEX_SLICE.max(2 * added) } else { 0 };
        let ready = self.order.iter().take_while(|(id, _)| *id <= in_table);
        ready.take(enough).copied().collect()
    }

    /// Removes the oldest claims, once the index has them.
    pub fn remove_indexed(&mut self, count: usize) {
        for (id, digest) in self.order.drain(..count) {
            self.filter.insert(digest);
            // A later claim of the same digest may have replaced it.
            if self.by_digest.get(&digest).is_some_and(|newest| newest.id == id) {
                self.by_digest.remove(&digest);
            }
        }
    }
}

/// Adds a part of the index to the filter, and returns where the next part starts. Claims indexed
/// meanwhile are added when they are indexed, so it does not matter which part contains them.
pub fn fill_filter(
    db: &Connection,
    tail: &RwLock<UnindexedClaims>,
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
    let mut tail = tail.write();
    for digest in &found {
        tail.filter.insert(*digest);
    }
    tail.filter_complete = found.len() < FILTER_SLICE as usize;
    Ok(found.last().copied().filter(|_| !tail.filter_complete))
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
    let mut page = RowBuffer::default();
    let (body, crc) = page.encode(ValueRef::Text(INDEXED_STATE.as_bytes()), last)?;
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

/// Reads a row of the table and checks its checksum.
pub fn read_claim(row: &rusqlite::Row<'_>) -> Result<Claim, StoreError> {
    let id = row.get_ref(0).map_err(store_error)?.as_i64().map_err(column_error)?;
    let wrong = |why: &str| StoreError::Corrupt(format!("row {id} of claims {why}"));
    let digest: [u8; 16] = row.get(1).map_err(|_| wrong("has no digest"))?;
    let target = row.get_ref(2).map_err(store_error)?.as_str().map_err(|_| wrong("is not text"))?;
    let (id, digest) = (ClaimId(id.unsigned_abs()), Digest(digest));
    let crc = row.get_ref(3).map_err(store_error)?.as_i64();
    if crc.ok() != Some(i64::from(checksum(id, digest, target.as_bytes()))) {
        return Err(wrong("fails its checksum"));
    }
    let target = serde_json::from_str(target).map_err(|_| wrong("has an invalid target"))?;
    Ok(Claim { id, digest, target })
}

pub(super) fn checksum(id: ClaimId, digest: Digest, target: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(&sql_id(id.0).to_be_bytes());
    hash.update(&digest.0);
    hash.update(target);
    hash.finalize()
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
        let mut tail = UnindexedClaims::default();
        let (mut next, mut longest) = (1, 0);
        for _ in 0..60 {
            let coming = claims(next, 5_000);
            tail.add(&coming);
            let written = ClaimId(next + 4_999);
            let moved = tail.overflow(written, coming.len()).len();
            tail.remove_indexed(moved);
            next += 5_000;
            longest = longest.max(tail.order.len());
        }
        assert!(next > 250_000 && longest <= UNINDEXED_MAX + 5_000, "{longest} of {next}");
        assert_eq!(tail.order.len(), tail.by_digest.len());
    }

    #[test]
    fn a_few_are_not_worth_moving() {
        let mut tail = UnindexedClaims::default();
        tail.add(&claims(1, INDEX_SLICE as u64 - 1));
        let all = ClaimId(u64::MAX);
        assert!(tail.next_slice(all).is_empty() && tail.overflow(all, 9).is_empty());
        tail.add(&claims(INDEX_SLICE as u64, 2));
        assert_eq!(tail.next_slice(all).len(), INDEX_SLICE);
        assert!(
            tail.next_slice(ClaimId(INDEX_SLICE as u64 - 1)).is_empty(),
            "not in the table yet"
        );
    }
}
