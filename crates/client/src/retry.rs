//! Retries: how often a call is repeated, after how long, and the one loop that does it.
//!
//! Each protocol adds only its rule, beside its calls: which of its errors are temporary
//! ([`CallError::wait_if`]).

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

use crate::call::CallError;

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
        Self { max_attempts: 4, ..Self::ENDLESS }
    }
}

impl RetryPolicy {
    /// The default delays, and no limit on the number of attempts.
    pub(crate) const ENDLESS: Self = Self {
        max_attempts: u32::MAX,
        initial_delay: Duration::from_millis(500),
        max_delay: Duration::from_secs(30),
    };

    /// The delay after this many failures in a row.
    pub fn delay(&self, failures: u32) -> Duration {
        self.backoff(failures, random())
    }

    /// How long to wait after this many failures in a row, the last of which is `error`. `None` if
    /// the error is permanent or the requested wait exceeds the maximum. Attempts are not counted
    /// here.
    pub fn delay_after(&self, error: &CallError, failures: u32) -> Option<Duration> {
        let at_least = error.min_retry_delay().filter(|wait| *wait <= self.max_delay)?;
        Some(self.delay(failures).max(at_least))
    }

    /// Repeats a call until it succeeds, fails permanently, or has used up its attempts.
    pub async fn call<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        // Not `AsyncFnMut`: a caller cannot require its future to be `Send`.
        call: impl FnMut() -> F,
    ) -> Result<T, CallError> {
        self.run(CallError::min_retry_delay, call).await
    }

    /// Like `call`, with the rule of a protocol: `min_delay` is the minimum wait before the same call
    /// can succeed, or `None` if it cannot.
    pub(crate) async fn run<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        min_delay: impl Fn(&CallError) -> Option<Duration>,
        call: impl FnMut() -> F,
    ) -> Result<T, CallError> {
        let delay = |result: &Result<T, CallError>, attempts| {
            self.delay_before_retry(attempts, min_delay(result.as_ref().err()?)?)
        };
        repeat(call, delay).await.0
    }

    /// The delay after this many attempts if the server asks for at least `at_least`. `None` if no
    /// attempt is left, or if that is longer than the longest delay.
    pub(crate) fn delay_before_retry(&self, attempts: u32, at_least: Duration) -> Option<Duration> {
        let allowed = attempts < self.max_attempts && at_least <= self.max_delay;
        allowed.then(|| self.delay(attempts).max(at_least))
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

/// Repeats an attempt for as long as `delay` returns how long to wait after a result and this many
/// attempts. Returns the last result and the number of attempts.
pub(crate) async fn repeat<T, F: Future<Output = T>>(
    mut attempt: impl FnMut() -> F,
    delay: impl Fn(&T, u32) -> Option<Duration>,
) -> (T, u32) {
    let mut attempts = 1_u32;
    loop {
        let result = attempt().await;
        let Some(pause) = delay(&result, attempts) else { return (result, attempts) };
        sleep(pause).await;
        attempts = attempts.saturating_add(1);
    }
}

/// A random number. If the OS provides no randomness, delays are only less spread out.
pub(crate) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Hub;
    use crate::testing::{TestServer, answer, refused};

    #[test]
    fn delays_double_up_to_the_longest_and_spread_over_half() {
        let retry = RetryPolicy::default();
        for (failures, least_ms, most_ms) in
            [(1, 250, 500), (2, 500, 1_000), (3, 1_000, 2_000), (9, 15_000, 30_000)]
        {
            assert_eq!(retry.backoff(failures, 0).as_millis(), least_ms);
            assert_eq!(retry.backoff(failures, u32::MAX).as_millis(), most_ms);
        }
        assert_eq!(retry.backoff(u32::MAX, u32::MAX), retry.max_delay);
    }

    #[test]
    fn a_server_that_asks_for_a_wait_gets_it_unless_it_is_too_long() {
        let retry = RetryPolicy::default();
        for (seconds, delay) in [(7, Some(Duration::from_secs(7))), (3_600, None)] {
            assert_eq!(retry.delay_before_retry(1, Duration::from_secs(seconds)), delay);
            let limited = refused(429, "rate_limited", true, Some(seconds));
            assert_eq!(retry.delay_after(&limited, 1), delay);
        }
    }

    #[test]
    fn a_caller_gives_up_after_its_last_attempt() {
        let retry = RetryPolicy::default();
        assert!(retry.delay_before_retry(3, Duration::ZERO).is_some());
        assert!(retry.delay_before_retry(4, Duration::ZERO).is_none());
        let once = RetryPolicy { max_attempts: 1, ..retry };
        assert!(once.delay_before_retry(1, Duration::ZERO).is_none());
    }

    #[tokio::test]
    async fn a_call_is_made_until_it_works_or_often_enough() {
        let busy = || answer(503, "", r#"{"code":"unavailable","retryable":true}"#);
        let server = TestServer::new(move |_, number| match number {
            0 | 1 => busy(),
            2 => answer(200, "", "{}"),
            _ => busy(),
        })
        .await;
        let hub = Hub::new(&server.url).expect("a client");
        let retry = RetryPolicy {
            max_attempts: 3,
            initial_delay: Duration::from_millis(1),
            ..RetryPolicy::default()
        };
        assert!(retry.call(async || hub.get("/x").await).await.is_ok());
        assert_eq!(server.heard().len(), 3);
        assert!(retry.call(async || hub.get("/x").await).await.is_err());
        assert_eq!(server.heard().len(), 6);
    }
}
