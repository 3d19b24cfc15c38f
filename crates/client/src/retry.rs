//! Retry policy: how often a call is retried, and after how long.

use std::time::Duration;

/// How often a call is retried, and after how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of attempts; 1 means no retries.
    pub max_attempts: u32,
    /// The approximate first delay. Each further delay is twice as long.
    pub initial_delay: Duration,
    /// The longest delay.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            initial_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// The delay after this many failures in a row.
    pub fn delay(&self, failures: u32) -> Duration {
        self.backoff(failures, random())
    }

    /// The delay after this many failures. It doubles with each failure, then a random value
    /// between half and all of it is taken, so that clients that failed together do not retry
    /// together.
    pub(crate) fn backoff(&self, failures: u32, random: u32) -> Duration {
        let doubled = self.initial_delay.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let half = doubled.min(self.max_delay) / 2;
        half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

/// A random number. If the OS provides no randomness, delays are only less spread out.
pub(crate) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_spread_over_half() {
        let retry = RetryPolicy::default();
        for (failures, least_ms, most_ms) in
            [(1, 250, 500), (2, 500, 1_000), (3, 1_000, 2_000), (9, 15_000, 30_000)]
        {
            assert_eq!(retry.backoff(failures, 0).as_millis(), least_ms);
            assert_eq!(retry.backoff(failures, u32::MAX).as_millis(), most_ms);
        }
        assert_eq!(retry.backoff(u32::MAX, u32::MAX), retry.max_delay);
    }
}
