//! A Bloom filter in front of the claim index: for most ids it proves that they were never used.
//!
//! Almost every id that is looked up is new, and a miss in an index costs as much as a hit. Two
//! bytes for each indexed claim avoid all but a few lookups in a thousand. A false positive costs
//! one lookup in the index, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use rialto_core::alias::Digest;

use super::StoreError;

/// Claims that fit the first layer: 1 MiB.
const LAYER_MIN: usize = 1 << 19;
/// Claims that fit all layers together: 64 MiB. Beyond that, false positives become more frequent.
const ALL_MAX: usize = 1 << 25;
/// Bits in a block, which is one cache line of the processor, and how many of them a claim sets.
const BLOCK_WORDS: usize = 8;
const BITS_PER_CLAIM: usize = 6;
/// Claims that fit a block.
const BLOCK_CLAIMS: usize = 32;

type Block = [u64; BLOCK_WORDS];

/// The inserted digests, in layers: when one is full, the next is twice as large.
#[derive(Default)]
pub struct BloomFilter {
    layers: Vec<Layer>,
}

struct Layer {
    blocks: Vec<Block>,
    free: usize,
}

impl Layer {
    fn new(claims: usize) -> Self {
        let claims = claims.next_power_of_two();
        Self { blocks: vec![[0; BLOCK_WORDS]; claims / BLOCK_CLAIMS], free: claims }
    }

    fn claims(&self) -> usize {
        self.blocks.len() * BLOCK_CLAIMS
    }
}

impl BloomFilter {
    /// An empty filter with capacity for this many, and as many again.
    pub fn with_capacity(claims: usize) -> Self {
        let room = claims.saturating_mul(2).clamp(LAYER_MIN, ALL_MAX);
        Self { layers: vec![Layer::new(room)] }
    }

    pub fn insert(&mut self, digest: Digest) {
        let known: usize = self.layers.iter().map(Layer::claims).sum();
        let last = self.layers.last();
        if last.is_none_or(|last| last.free == 0 && known < ALL_MAX) {
            let next = last.map_or(LAYER_MIN, |last| 2 * last.claims());
            self.layers.push(Layer::new(next.min(ALL_MAX)));
        }
        let Some(layer) = self.layers.last_mut() else { return };
        layer.free = layer.free.saturating_sub(1);
        let (place, marks) = block_and_bits(digest);
        let at = place % layer.blocks.len();
        for (word, marks) in layer.blocks[at].iter_mut().zip(marks) {
            *word |= marks;
        }
    }

    /// Whether the digest may have been inserted. Always true for inserted ones.
    pub fn may_contain(&self, digest: Digest) -> bool {
        let (place, marks) = block_and_bits(digest);
        self.layers.iter().any(|layer| {
            let block = &layer.blocks[place % layer.blocks.len()];
            block.iter().zip(marks).all(|(word, marks)| word & marks == marks)
        })
    }
}

/// The block of a digest and its bits there, from different bytes of it.
fn block_and_bits(digest: Digest) -> (usize, Block) {
    let (first, second) = digest.0.split_at(8);
    let number = |half: &[u8]| half.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let mut bits = number(second);
    let mut marks = [0; BLOCK_WORDS];
    for _ in 0..BITS_PER_CLAIM {
        marks[(bits & 7) as usize] |= 1 << (bits >> 3 & 63);
        bits >>= 9;
    }
    (number(first) as usize, marks)
}

// Loads the digests of a table into the filter, on a thread of its own.
//
// A large table takes seconds. Until it is loaded, or if it cannot be, every lookup goes to the
// table itself, so nothing waits for it.

/// The loading thread; it ends when it is done or when the store is closed.
pub struct FilterLoader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FilterLoader {
    /// Starts the thread. `load_part` returns whether more parts follow.
    pub fn start(
        mut load_part: impl FnMut() -> Result<bool, StoreError> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let work = move || {
            while !stopped.load(Ordering::Relaxed) {
                match load_part() {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => {
                        return tracing::warn!(%error, "claim filter could not be loaded; lookups use the index");
                    }
                }
            }
        };
        let thread = Builder::new()
            .name("claim-filter".to_owned())
            .spawn(work)
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for FilterLoader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(id: usize) -> Digest {
        Digest::of(&[&id.to_be_bytes()])
    }

    #[test]
    fn what_was_put_in_is_never_denied_and_little_else_is_suspected() {
        let mut filter = BloomFilter::default();
        let count = LAYER_MIN + 1_000;
        assert!(!filter.may_contain(digest(0)));
        for id in 0..count {
            filter.insert(digest(id));
        }
        assert_eq!(filter.layers.len(), 2, "the first layer was full");
        assert!((0..count).all(|id| filter.may_contain(digest(id))));
        let wrong = (count..count + 20_000).filter(|id| filter.may_contain(digest(*id))).count();
        assert!(wrong < 200, "{wrong} of 20,000");
    }

    #[test]
    fn it_has_room_for_what_is_there_and_never_takes_more_than_its_share() {
        assert_eq!(BloomFilter::with_capacity(0).layers[0].claims(), LAYER_MIN);
        assert_eq!(BloomFilter::with_capacity(LAYER_MIN).layers[0].claims(), 2 * LAYER_MIN);
        let mut filter = BloomFilter::with_capacity(usize::MAX);
        filter.layers[0].free = 0;
        filter.insert(digest(1));
        assert_eq!((filter.layers.len(), filter.layers[0].claims()), (1, ALL_MAX));
        assert!(filter.may_contain(digest(1)));
    }
}
