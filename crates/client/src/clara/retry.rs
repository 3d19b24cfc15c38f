//! When a call is retried: whenever that can help. The same item is never executed twice, and all
//! other calls only read.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

use crate::call::CallError;
use crate::retry::{RetryPolicy, random};

/// Repeats a call until it succeeds, fails permanently, or has used up its attempts.
pub(super) async fn with_retry<T, F>(
    retry: &RetryPolicy,
    mut attempt: impl FnMut() -> F,
) -> Result<T, CallError>
where
    F: Future<Output = Result<T, CallError>>,
{
    let mut tries = 1;
    loop {
        let error = match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let Some(pause) = retry_delay(retry, tries, &error) else { return Err(error) };
        sleep(pause).await;
        tries += 1;
    }
}

/// The minimum wait before the same call can succeed; `None` if it cannot.
pub(super) fn min_retry_delay(error: &CallError) -> Option<Duration> {
    match error {
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => Some(Duration::ZERO),
        CallError::Refused { status: 429 | 500 | 502..=504 | 507, retry_after, .. } => {
            Some(retry_after.unwrap_or_default())
        }
        _ => None,
    }
}

/// How long to wait before the next attempt; `None` if there is none.
fn retry_delay(retry: &RetryPolicy, tries: u32, error: &CallError) -> Option<Duration> {
    let at_least = min_retry_delay(error)?;
    let allowed = tries < retry.max_attempts && at_least <= retry.max_delay;
    allowed.then(|| retry.backoff(tries, random()).max(at_least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_pass_is_tried_again() {
        let refused = |status, after_s: Option<u64>| CallError::Refused {
            status,
            code: String::new(),
            message: String::new(),
            retryable: false,
            hint: None,
            retry_after: after_s.map(Duration::from_secs),
        };
        for (error, again) in [
            (refused(202, None), false),
            (refused(400, None), false),
            (refused(401, None), false),
            (refused(404, None), false),
            (refused(413, None), false),
            (refused(429, Some(7)), true),
            (refused(429, Some(3_600)), false),
            (refused(500, None), true),
            (refused(503, Some(5)), true),
            (refused(507, Some(30)), true),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            assert_eq!(
                retry_delay(&RetryPolicy::default(), 1, &error).is_some(),
                again,
                "{error:?}"
            );
        }
        assert!(retry_delay(&RetryPolicy::default(), 4, &refused(503, None)).is_none());
    }
}
