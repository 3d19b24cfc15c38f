//! Claims (used ids): appended in order, indexed later.
//!
//! The newest are in memory. The others are found through an index that is filled in slices while
//! the lane is idle, because inserting random keys is the slow part of writing.

use std::collections::VecDeque;

use parking_lot::RwLock;
use rialto_core::alias::{Claim, Digest};
use rialto_core::id::ClaimId;
use rialto_core::world::id_map::QuickMap;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::bloom::Filter;
use super::row::{Page, key, odd, read as read_row, text};
use super::trouble;
use crate::store::StoreError;

/// Claims indexed at a time; fewer are not worth a separate fsync.
pub const SLICE: usize = 512;
/// Above this many in memory, about 20 MB, the lane indexes some with every commit.
const TAIL_MAX: usize = 200_000;
/// Index rows read at a time for the Bloom filter.
const SIEVED: u32 = 1_024;
/// State row with the newest claim up to which the index is complete.
pub const INDEXED: &str = "claims_indexed";

/// Claims that are not in the index yet.
#[derive(Default)]
pub struct Tail {
    newest: QuickMap<Digest, Claim>,
    order: VecDeque<(ClaimId, Digest)>,
    sieve: Filter,
    /// Whether the filter covers the whole index, not only the claims indexed since the start.
    sieved: bool,
}

impl Tail {
    /// Loads the claims that are missing from the index.
    pub fn load(db: &Connection) -> Result<Self, StoreError> {
        let indexed = indexed_to(db)?;
        let mut statement = db
            .prepare("SELECT id, digest, target, crc FROM claims WHERE id > ?1 ORDER BY id")
            .map_err(trouble)?;
        let mut rows = statement.query([key(indexed.0)]).map_err(trouble)?;
        let sieve = Filter::with_room(usize::try_from(indexed.0).unwrap_or(usize::MAX));
        let mut tail = Self { sieve, ..Self::default() };
        while let Some(row) = rows.next().map_err(trouble)? {
            tail.keep(&[read(row)?]);
        }
        Ok(tail)
    }

    /// Adds committed claims.
    pub fn keep(&mut self, claims: &[Claim]) {
        for claim in claims {
            self.newest.insert(claim.digest, *claim);
            self.order.push_back((claim.id, claim.digest));
        }
    }

    /// The newest claim of that digest that is still in memory.
    pub fn get(&self, digest: Digest) -> Option<Claim> {
        self.newest.get(&digest).copied()
    }

    /// Whether the index may have a claim of that digest.
    pub fn may_be_indexed(&self, digest: Digest) -> bool {
        !self.sieved || self.sieve.may_have(digest)
    }

    /// Whether the filter covers the whole index.
    #[cfg(test)]
    pub fn is_sieved(&self) -> bool {
        self.sieved
    }

    /// The oldest claims, if there are enough of them to be worth indexing.
    pub fn slice(&self) -> Vec<(ClaimId, Digest)> {
        let enough = if self.order.len() >= SLICE { SLICE } else { 0 };
        self.order.iter().take(enough).copied().collect()
    }

    /// The claims that must be indexed although the lane is busy: once there are many, more than
    /// are added.
    pub fn overflow(&self, coming: usize) -> Vec<(ClaimId, Digest)> {
        let enough = if self.order.len() > TAIL_MAX { SLICE.max(2 * coming) } else { 0 };
        self.order.iter().take(enough).copied().collect()
    }

    /// Removes the oldest claims, once the index has them.
    pub fn release(&mut self, count: usize) {
        for (id, digest) in self.order.drain(..count) {
            self.sieve.add(digest);
            // A later claim of the same digest may have replaced it.
            if self.newest.get(&digest).is_some_and(|newest| newest.id == id) {
                self.newest.remove(&digest);
            }
        }
    }
}

/// Adds a part of the index to the filter, and returns where the next part starts. Claims indexed
/// meanwhile are added when they are indexed, so it does not matter which part contains them.
pub fn sieve(
    db: &Connection,
    tail: &RwLock<Tail>,
    after: Option<Digest>,
) -> Result<Option<Digest>, StoreError> {
    let sql = "SELECT digest FROM claim_index WHERE digest > ?1 ORDER BY digest LIMIT ?2";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    // Every digest sorts after an empty one.
    let from = after.as_ref().map_or(&[][..], |digest| &digest.0);
    let mut rows = statement.query(params![from, SIEVED]).map_err(trouble)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(trouble)? {
        found.push(Digest(row.get(0).map_err(trouble)?));
    }
    let mut tail = tail.write();
    for digest in &found {
        tail.sieve.add(*digest);
    }
    tail.sieved = found.len() < SIEVED as usize;
    Ok(found.last().copied().filter(|_| !tail.sieved))
}

/// Appends new claims to the table.
pub fn append(db: &Connection, claims: &[Claim]) -> Result<(), StoreError> {
    if claims.is_empty() {
        return Ok(());
    }
    let mut insert = db
        .prepare_cached("INSERT INTO claims (id, digest, target, crc) VALUES (?1, ?2, ?3, ?4)")
        .map_err(trouble)?;
    let mut page = Page::default();
    for claim in claims {
        let target = page.text(&claim.target)?;
        let (id, crc) = (key(claim.id.0), guard(claim.id, claim.digest, target));
        insert.execute(params![id, claim.digest.0, text(target), crc]).map_err(trouble)?;
    }
    Ok(())
}

/// Adds a slice to the index, in the index's own order; of one digest the newest stays.
pub fn index(db: &Connection, slice: &[(ClaimId, Digest)]) -> Result<(), StoreError> {
    let Some((last, _)) = slice.last() else { return Ok(()) };
    let mut sorted = slice.to_vec();
    sorted.sort_by_key(|(id, digest)| (*digest, *id));
    let mut insert = db
        .prepare_cached("INSERT OR REPLACE INTO claim_index (digest, claim) VALUES (?1, ?2)")
        .map_err(trouble)?;
    for (id, digest) in sorted {
        insert.execute(params![digest.0, key(id.0)]).map_err(trouble)?;
    }
    let mut page = Page::default();
    let (body, crc) = page.encode(ValueRef::Text(INDEXED.as_bytes()), last)?;
    let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    let mut insert = db.prepare_cached(sql).map_err(trouble)?;
    insert.execute(params![INDEXED, body, crc]).map_err(trouble)?;
    Ok(())
}

/// The newest claim in the index.
pub fn indexed_to(db: &Connection) -> Result<ClaimId, StoreError> {
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([INDEXED]).map_err(trouble)?;
    let found = rows.next().map_err(trouble)?;
    found.map_or(Ok(ClaimId(0)), |row| read_row("state", row))
}

/// Finds a claim in the index.
pub fn indexed(db: &Connection, digest: Digest) -> Result<Option<Claim>, StoreError> {
    // Two simple lookups: SQLite plans a join again for every value, and most ids are new.
    let sql = "SELECT claim FROM claim_index WHERE digest = ?1";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([digest.0]).map_err(trouble)?;
    let Some(row) = rows.next().map_err(trouble)? else { return Ok(None) };
    let id: i64 = row.get(0).map_err(trouble)?;
    let sql = "SELECT id, digest, target, crc FROM claims WHERE id = ?1";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([id]).map_err(trouble)?;
    let found = rows.next().map_err(trouble)?.map(read).transpose()?;
    // An id must never look unused because its claim was lost.
    let lost = || {
        StoreError::Corrupt(format!(
            "the claim index points to claim {id}, which has another digest"
        ))
    };
    found.filter(|claim| claim.digest == digest).ok_or_else(lost).map(Some)
}

/// Reads a row of the table and checks its checksum.
pub fn read(row: &rusqlite::Row<'_>) -> Result<Claim, StoreError> {
    let id = row.get_ref(0).map_err(trouble)?.as_i64().map_err(odd)?;
    let wrong = |why: &str| StoreError::Corrupt(format!("row {id} of claims {why}"));
    let digest: [u8; 16] = row.get(1).map_err(|_| wrong("has no digest"))?;
    let target = row.get_ref(2).map_err(trouble)?.as_str().map_err(|_| wrong("is not text"))?;
    let (id, digest) = (ClaimId(id.unsigned_abs()), Digest(digest));
    let crc = row.get_ref(3).map_err(trouble)?.as_i64();
    if crc.ok() != Some(i64::from(guard(id, digest, target.as_bytes()))) {
        return Err(wrong("fails its checksum"));
    }
    let target = serde_json::from_str(target).map_err(|_| wrong("has an invalid target"))?;
    Ok(Claim { id, digest, target })
}

pub(super) fn guard(id: ClaimId, digest: Digest, target: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(&key(id.0).to_be_bytes());
    hash.update(&digest.0);
    hash.update(target);
    hash.finalize()
}

#[cfg(test)]
mod tests {
    use rialto_core::alias::Target;

    use super::*;

    fn claims(from: u64, count: u64) -> Vec<Claim> {
        let claim = |id: u64| {
            let digest = Digest::of(&[&id.to_be_bytes()]);
            Claim { id: ClaimId(id), digest, target: Target::Free }
        };
        (from..from + count).map(claim).collect()
    }

    #[test]
    fn a_lane_that_is_never_idle_still_keeps_the_tail_short() {
        let mut tail = Tail::default();
        let (mut next, mut longest) = (1, 0);
        for _ in 0..60 {
            let coming = claims(next, 5_000);
            let moved = tail.overflow(coming.len()).len();
            tail.release(moved);
            tail.keep(&coming);
            next += 5_000;
            longest = longest.max(tail.order.len());
        }
        assert!(next > 250_000 && longest <= TAIL_MAX + 5_000, "{longest} of {next}");
        assert_eq!(tail.order.len(), tail.newest.len());
    }

    #[test]
    fn a_few_are_not_worth_moving() {
        let mut tail = Tail::default();
        tail.keep(&claims(1, SLICE as u64 - 1));
        assert!(tail.slice().is_empty() && tail.overflow(9).is_empty());
        tail.keep(&claims(SLICE as u64, 2));
        assert_eq!(tail.slice().len(), SLICE);
    }
}
