//! For tests: clocks that are moved by hand, ids from a seed, engines in memory, real databases.

#[cfg(unix)]
pub mod postgres;
mod skip;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rialto_core::market::Markets;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::Rules;

use crate::clock::Clock;
use crate::random::RandomSource;
use crate::run::{Engine, EngineParts, RunningEngine};
use crate::secret::HubSecret;
use crate::store::{Store, StoreError};

pub use skip::skip_test;

/// A clock that moves only by hand.
#[derive(Debug)]
pub struct ManualClock {
    hub: AtomicI64,
    /// How far the wall clock is ahead.
    wall: AtomicI64,
}

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(moment: Timestamp) -> Arc<Self> {
        Arc::new(Self { hub: AtomicI64::new(moment.0), wall: AtomicI64::new(0) })
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Millis) {
        self.hub.fetch_add(by.0, Ordering::SeqCst);
    }

    /// Sets the wall clock, as an administrator may.
    pub fn shift_wall_time(&self, by: Millis) {
        self.wall.fetch_add(by.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.hub.load(Ordering::SeqCst))
    }

    fn advance_to(&self, context: Timestamp) {
        self.hub.fetch_max(context.0, Ordering::SeqCst);
    }

    fn set_to(&self, now: Timestamp) {
        self.hub.store(now.0, Ordering::SeqCst);
    }

    fn wall_time(&self) -> Timestamp {
        self.now().plus(Millis(self.wall.load(Ordering::SeqCst)))
    }

    fn duration_until(&self, at: Timestamp) -> std::time::Duration {
        // The clock does not move by itself, so a waiter checks again soon.
        std::time::Duration::from_millis(u64::from(at > self.now()) * 5)
    }
}

/// Ids that are the same in every run with the same seed.
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// Ids from this seed.
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(seed)))
    }
}

impl RandomSource for SeededRandom {
    fn fill_bytes(&self, bytes: &mut [u8]) {
        // SplitMix64: well distributed, and a step is one addition.
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        for part in bytes.chunks_mut(8) {
            let mut z = self.0.fetch_add(STEP, Ordering::SeqCst).wrapping_add(STEP);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            part.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..part.len()]);
        }
    }
}

/// An engine over a store, with a manual clock, seeded ids and a throw-away secret.
pub fn start_engine(
    store: Box<dyn Store>,
    rules: Rules,
    clock: Arc<ManualClock>,
) -> Result<RunningEngine, StoreError> {
    start_engine_with(store, rules, clock, Markets::new())
}

/// The same, with markets.
pub fn start_engine_with(
    store: Box<dyn Store>,
    rules: Rules,
    clock: Arc<ManualClock>,
    markets: Markets,
) -> Result<RunningEngine, StoreError> {
    let secret = HubSecret::from_bytes([7; 32]);
    let ids = SeededRandom::new(1);
    let cluster = None;
    Engine::start(EngineParts { store, rules, clock, random: ids, secret, markets, cluster })
}
