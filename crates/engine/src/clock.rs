//! Clocks. The hub's time is the wall clock at start plus monotonic time since, so that a jump of
//! the wall clock expires nothing early.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rialto_core::time::Timestamp;

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The moment now; never goes back.
    fn now(&self) -> Timestamp;

    /// Never shows a moment before this one: the last the store knows of.
    fn lift(&self, floor: Timestamp);

    /// How long to really wait for `at`; a standing clock says how often to look again.
    fn until(&self, at: Timestamp) -> Duration {
        Duration::from_millis(at.since(self.now()).0.unsigned_abs())
    }
}

/// The machine's clock, anchored once.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    anchor: AtomicI64,
}

impl SystemClock {
    /// Anchors the clock to the wall clock now.
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = i64::try_from(wall.as_millis()).unwrap_or(i64::MAX);
        Self { started: Instant::now(), anchor: AtomicI64::new(wall) }
    }

    fn passed(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.anchor.load(Ordering::Relaxed).saturating_add(self.passed()))
    }

    fn lift(&self, floor: Timestamp) {
        self.anchor.fetch_max(floor.0.saturating_sub(self.passed()), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_core::time::Millis;

    #[test]
    fn a_wall_clock_set_back_does_not_take_the_hub_into_the_past() {
        let clock = SystemClock::start();
        let known = clock.now().plus(Millis::hours(1));
        clock.lift(known);
        assert!(clock.now() >= known);
        clock.lift(Timestamp(0));
        assert!(clock.now() >= known, "a floor never lowers it");
    }
}
