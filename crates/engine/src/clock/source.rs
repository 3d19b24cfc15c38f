//! The two clocks of a machine: the wall clock, which can be set, and the monotonic one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rialto_core::time::Timestamp;

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
    use super::*;

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
