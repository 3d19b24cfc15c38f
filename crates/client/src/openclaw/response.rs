//! A hub's responses: one of the protocol's messages, or an error.

use std::time::Duration;

use reqwest::StatusCode;
use rialto_protocols::openclaw::Failure;
use rialto_protocols::openclaw::wire::error::ErrorBody;
use rialto_protocols::openclaw::wire::{self, Message, MessageBody};

use crate::call::CallError;
use crate::origin_client::refusal_from_body;

/// Parses one of the six messages.
pub(super) fn parse_message<T: MessageBody>(text: &[u8]) -> Result<T, CallError> {
    parse_message_with_text(text).map(|message| message.body)
}

/// Like `parse_message`, with the original text.
pub(super) fn parse_message_with_text<T: MessageBody>(
    text: &[u8],
) -> Result<Message<T>, CallError> {
    wire::read(text).map_err(|bad| CallError::unreadable(bad.message))
}

/// Checks an outgoing message like the hub does.
pub(super) fn check_message<T: MessageBody>(text: &str) -> Result<T, CallError> {
    let invalid = |bad: Failure| CallError::invalid(bad.message.clone(), hint(&bad.violations));
    wire::read(text.as_bytes()).map(|message| message.body).map_err(invalid)
}

/// Reads a refusal: an error of this protocol, or the response of a proxy in between.
pub(super) fn parse_refusal(status: StatusCode, after: Option<Duration>, body: &[u8]) -> CallError {
    let Ok(ErrorBody { error, .. }) = serde_json::from_slice(body) else {
        return refusal_from_body(status, after, body);
    };
    let wait = error.retry_after_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    CallError::Refused {
        status: status.as_u16(),
        hint: hint(&error.violations()),
        code: error.code,
        message: error.message,
        retryable: error.retryable,
        retry_after: wait.max(after),
    }
}

/// All violations, if there are more than the message already contains.
fn hint(violations: &[String]) -> Option<String> {
    (violations.len() > 1).then(|| violations.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rialto_core::time::Timestamp;
    use uuid::Uuid;

    #[test]
    fn a_refusal_names_its_violations_and_its_wait() {
        let body = Failure::rate_limited("slowly", 7).write(Uuid::nil(), Timestamp(0));
        let refused = parse_refusal(StatusCode::TOO_MANY_REQUESTS, None, body.as_bytes());
        let CallError::Refused { code, retryable, retry_after, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!((code.as_str(), retryable), ("RATE_LIMITED", true));
        assert_eq!(retry_after, Some(Duration::from_secs(7)));
        let two = Failure::with_violations(vec!["a is wrong".to_owned(), "b is wrong".to_owned()]);
        let body = two.write(Uuid::nil(), Timestamp(0));
        let refused = parse_refusal(StatusCode::BAD_REQUEST, None, body.as_bytes());
        assert!(matches!(refused, CallError::Refused { hint: Some(hint), .. }
            if hint == "a is wrong; b is wrong"));
    }

    #[test]
    fn a_proxy_may_refuse_in_another_form() {
        let refused = parse_refusal(StatusCode::BAD_GATEWAY, None, b"<html>");
        assert!(matches!(refused, CallError::Refused { status: 502, retryable: false, .. }));
    }
}
