//! Maps keyed by the hub's own ids and digests, with a hash of a few multiplications.
//!
//! The standard hash withstands keys of any length and origin. Here keys are a few words long: ids
//! that the lane hands out, and digests. Callers can choose digests by trial, so every map still
//! has its own secret. Names chosen by callers use the standard hash.

use std::collections::{HashMap, hash_map::RandomState};
use std::hash::{BuildHasher, Hasher};

/// A map whose keys are ids or digests.
pub type IdMap<K, V> = HashMap<K, V, IdHashBuilder>;

/// The golden ratio, whose bits have no pattern.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// The secret of one map.
#[derive(Clone, Debug)]
pub struct IdHashBuilder {
    start: u64,
    factor: u64,
}

impl Default for IdHashBuilder {
    fn default() -> Self {
        let random = RandomState::new();
        Self { start: random.hash_one(0_u8), factor: random.hash_one(1_u8) | 1 }
    }
}

impl BuildHasher for IdHashBuilder {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher { state: self.start, factor: self.factor }
    }
}

/// The hasher state for one key.
pub struct IdHasher {
    state: u64,
    factor: u64,
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.state = fold(self.state ^ word, self.factor);
    }

    /// The length of a digest is always the same, so it is ignored.
    fn write_usize(&mut self, _: usize) {}

    /// Mixed once more: after a single round, keys in regular steps may cluster.
    fn finish(&self) -> u64 {
        fold(self.state, MIX)
    }
}

/// Both halves of the product, so that every bit of a key affects every bit of the hash.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::alias::Digest;
    use crate::id::JobId;

    /// How many slots of a table are used by as many keys.
    fn spread(hashes: impl Iterator<Item = u64>) -> usize {
        hashes.map(|hash| hash & 0xffff).collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn numbers_in_a_row_and_in_steps_and_digests_spread() {
        // With 65,536 random keys, 63 of 100 slots are used.
        let fair = 0x1_0000 / 2;
        let all = 0..0x1_0000_u64;
        let digest = |id: u64| Digest::of(&[&id.to_be_bytes()]);
        // Digests chosen to differ only in their second half.
        let picked = |id: u64| Digest(u128::from(id).to_be_bytes());
        for seed in 1..=8_u64 {
            let start = seed.wrapping_mul(MIX);
            let quick = IdHashBuilder { start, factor: fold(start, 0xD6E8_FEB8_6659_FD93) | 1 };
            assert!(spread(all.clone().map(|id| quick.hash_one(JobId(id)))) > fair);
            assert!(spread(all.clone().map(|id| quick.hash_one(JobId(id << 20)))) > fair);
            assert!(spread(all.clone().map(|id| quick.hash_one(digest(id)))) > fair);
            assert!(spread(all.clone().map(|id| quick.hash_one(picked(id)))) > fair);
        }
    }

    #[test]
    fn every_map_has_its_own_secret() {
        let places =
            |quick: IdHashBuilder| (0..64).map(|id| quick.hash_one(JobId(id))).collect::<Vec<_>>();
        assert_ne!(places(IdHashBuilder::default()), places(IdHashBuilder::default()));
    }
}
