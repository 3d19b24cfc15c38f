//! Read rate per caller and minute, by the length of the responses and the rows read.
//!
//! The cost of a response is known only when it is ready, so it is charged afterwards: a caller
//! that has read too much waits until it is within its rate again.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use governor::clock::{Clock, Reference};
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;

use super::rate_limits::SWEEP_EVERY;
use super::rate_store::BoundedRateStore;

/// Responses up to this length are free, so that polling one job costs nothing.
const FREE_BYTES: u64 = 16 << 10;
/// The cost of one row read, in bytes of response.
const ROW_BYTES: u64 = 64;
/// A minute in nanoseconds: how far ahead of its rate a caller may be.
const MINUTE: u64 = 60_000_000_000;

/// The rate, and how far each caller is ahead of it.
pub struct ReadRate<C: Clock> {
    bytes_per_minute: NonZeroU32,
    clock: C,
    start: C::Instant,
    /// The time up to which each caller has used its rate.
    used_until: BoundedRateStore,
    charges: AtomicU32,
}

/// The cost of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCost {
    pub bytes: u64,
    pub rows: u64,
}

impl<C: Clock> ReadRate<C> {
    pub fn new(bytes_per_minute: NonZeroU32, clock: C) -> Self {
        let (start, charges) = (clock.now(), AtomicU32::new(0));
        Self { bytes_per_minute, clock, start, used_until: BoundedRateStore::default(), charges }
    }

    /// Whether a caller may read now; otherwise the milliseconds until it may.
    pub fn check(&self, caller: u64) -> Result<(), u64> {
        let now = self.now();
        let ahead = self.used_until.measure_and_replace(&caller, |until| match until {
            Some(until) => Err(until.as_u64().saturating_sub(now)),
            None => Err(0),
        });
        match ahead {
            Err(ahead) if ahead > MINUTE => Err((ahead - MINUTE).div_ceil(1_000_000)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Counts a response.
    pub fn charge(&self, caller: u64, cost: ReadCost) {
        let bytes = cost.bytes.saturating_sub(FREE_BYTES).saturating_add(cost.rows * ROW_BYTES);
        if bytes == 0 {
            return;
        }
        let now = self.now();
        if self.charges.fetch_add(1, Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.used_until.retain_recent(Nanos::new(now));
        }
        let takes =
            u128::from(bytes) * u128::from(MINUTE) / u128::from(self.bytes_per_minute.get());
        let takes = u64::try_from(takes).unwrap_or(u64::MAX);
        let charged = self.used_until.measure_and_replace(&caller, |until| {
            let from = until.map_or(now, |until| until.as_u64().max(now));
            Ok::<_, std::convert::Infallible>(((), Nanos::new(from.saturating_add(takes))))
        });
        let Ok(()) = charged;
    }

    fn now(&self) -> u64 {
        self.clock.now().duration_since(self.start).as_u64()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn rate(mib: u32) -> (ReadRate<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        let bytes = NonZeroU32::new(mib << 20).expect("not zero");
        (ReadRate::new(bytes, clock.clone()), clock)
    }

    fn answer(bytes: u64) -> ReadCost {
        ReadCost { bytes, rows: 0 }
    }

    #[test]
    fn long_answers_use_the_rate_up_and_time_gives_it_back() {
        let (rate, clock) = rate(4);
        for _ in 0..5 {
            assert_eq!(rate.check(1), Ok(()));
            rate.charge(1, answer(MIB));
        }
        assert!(rate.check(1).is_err(), "more than four MiB were read in this minute");
        assert_eq!(rate.check(2), Ok(()), "another caller has its own rate");
        let wait = rate.check(1).expect_err("it has to wait");
        clock.advance(Duration::from_millis(wait));
        assert_eq!(rate.check(1), Ok(()), "a caller that waits as told is admitted");
    }

    #[test]
    fn short_answers_cost_nothing_and_rows_that_were_looked_at_do() {
        let (rate, _) = rate(1);
        for _ in 0..10_000 {
            rate.charge(1, answer(FREE_BYTES));
        }
        assert_eq!(rate.check(1), Ok(()));
        for _ in 0..20 {
            rate.charge(1, ReadCost { bytes: 2, rows: 10_000 });
        }
        assert!(rate.check(1).is_err(), "rows read count even if nothing matches");
    }
}
