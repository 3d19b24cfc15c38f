//! Clocks. The hub's time is the wall clock at start plus the time elapsed since, so that a jump of
//! the wall clock expires nothing early. Only timestamps made by other parties' clocks are compared
//! with the current wall clock.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rialto_core::time::Timestamp;

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The current time; never goes back. Leases, deadlines and history use it.
    fn now(&self) -> Timestamp;

    /// Never returns a time before this one, which is the latest in the store.
    fn advance_to(&self, context: Timestamp);

    /// Shows this time now, earlier or later than before. For a node that joins others, before it
    /// has served anything.
    fn set_to(&self, now: Timestamp);

    /// The wall-clock time, which other parties' clocks also show: to check whether something was
    /// signed recently, and to stamp what they will check. It may go back.
    fn wall_time(&self) -> Timestamp {
        self.now()
    }

    /// How long to really wait for `at`; a manual clock returns how often to check again.
    fn duration_until(&self, at: Timestamp) -> Duration {
        Duration::from_millis(at.since(self.now()).0.unsigned_abs())
    }
}

/// The machine's clock, anchored at start.
#[derive(Debug)]
pub struct SystemClock<M = OsTimeSource> {
    source: M,
    started: Duration,
    anchor: AtomicI64,
}

impl SystemClock {
    /// Anchors the clock to the wall clock now.
    pub fn start() -> Self {
        Self::with_source(OsTimeSource)
    }
}

impl<M: TimeSource> SystemClock<M> {
    fn with_source(machine: M) -> Self {
        let (started, anchor) = (machine.uptime(), AtomicI64::new(machine.wall_time().0));
        Self { source: machine, started, anchor }
    }

    fn elapsed_millis(&self) -> i64 {
        let passed = self.source.uptime().saturating_sub(self.started);
        i64::try_from(passed.as_millis()).unwrap_or(i64::MAX)
    }
}

impl<M: TimeSource> Clock for SystemClock<M> {
    fn now(&self) -> Timestamp {
        Timestamp(self.anchor.load(Ordering::Relaxed).saturating_add(self.elapsed_millis()))
    }

    fn advance_to(&self, context: Timestamp) {
        self.anchor.fetch_max(context.0.saturating_sub(self.elapsed_millis()), Ordering::Relaxed);
    }

    fn set_to(&self, now: Timestamp) {
        self.anchor.store(now.0.saturating_sub(self.elapsed_millis()), Ordering::Relaxed);
    }

    fn wall_time(&self) -> Timestamp {
        self.source.wall_time()
    }
}

/// The clocks of a machine.
pub trait TimeSource: Send + Sync {
    /// The time of day, as it is set now.
    fn wall_time(&self) -> Timestamp;

    /// The elapsed time since some moment in the past; never goes back.
    fn uptime(&self) -> Duration;
}

/// The machine the hub runs on.
#[derive(Clone, Copy, Debug)]
pub struct OsTimeSource;

impl TimeSource for OsTimeSource {
    fn wall_time(&self) -> Timestamp {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX))
    }

    /// Time asleep counts: it has passed for all other parties, as it has for a hub that was
    /// stopped and started again.
    #[cfg(target_os = "linux")]
    fn uptime(&self) -> Duration {
        use rustix::time::{ClockId, clock_gettime};
        Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
    }

    /// What the standard library offers. If that excludes time asleep, the hub's clock lags by as
    /// much until the next start.
    #[cfg(not(target_os = "linux"))]
    fn uptime(&self) -> Duration {
        use std::sync::OnceLock;
        use std::time::Instant;
        static FIRST: OnceLock<Instant> = OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::time::Millis;

    use super::*;

    const DAWN: Timestamp = Timestamp(1_754_000_000_000);

    /// A time source whose clocks are set by hand.
    #[derive(Default)]
    struct Toy {
        wall: AtomicI64,
        uptime: AtomicI64,
    }

    impl Toy {
        fn clock() -> SystemClock<Self> {
            let (wall, uptime) = (AtomicI64::new(DAWN.0), AtomicI64::new(5_000));
            SystemClock::with_source(Self { wall, uptime })
        }
    }

    impl TimeSource for Toy {
        fn wall_time(&self) -> Timestamp {
            Timestamp(self.wall.load(Ordering::Relaxed))
        }

        fn uptime(&self) -> Duration {
            Duration::from_millis(self.uptime.load(Ordering::Relaxed).unsigned_abs())
        }
    }

    #[test]
    fn a_wall_clock_set_back_does_not_take_the_hub_into_the_past() {
        let clock = SystemClock::start();
        let known = clock.now().plus(Millis::hours(1));
        clock.advance_to(known);
        assert!(clock.now() >= known);
        clock.advance_to(Timestamp(0));
        assert!(clock.now() >= known, "a floor never lowers it");
        assert!(clock.wall_time() < known, "and the wall-clock time does not move with it");
    }

    #[test]
    fn a_node_that_joins_shows_the_time_of_the_others() {
        let clock = Toy::clock();
        let theirs = DAWN.plus(Millis(-Millis::hours(1).0));
        clock.set_to(theirs);
        assert_eq!(clock.now(), theirs);
        clock.source.uptime.fetch_add(10, Ordering::Relaxed);
        assert_eq!(clock.now(), theirs.plus(Millis(10)));
    }

    #[test]
    fn a_wall_clock_that_jumps_an_hour_either_way_brings_no_moment_nearer() {
        for jump in [Millis::hours(1), Millis(-Millis::hours(1).0)] {
            let clock = Toy::clock();
            clock.source.wall.fetch_add(jump.0, Ordering::Relaxed);
            assert_eq!(clock.now(), DAWN);
            assert_eq!(clock.duration_until(DAWN.plus(Millis(10))), Duration::from_millis(10));
            assert_eq!(clock.wall_time(), DAWN.plus(jump), "the wall-clock time follows the jump");
            clock.source.uptime.fetch_add(10, Ordering::Relaxed);
            assert_eq!(clock.now(), DAWN.plus(Millis(10)));
        }
    }

    #[test]
    fn time_passes_as_long_as_the_machine_is_up() {
        let clock = Toy::clock();
        clock.source.uptime.fetch_add(Millis::hours(8).0, Ordering::Relaxed);
        assert_eq!(clock.now(), DAWN.plus(Millis::hours(8)));
        clock.source.uptime.store(0, Ordering::Relaxed);
        assert_eq!(clock.now(), DAWN, "and never goes back");
    }

    #[test]
    fn the_uptime_never_goes_back() {
        let mut before = OsTimeSource.uptime();
        for _ in 0..1_000 {
            let now = OsTimeSource.uptime();
            assert!(now >= before);
            before = now;
        }
    }
}
