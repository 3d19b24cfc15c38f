//! The minimum rate at which a body must arrive.
//!
//! A total timeout is not enough: a client that sends a byte now and then would use all of it with
//! every request. So a body must also keep a minimum rate. Only time spent waiting for the client
//! counts; time a handler takes between two chunks does not.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::Http;

/// The limits for every body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyRateLimits {
    /// Total timeout, starting at the first wait.
    pub total_timeout: Duration,
    /// How long it may fall behind the minimum rate, which is also the longest pause.
    pub grace: Duration,
    /// The minimum rate in bytes per second, if there is one.
    pub min_bytes_per_second: Option<NonZeroU32>,
}

/// The progress of one body.
#[derive(Debug)]
pub struct BodyRate {
    tempo: BodyRateLimits,
    /// The remaining grace.
    slack: Duration,
    total_deadline: Option<Instant>,
    waiting_since: Option<Instant>,
}

impl From<&Http> for BodyRateLimits {
    fn from(http: &Http) -> Self {
        Self {
            total_timeout: http.body_timeout.to_duration().max(Duration::from_millis(1)),
            grace: http.body_grace.to_duration(),
            min_bytes_per_second: http.min_body_bytes_per_second.max(),
        }
    }
}

impl BodyRate {
    pub fn new(tempo: BodyRateLimits) -> Self {
        Self { tempo, slack: tempo.grace, total_deadline: None, waiting_since: None }
    }

    /// Records received bytes. They earn the time they may take, but never more than the grace in
    /// total: a large chunk does not allow a long pause.
    pub fn record_bytes(&mut self, bytes: usize, now: Instant) {
        let waited = self.waiting_since.take().map_or(Duration::ZERO, |since| now - since);
        let Some(least) = self.tempo.min_bytes_per_second else { return };
        let earned = Duration::from_secs(bytes as u64) / least.get();
        self.slack = (self.slack.saturating_sub(waited) + earned).min(self.tempo.grace);
    }

    /// The deadline for the next bytes, when none are available now.
    pub fn deadline(&mut self, now: Instant) -> Instant {
        let ends = *self.total_deadline.get_or_insert(now + self.tempo.total_timeout);
        let since = *self.waiting_since.get_or_insert(now);
        match self.tempo.min_bytes_per_second {
            Some(_) => ends.min(since + self.slack),
            None => ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn pace(least: u32) -> BodyRate {
        let (whole, grace) = (SECOND * 3600, SECOND * 10);
        BodyRate::new(BodyRateLimits {
            total_timeout: whole,
            grace,
            min_bytes_per_second: NonZeroU32::new(least),
        })
    }

    /// How many seconds a body lasts at this rate.
    fn lives(pace: &mut BodyRate, bytes_a_second: usize) -> Option<u32> {
        let began = Instant::now();
        (0..1000).find(|second| {
            let now = began + SECOND * *second;
            let over = pace.deadline(now) < now + SECOND;
            pace.record_bytes(bytes_a_second, now + SECOND);
            over
        })
    }

    #[test]
    fn a_body_that_keeps_the_rate_may_take_its_time() {
        assert_eq!(lives(&mut pace(240), 240), None);
        assert_eq!(lives(&mut pace(240), 1_000_000), None);
    }

    #[test]
    fn a_body_slower_than_the_rate_uses_up_its_grace() {
        assert_eq!(lives(&mut pace(240), 0), Some(10));
        assert_eq!(lives(&mut pace(240), 20), Some(10));
        // Half the rate lasts twice the grace.
        assert_eq!(lives(&mut pace(240), 120), Some(19));
    }

    #[test]
    fn a_large_piece_does_not_buy_a_long_silence() {
        let (mut pace, now) = (pace(240), Instant::now());
        pace.deadline(now);
        pace.record_bytes(1 << 20, now + SECOND * 9);
        assert_eq!(pace.deadline(now + SECOND * 9), now + SECOND * 19);
    }

    #[test]
    fn what_the_handler_takes_is_not_the_callers() {
        let (mut pace, now) = (pace(240), Instant::now());
        pace.deadline(now);
        pace.record_bytes(1, now + SECOND);
        let later = now + SECOND * 100;
        let left = pace.deadline(later) - later;
        assert!(left >= SECOND * 9 && left < SECOND * 10, "{left:?}");
    }

    #[test]
    fn without_a_rate_only_the_whole_time_counts() {
        let (mut pace, now) = (pace(0), Instant::now());
        assert_eq!(pace.deadline(now), now + SECOND * 3600);
        pace.record_bytes(1, now + SECOND * 100);
        assert_eq!(pace.deadline(now + SECOND * 200), now + SECOND * 3600);
    }
}
