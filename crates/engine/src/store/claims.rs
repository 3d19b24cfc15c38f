//! Claims (used ids): the newest are in memory, the others in a table behind a Bloom filter.

use std::collections::VecDeque;

use rialto_core::alias::{Claim, Digest};
use rialto_core::id::ClaimId;
use rialto_core::world::id_map::IdMap;

use super::StoreError;
use super::bloom::BloomFilter;
use super::row::sql_id;

/// Claims that cannot be found through the table's index yet, and a filter for those that can.
#[derive(Default)]
pub struct RecentClaims {
    by_digest: IdMap<Digest, Claim>,
    order: VecDeque<(ClaimId, Digest)>,
    filter: BloomFilter,
    /// Whether the filter covers the whole index, not only the claims indexed since the start.
    filter_complete: bool,
}

impl RecentClaims {
    /// None in memory, and a filter with capacity for those that are indexed.
    pub fn with_indexed(count: u64) -> Self {
        let filter = BloomFilter::with_capacity(usize::try_from(count).unwrap_or(usize::MAX));
        Self { filter, ..Self::default() }
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

    /// How many are in memory.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the filter covers the whole index.
    #[cfg(test)]
    pub fn is_filter_complete(&self) -> bool {
        self.filter_complete
    }

    /// Those in memory up to one, oldest first.
    pub fn up_to(&self, last: ClaimId) -> impl Iterator<Item = (ClaimId, Digest)> + '_ {
        self.order.iter().take_while(move |(id, _)| *id <= last).copied()
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

    /// Adds a part of the index to the filter. Claims indexed meanwhile are added when they are
    /// indexed, so it does not matter which part contains them.
    pub fn fill_filter(&mut self, part: &[Digest], is_last: bool) {
        for digest in part {
            self.filter.insert(*digest);
        }
        self.filter_complete = is_last;
    }
}

/// Checks a stored claim against its checksum and decodes it.
pub fn decode_claim(
    id: i64,
    digest: [u8; 16],
    target: &str,
    crc: Option<i64>,
) -> Result<Claim, StoreError> {
    let wrong = |why: &str| StoreError::Corrupt(format!("row {id} of claims {why}"));
    let (claim, digest) = (ClaimId(id.unsigned_abs()), Digest(digest));
    if crc != Some(i64::from(checksum(claim, digest, target.as_bytes()))) {
        return Err(wrong("fails its checksum"));
    }
    let target = serde_json::from_str(target).map_err(|_| wrong("has an invalid target"))?;
    Ok(Claim { id: claim, digest, target })
}

/// The checksum of a claim.
pub fn checksum(id: ClaimId, digest: Digest, target: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(&sql_id(id.0).to_be_bytes());
    hash.update(&digest.0);
    hash.update(target);
    hash.finalize()
}
