//! The machine's clock, which a test can advance.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rialto_core::time::{Millis, Timestamp};
use rialto_engine::clock::{Clock, SystemClock};

/// A running clock that can jump.
pub struct MovedClock {
    machine: SystemClock,
    ahead: AtomicI64,
    /// The extra offset of the wall clock.
    wall: AtomicI64,
}

impl MovedClock {
    pub fn start() -> Arc<Self> {
        let (ahead, wall) = (AtomicI64::new(0), AtomicI64::new(0));
        Arc::new(Self { machine: SystemClock::start(), ahead, wall })
    }

    /// Advances the clock.
    pub fn advance(&self, span: Millis) {
        self.ahead.fetch_add(span.0, Ordering::SeqCst);
    }

    /// Moves the wall clock alone, either way.
    pub fn set_wall(&self, span: Millis) {
        self.wall.fetch_add(span.0, Ordering::SeqCst);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        self.machine.now().plus(Millis(self.ahead.load(Ordering::SeqCst)))
    }

    fn advance_to(&self, floor: Timestamp) {
        let ahead = self.ahead.load(Ordering::SeqCst);
        self.machine.advance_to(Timestamp(floor.0.saturating_sub(ahead)));
    }

    fn set_to(&self, now: Timestamp) {
        let ahead = self.ahead.load(Ordering::SeqCst);
        self.machine.set_to(Timestamp(now.0.saturating_sub(ahead)));
    }

    fn wall_time(&self) -> Timestamp {
        let (ahead, set) = (self.ahead.load(Ordering::SeqCst), self.wall.load(Ordering::SeqCst));
        self.machine.wall_time().plus(Millis(ahead.saturating_add(set)))
    }
}
