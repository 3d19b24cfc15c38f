//! Clocks. The hub's time is the wall clock at start plus monotonic time since, so that a jump of
//! the wall clock expires nothing early.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rialto_core::time::Timestamp;

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The moment now; never goes back.
    fn now(&self) -> Timestamp;

    /// How long to really wait for `at`; a standing clock says how often to look again.
    fn until(&self, at: Timestamp) -> Duration {
        Duration::from_millis(at.since(self.now()).0.unsigned_abs())
    }
}

/// The machine's clock, anchored once.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    anchor: Timestamp,
}

impl SystemClock {
    /// Anchors the clock now, but never before `floor`: the last moment the store knows of.
    pub fn start(floor: Timestamp) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = Timestamp(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX));
        Self { started: Instant::now(), anchor: wall.max(floor) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.anchor.0.saturating_add(passed))
    }
}
