//! Repeats a call until the hub responds.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

use crate::call::CallError;
use crate::openclaw::retry::min_retry_delay;
use crate::retry::{RetryPolicy, random};

/// The backoff between attempts; they never stop.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: u32::MAX,
    initial_delay: Duration::from_millis(500),
    max_delay: Duration::from_secs(30),
};

/// Repeats a call until there is a response, good or bad. Only temporary errors are retried.
pub(super) async fn retry_forever<T, F>(call: impl Fn() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut failures = 0_u32;
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(wanted) = min_retry_delay(&error) else { return Err(error) };
        failures = failures.saturating_add(1);
        sleep(RETRY.backoff(failures, random()).max(wanted)).await;
    }
}
