//! Repeats a call until the hub responds.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

use crate::call::CallError;
use crate::openclaw::retry::passing;
use crate::retry::{Retry, random};

/// The backoff between attempts; they never stop.
const RETRY: Retry = Retry {
    tries_max: u32::MAX,
    first: Duration::from_millis(500),
    longest: Duration::from_secs(30),
};

/// Repeats a call until there is a response, good or bad. Only temporary errors are retried.
pub(super) async fn persist<T, F>(call: impl Fn() -> F) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut failures = 0_u32;
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(wanted) = passing(&error) else { return Err(error) };
        failures = failures.saturating_add(1);
        sleep(RETRY.backoff(failures, random()).max(wanted)).await;
    }
}
