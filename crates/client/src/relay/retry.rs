//! When a message is sent again, and after how long (section 5 of the spec).

use std::time::Duration;

use rialto_protocols::relay::Code;

use super::outcome::{DeliveryOutcome, SentMessage};
use crate::call::CallError;
pub use crate::retry::RetryPolicy;
pub(super) use crate::retry::random;

impl RetryPolicy {
    /// How long to wait before sending again; `None` if it must not be sent again.
    pub(super) fn retry_delay(
        &self,
        tries: u32,
        result: &Result<SentMessage, CallError>,
    ) -> Option<Duration> {
        let at_least = min_retry_delay(result)?;
        let allowed = tries < self.max_attempts && at_least <= self.max_delay;
        allowed.then(|| self.backoff(tries, random()).max(at_least))
    }
}

/// The minimum wait before the same message can succeed; `None` if it cannot.
fn min_retry_delay(result: &Result<SentMessage, CallError>) -> Option<Duration> {
    let busy = |status: u16, after: Option<Duration>| match status {
        429 | 503 => after,
        _ => None,
    };
    match result {
        // A replayed failure is final: a retry with the same key changes nothing, and one with
        // another key would create a second message.
        Ok(SentMessage { outcome: DeliveryOutcome::Failed { .. }, replayed: true, .. }) => None,
        Ok(SentMessage { outcome: DeliveryOutcome::Failed { code, .. }, .. }) => {
            match Code::read(code) {
                Some(Code::AgentUnreachable | Code::Timeout) => Some(Duration::ZERO),
                _ => None,
            }
        }
        Ok(SentMessage { outcome: DeliveryOutcome::Rejected(why), .. }) => {
            busy(why.status, why.retry_after)
        }
        Ok(_) => None,
        Err(CallError::Refused { status, retry_after, .. }) => busy(*status, *retry_after),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str, after_s: Option<u64>) -> Result<SentMessage, CallError> {
        SentMessage::from_refusal(CallError::Refused {
            status,
            code: code.to_owned(),
            message: String::new(),
            retryable: true,
            hint: None,
            retry_after: after_s.map(Duration::from_secs),
        })
    }

    fn told(data: &str, replayed: bool) -> Result<SentMessage, CallError> {
        SentMessage::read(data, replayed)
    }

    #[test]
    fn only_what_can_pass_is_tried_again() {
        let failed = |code: &str| format!(r#"{{"delivery":"failed","error_code":"{code}"}}"#);
        let unreadable = || Err(CallError::Unreadable(String::new()));
        let timed_out = || Err(CallError::TimedOut { url: String::new() });
        for (what, result, again) in [
            ("unreachable", told(&failed("ERR_AGENT_UNREACHABLE"), false), true),
            ("timeout", told(&failed("ERR_TIMEOUT"), false), true),
            ("remembered", told(&failed("ERR_TIMEOUT"), true), false),
            ("other failure", told(&failed("ERR_OTHER"), false), false),
            ("502", refused(502, "ERR_AGENT_UNREACHABLE", None), true),
            ("504", refused(504, "ERR_TIMEOUT", None), true),
            ("a proxy's 502", refused(502, "unknown", None), false),
            ("404", refused(404, "ERR_AGENT_NOT_FOUND", None), false),
            ("404 in a hurry", refused(404, "ERR_AGENT_NOT_FOUND", Some(1)), false),
            ("400", refused(400, "ERR_VALIDATION", None), false),
            ("401", refused(401, "ERR_UNAUTHORIZED", None), false),
            ("409", refused(409, "ERR_IN_PROGRESS", None), false),
            ("422", refused(422, "ERR_IDEMPOTENCY_CONFLICT", None), false),
            ("429", refused(429, "ERR_RATE_LIMITED", None), false),
            ("429 for a second", refused(429, "ERR_RATE_LIMITED", Some(1)), true),
            ("429 for an hour", refused(429, "ERR_RATE_LIMITED", Some(3_600)), false),
            ("503", refused(503, "ERR_UNAVAILABLE", None), false),
            ("503 for a second", refused(503, "ERR_UNAVAILABLE", Some(1)), true),
            ("500", refused(500, "ERR_INTERNAL", Some(1)), false),
            ("queued", told(r#"{"delivery":"queued"}"#, false), false),
            ("delivered", told(r#"{"delivery":"delivered"}"#, false), false),
            ("unreadable", unreadable(), false),
            ("timed out", timed_out(), false),
        ] {
            assert_eq!(RetryPolicy::default().retry_delay(1, &result).is_some(), again, "{what}");
        }
    }

    #[test]
    fn a_sender_gives_up_after_its_last_try() {
        let failed = told(r#"{"delivery":"failed","error_code":"ERR_TIMEOUT"}"#, false);
        let retry = RetryPolicy::default();
        assert!(retry.retry_delay(3, &failed).is_some());
        assert!(retry.retry_delay(4, &failed).is_none());
        assert!(RetryPolicy { max_attempts: 1, ..retry }.retry_delay(1, &failed).is_none());
    }

    #[test]
    fn a_server_that_names_a_wait_gets_it() {
        let busy = refused(429, "ERR_RATE_LIMITED", Some(7));
        assert_eq!(RetryPolicy::default().retry_delay(1, &busy), Some(Duration::from_secs(7)));
    }
}
