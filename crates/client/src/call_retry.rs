//! Retrying calls: errors that may be temporary are retried with backoff.

use std::time::Duration;

use tokio::time::sleep;

use crate::call::CallError;
use crate::retry::RetryPolicy;

impl CallError {
    /// The minimum wait before the same call can succeed, or `None` if it cannot.
    ///
    /// The call may have taken effect before the response was lost. Retry only calls that are
    /// idempotent.
    pub fn min_retry_delay(&self) -> Option<Duration> {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => Some(Duration::ZERO),
            Self::Refused { status: 429 | 502..=504, code, retryable, retry_after, .. } => {
                // A proxy between the client and the hub does not use the hub's error codes.
                let hopeful = *retryable || retry_after.is_some() || code == "unknown";
                hopeful.then(|| retry_after.unwrap_or_default())
            }
            Self::Refused { .. } | Self::Unreadable(_) => None,
        }
    }
}

impl RetryPolicy {
    /// How long to wait after this many failures in a row, the last of which is `error`. `None` if
    /// the error is permanent or the requested wait exceeds the maximum. Attempts are not counted
    /// here.
    pub fn delay_after(&self, error: &CallError, failures: u32) -> Option<Duration> {
        let at_least = error.min_retry_delay().filter(|wait| *wait <= self.max_delay)?;
        Some(self.delay(failures).max(at_least))
    }

    /// Repeats a call until it succeeds, fails permanently, or has used up its attempts.
    pub async fn call<T, W: Future<Output = Result<T, CallError>>>(
        &self,
        // Not `AsyncFnMut`: a caller cannot require its future to be `Send`.
        mut call: impl FnMut() -> W,
    ) -> Result<T, CallError> {
        let mut tries = 0;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            tries += 1;
            match self.delay_after(&error, tries).filter(|_| tries < self.max_attempts) {
                Some(pause) => sleep(pause).await,
                None => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Hub;
    use crate::testing::{Stage, answer};

    fn refused(status: u16, code: &str, retryable: bool, after_s: Option<u64>) -> CallError {
        CallError::Refused {
            status,
            code: code.to_owned(),
            message: String::new(),
            retryable,
            hint: None,
            retry_after: after_s.map(Duration::from_secs),
        }
    }

    #[test]
    fn only_what_can_pass_is_tried_again() {
        for (error, again) in [
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
            (refused(503, "unavailable", true, None), true),
            (refused(503, "agent_unavailable", false, None), false),
            (refused(502, "unknown", false, None), true),
            (refused(429, "rate_limited", true, Some(1)), true),
            (refused(429, "rate_limited", true, Some(3_600)), false),
            (refused(404, "not_found", false, None), false),
            (refused(409, "still_running", true, Some(1)), false),
            (refused(500, "internal", true, None), false),
        ] {
            assert_eq!(RetryPolicy::default().delay_after(&error, 1).is_some(), again, "{error}");
        }
        let wait = refused(429, "rate_limited", true, Some(7));
        assert_eq!(RetryPolicy::default().delay_after(&wait, 1), Some(Duration::from_secs(7)));
    }

    #[tokio::test]
    async fn a_call_is_made_until_it_works_or_often_enough() {
        let busy = || answer(503, "", r#"{"code":"unavailable","retryable":true}"#);
        let server = Stage::new(move |_, number| match number {
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
