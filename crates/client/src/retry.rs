//! How patient a sender is: how often it tries again, and after how long.

use std::time::Duration;

/// How patient a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often a message is sent at most; 1 is never again.
    pub tries_max: u32,
    /// About how long the first wait is; each further one is twice as long.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { tries_max: 4, first: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }
}

impl Retry {
    /// The wait after so many failures in a row.
    pub fn pause(&self, failures: u32) -> Duration {
        self.backoff(failures, random())
    }

    /// The wait after so many failures: doubled with each, and then between half and all of that,
    /// so that those who failed together do not come back together.
    pub(crate) fn backoff(&self, failures: u32, random: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(16));
        let half = doubled.min(self.longest) / 2;
        half + half.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

/// Any number. Without randomness waits are only less spread.
pub(crate) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_spread_over_half() {
        let retry = Retry::default();
        for (failures, least_ms, most_ms) in
            [(1, 250, 500), (2, 500, 1_000), (3, 1_000, 2_000), (9, 15_000, 30_000)]
        {
            assert_eq!(retry.backoff(failures, 0).as_millis(), least_ms);
            assert_eq!(retry.backoff(failures, u32::MAX).as_millis(), most_ms);
        }
        assert_eq!(retry.backoff(u32::MAX, u32::MAX), retry.longest);
    }
}
