//! A hub's response: one of the protocol's messages, or an error.

use std::time::Duration;

use reqwest::{RequestBuilder, StatusCode};
use rialto_protocols::openclaw::Failure;
use rialto_protocols::openclaw::wire::error::ErrorBody;
use rialto_protocols::openclaw::wire::{self, Message, MessageBody};
use serde::de::DeserializeOwned;

use crate::call::{CallError, refusal_from_text, retry_after};
use crate::origin_client;

/// Maximum response size: a full page of the longest messages.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Header of the first response to a key that was repeated with another body (R65).
const MISMATCH_HEADER: &str = "idempotency-mismatch";

/// The body of a successful response.
#[derive(Debug)]
pub(super) struct ServerResponse {
    pub(super) status: u16,
    pub(super) text: String,
    /// Whether the response belongs to an earlier request with the same key and other content.
    pub(super) mismatch: bool,
}

impl ServerResponse {
    /// Sends a request and reads the whole response.
    pub(super) async fn send(request: RequestBuilder) -> Result<Self, CallError> {
        let mut answer = origin_client::send(request).await?;
        let (status, after) = (answer.status(), retry_after(answer.headers()));
        let mismatch = answer.headers().get(MISMATCH_HEADER).is_some_and(|flag| flag == "true");
        let body = origin_client::read_body(&mut answer, ANSWER_BYTES_MAX).await?;
        if !status.is_success() {
            return Err(parse_refusal(status, after, &body));
        }
        let wrong = |_| CallError::Unreadable("it is not valid UTF-8".to_owned());
        let text = String::from_utf8(body).map_err(wrong)?;
        Ok(Self { status: status.as_u16(), text, mismatch })
    }

    /// The response, parsed as one of the hub's own types.
    pub(super) fn value<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_str(&self.text).map_err(|error| CallError::Unreadable(error.to_string()))
    }

    /// The response, parsed as one of the six messages.
    pub(super) fn message<T: MessageBody>(&self) -> Result<T, CallError> {
        parse_message(&self.text)
    }
}

/// Parses one of the six messages.
pub(super) fn parse_message<T: MessageBody>(text: &str) -> Result<T, CallError> {
    parse_message_with_text(text).map(|message| message.body)
}

/// Like `parse_message`, with the original text.
pub(super) fn parse_message_with_text<T: MessageBody>(text: &str) -> Result<Message<T>, CallError> {
    let unreadable = |bad: Failure| CallError::Unreadable(bad.message.into_owned());
    wire::read(text.as_bytes()).map_err(unreadable)
}

/// Checks an outgoing message like the hub does.
pub(super) fn check_message<T: MessageBody>(text: &str) -> Result<T, CallError> {
    let wrong = |bad: Failure| CallError::invalid(bad.message.clone(), hint(&bad.violations));
    wire::read(text.as_bytes()).map(|message| message.body).map_err(wrong)
}

/// Reads a refusal: an error of this protocol, or the response of a proxy in between.
pub(super) fn parse_refusal(status: StatusCode, after: Option<Duration>, body: &[u8]) -> CallError {
    let Ok(ErrorBody { error, .. }) = serde_json::from_slice(body) else {
        return refusal_from_text(status, after, &String::from_utf8_lossy(body));
    };
    let said = error.retry_after_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    CallError::Refused {
        status: status.as_u16(),
        hint: hint(&error.violations()),
        code: error.code,
        message: error.message,
        retryable: error.retryable,
        retry_after: said.max(after),
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
    fn a_refusal_says_what_to_do_and_when() {
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
    fn a_proxy_may_refuse_in_other_words() {
        let refused = parse_refusal(StatusCode::BAD_GATEWAY, None, b"<html>");
        assert!(matches!(refused, CallError::Refused { status: 502, retryable: false, .. }));
    }
}
