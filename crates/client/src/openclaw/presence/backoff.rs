//! Backoff after failures.

use std::time::Duration;

use tokio::time::Instant;

use crate::retry::RetryPolicy;

/// The number of failures in a row, and when the next attempt is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    failures: u32,
    not_before: Instant,
}

impl Backoff {
    /// No failure yet.
    pub(super) fn none(now: Instant) -> Self {
        Self { failures: 0, not_before: now }
    }

    /// Records a failure. `wanted` is the delay the hub asked for.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        wanted: Duration,
        retry: &RetryPolicy,
        random: u32,
    ) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + retry.backoff(self.failures, random).max(wanted);
    }

    /// The later of `at` and the end of the backoff.
    pub(super) fn after(&self, at: Instant) -> Instant {
        at.max(self.not_before)
    }
}
