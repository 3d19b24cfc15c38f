//! Retry policy for requests: how often and after how long (section 7 of the book).

use std::time::Duration;

use rialto_protocols::openclaw::wire::{Response, ResponseAnswer};

use crate::call::CallError;

/// How often a request is retried, and after how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRetryPolicy {
    /// Maximum number of retries; 0 means none.
    pub max_retries: u32,
    /// The first delay. Each further one is twice as long, and each varies randomly by up to a
    /// fifth.
    pub initial_delay: Duration,
    /// The longest delay a hub may ask for. If it asks for more, the response is returned as it is.
    pub max_delay: Duration,
}

impl Default for RequestRetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(120),
        }
    }
}

impl RequestRetryPolicy {
    /// How long to wait before a retry with the same key; `None` if it must not be retried. `left`
    /// is the time left until the deadline.
    pub(super) fn retry_delay(
        &self,
        retries: u32,
        result: Result<&Response, &CallError>,
        left: Option<Duration>,
        random: u32,
    ) -> Option<Duration> {
        let wanted = response_retry_delay(result)?;
        if retries >= self.max_retries || wanted > self.max_delay {
            return None;
        }
        let wait = self.backoff(retries, random).max(wanted);
        left.is_none_or(|left| wait < left).then_some(wait)
    }

    /// The delay after this many retries: doubled with each, plus or minus a fifth.
    fn backoff(&self, retries: u32, random: u32) -> Duration {
        let doubled = self.initial_delay.saturating_mul(1 << retries.min(16));
        doubled.mul_f64(0.8 + 0.4 * f64::from(random) / f64::from(u32::MAX))
    }
}

/// The minimum wait before the same request can succeed; `None` if it cannot.
fn response_retry_delay(result: Result<&Response, &CallError>) -> Option<Duration> {
    match result {
        Ok(Response { answer: ResponseAnswer::Rejected(why), .. }) if why.retryable => {
            Some(Duration::from_secs(why.retry_after_seconds.unwrap_or(0).into()))
        }
        Ok(_) => None,
        Err(error) => min_retry_delay(error),
    }
}

/// The minimum wait before the same call can succeed; `None` if it cannot. Messages with their own
/// id may be sent again when a response was lost.
pub(super) fn min_retry_delay(error: &CallError) -> Option<Duration> {
    match error {
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => Some(Duration::ZERO),
        CallError::Refused { retryable: true, retry_after, .. }
        | CallError::Refused { status: 429 | 502 | 503 | 504 | 507, retry_after, .. } => {
            Some(retry_after.unwrap_or_default())
        }
        CallError::Refused { .. } | CallError::Unreadable(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_core::time::Timestamp;
    use rialto_protocols::openclaw::wire::Rejection;
    use rialto_protocols::openclaw::wire::error::Rejected;
    use uuid::Uuid;

    const MIDDLE: u32 = u32::MAX / 2;

    fn response(answer: ResponseAnswer) -> Response {
        let id = Uuid::nil();
        Response {
            request_id: id,
            responder_agent_id: id,
            answer,
            correlation_id: id,
            timestamp: Timestamp(0),
            result: None,
        }
    }

    fn rejected(code: Rejected, after: Option<u32>) -> Response {
        let why = Rejection { retry_after_seconds: after, ..Rejection::new(code, "no") };
        response(ResponseAnswer::Rejected(why))
    }

    fn refused(status: u16, retryable: bool) -> CallError {
        CallError::Refused {
            status,
            code: String::new(),
            message: String::new(),
            retryable,
            hint: None,
            retry_after: None,
        }
    }

    #[test]
    fn waits_are_one_two_and_four_seconds_give_or_take_a_fifth() {
        let busy = rejected(Rejected::ResourceExhausted, None);
        let wait = |retries, random| {
            RequestRetryPolicy::default().retry_delay(retries, Ok(&busy), None, random)
        };
        for (retries, least_ms, most_ms) in [(0, 800, 1_200), (1, 1_600, 2_400), (2, 3_200, 4_800)]
        {
            assert_eq!(wait(retries, 0), Some(Duration::from_millis(least_ms)));
            assert_eq!(wait(retries, u32::MAX), Some(Duration::from_millis(most_ms)));
        }
        assert_eq!(wait(3, 0), None, "three times is enough");
    }

    #[test]
    fn only_a_rejection_that_can_pass_is_asked_again() {
        for code in Rejected::ALL {
            let said = rejected(*code, None);
            let again =
                RequestRetryPolicy::default().retry_delay(0, Ok(&said), None, MIDDLE).is_some();
            assert_eq!(again, *code == Rejected::ResourceExhausted, "{code}");
        }
        let later = response(ResponseAnswer::Deferred { until: Timestamp(1) });
        assert_eq!(RequestRetryPolicy::default().retry_delay(0, Ok(&later), None, MIDDLE), None);
    }

    #[test]
    fn only_an_error_that_can_pass_is_tried_again() {
        for (error, again) in [
            (refused(400, false), false),
            (refused(401, false), false),
            (refused(404, false), false),
            (refused(409, false), false),
            (refused(409, true), true),
            (refused(422, false), false),
            (refused(429, true), true),
            (refused(500, false), false),
            (refused(500, true), true),
            (refused(502, false), true),
            (refused(503, true), true),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            let wait = RequestRetryPolicy::default().retry_delay(0, Err(&error), None, MIDDLE);
            assert_eq!(wait.is_some(), again, "{error:?}");
        }
    }

    #[test]
    fn a_hub_that_names_a_wait_gets_it_unless_it_is_too_long() {
        let wait = |after, left: Option<u64>| {
            let said = rejected(Rejected::ResourceExhausted, Some(after));
            let left = left.map(Duration::from_secs);
            RequestRetryPolicy::default()
                .retry_delay(0, Ok(&said), left, 0)
                .map(|wait| wait.as_millis())
        };
        assert_eq!(wait(0, None), Some(800));
        assert_eq!(wait(60, None), Some(60_000));
        assert_eq!(wait(121, None), None);
        assert_eq!(wait(60, Some(61)), Some(60_000));
        assert_eq!(wait(60, Some(60)), None, "the deadline comes first");
    }
}
