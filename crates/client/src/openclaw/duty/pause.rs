//! When something that failed is tried again.

use std::time::Duration;

use tokio::time::Instant;

use crate::retry::Retry;

/// How often something failed in a row, and when it may be tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    failures: u32,
    not_before: Instant,
}

impl Pause {
    /// Nothing failed.
    pub(super) fn none(now: Instant) -> Self {
        Self { failures: 0, not_before: now }
    }

    /// It failed once more. `wanted` is how long the hub says to wait.
    pub(super) fn failed(&mut self, now: Instant, wanted: Duration, retry: &Retry, random: u32) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + retry.backoff(self.failures, random).max(wanted);
    }

    /// The same moment, or the one before which nothing is to be tried.
    pub(super) fn after(&self, at: Instant) -> Instant {
        at.max(self.not_before)
    }
}
