//! When an envelope is sent again: only if that can help and does no harm.
//!
//! Ids make repeated envelopes harmless, so an envelope whose response was lost is sent again as it
//! is.

use std::time::Duration;

use rialto_core::time::{Millis, Timestamp};

use crate::call::CallError;
use crate::retry::{RetryPolicy, random};

/// How long to wait before sending the same envelope again; `None` if it must not be sent again.
pub(super) fn retry_delay(retry: &RetryPolicy, tries: u32, error: &CallError) -> Option<Duration> {
    let at_least = min_retry_delay(error)?;
    let allowed = tries < retry.max_attempts && at_least <= retry.max_delay;
    allowed.then(|| retry.backoff(tries, random()).max(at_least))
}

/// The minimum wait before the same envelope can succeed; `None` if it cannot.
fn min_retry_delay(error: &CallError) -> Option<Duration> {
    match error {
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => Some(Duration::ZERO),
        CallError::Refused { status: 429 | 502 | 503 | 504 | 507, retry_after, .. } => {
            Some(retry_after.unwrap_or_default())
        }
        // The hub had an internal error and says itself whether a retry is safe. A 408 is retryable
        // too, but only as a new request.
        CallError::Refused { status: 500, retryable: true, retry_after, .. } => {
            Some(retry_after.unwrap_or_default())
        }
        _ => None,
    }
}

/// Whether an envelope may become too old before it arrives.
pub(super) fn is_aging(signed: Timestamp, now: Timestamp, window: Millis) -> bool {
    signed.0.abs_diff(now.0) > window.0.unsigned_abs() / 2
}

/// Whether an envelope is too old to be accepted.
pub(super) fn is_stale(signed: Timestamp, now: Timestamp, window: Millis) -> bool {
    signed.0.abs_diff(now.0) > window.0.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, retryable: bool, after_s: Option<u64>) -> CallError {
        CallError::Refused {
            status,
            code: format!("ERROR {status}"),
            message: String::new(),
            retryable,
            hint: None,
            retry_after: after_s.map(Duration::from_secs),
        }
    }

    #[test]
    fn only_what_can_pass_is_tried_again() {
        for (error, again) in [
            (refused(400, false, None), false),
            (refused(401, false, None), false),
            (refused(402, false, None), false),
            (refused(404, false, None), false),
            (refused(408, true, None), false),
            (refused(413, false, None), false),
            (refused(429, true, Some(7)), true),
            (refused(429, true, Some(3_600)), false),
            (refused(500, false, None), false),
            (refused(500, true, None), true),
            (refused(503, true, None), true),
            (refused(507, true, None), true),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            let wait = retry_delay(&RetryPolicy::default(), 1, &error);
            assert_eq!(wait.is_some(), again, "{error:?}");
            if let CallError::Refused { retry_after: Some(after), .. } = error
                && again
            {
                assert!(wait >= Some(after));
            }
        }
        assert!(retry_delay(&RetryPolicy::default(), 4, &refused(503, true, None)).is_none());
    }

    #[test]
    fn an_envelope_ages_after_half_the_window() {
        let (window, signed) = (Millis::seconds(60), Timestamp(100_000));
        for (now, aging) in [(100_000, false), (130_000, false), (130_001, true), (69_999, true)] {
            assert_eq!(is_aging(signed, Timestamp(now), window), aging, "{now}");
        }
        for (now, stale) in [(160_000, false), (160_001, true), (40_000, false), (39_999, true)] {
            assert_eq!(is_stale(signed, Timestamp(now), window), stale, "{now}");
        }
    }
}
