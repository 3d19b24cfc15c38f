//! What is retried, and when.
//!
//! Everything that is retried is idempotent: by the id it carries, by an `Idempotency-Key`, or
//! because it only reads.

use std::future::Future;
use std::time::Duration;

use tokio::time::sleep;

use crate::call::CallError;
use crate::retry::RetryPolicy;

/// The minimum wait before the same call can succeed; `None` if it cannot.
pub(super) fn min_retry_delay(error: &CallError) -> Option<Duration> {
    match error {
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => Some(Duration::ZERO),
        CallError::Refused { retryable: true, retry_after, .. } => {
            Some(retry_after.unwrap_or_default())
        }
        // A proxy in between does not use the protocol's codes.
        CallError::Refused { status: 502..=504, code, retry_after, .. } if code == "unknown" => {
            Some(retry_after.unwrap_or_default())
        }
        CallError::Refused { .. } | CallError::Unreadable(_) => None,
    }
}

/// Repeats a call until it succeeds, fails permanently, or has used up its attempts.
pub(super) async fn with_retry<T, F: Future<Output = Result<T, CallError>>>(
    retry: RetryPolicy,
    mut call: impl FnMut() -> F,
) -> Result<T, CallError> {
    let mut tries = 0;
    loop {
        let error = match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        tries += 1;
        let wanted = min_retry_delay(&error).filter(|wait| *wait <= retry.max_delay);
        match wanted.filter(|_| tries < retry.max_attempts) {
            Some(wanted) => sleep(retry.delay(tries).max(wanted)).await,
            None => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str, retryable: bool) -> CallError {
        CallError::Refused {
            status,
            code: code.to_owned(),
            message: String::new(),
            retryable,
            hint: None,
            retry_after: None,
        }
    }

    #[test]
    fn only_what_the_protocol_calls_retryable_is_tried_again() {
        for (error, again) in [
            (refused(503, "AGENT_OFFLINE", true), true),
            (refused(429, "RATE_LIMITED", true), true),
            (refused(409, "CONFLICT", true), true),
            (refused(409, "CONFLICT", false), false),
            (refused(402, "BUDGET_INSUFFICIENT", false), false),
            (refused(502, "EXECUTION_ERROR", false), false),
            (refused(502, "unknown", false), true),
            (refused(500, "unknown", false), false),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            assert_eq!(min_retry_delay(&error).is_some(), again, "{error:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn so_often_and_no_more() {
        let mut calls = 0;
        let retry = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
        let result: Result<(), _> = with_retry(retry, || {
            calls += 1;
            std::future::ready(Err(refused(503, "AGENT_OFFLINE", true)))
        })
        .await;
        assert!(result.is_err());
        assert_eq!(calls, 3);
    }
}
