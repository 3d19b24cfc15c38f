//! A server's responses, unwrapped from the response envelope.

use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::origin_client;
use crate::call::{CallError, retry_after};

/// Maximum response size: a full page of the longest messages.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// One response: the JSON text of its data, and its metadata.
#[derive(Debug)]
pub(super) struct ServerResponse {
    /// The data as received.
    pub(super) data: Box<RawValue>,
    /// The cursor of the next page.
    pub(super) next_cursor: Option<String>,
    /// Whether the server repeated its response to an earlier request with the same key.
    pub(super) replayed: bool,
}

#[derive(Deserialize)]
struct Wrapper {
    data: Box<RawValue>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    next_cursor: Option<String>,
}

impl ServerResponse {
    /// Sends a request and reads the response; anything but a success is an error.
    pub(super) async fn send(request: RequestBuilder) -> Result<Self, CallError> {
        Self::from_response(origin_client::send(request).await?).await
    }

    /// Reads a response.
    pub(super) async fn from_response(mut answer: Response) -> Result<Self, CallError> {
        let after = retry_after(answer.headers());
        let replayed = answer.headers().contains_key("idempotency-replayed");
        let status = answer.status();
        let body = origin_client::read_body(&mut answer, ANSWER_BYTES_MAX).await?;
        match status.is_success() {
            true => Self::read(&body, replayed),
            false => Err(origin_client::refusal_from_body(status, after, &body)),
        }
    }

    fn read(body: &[u8], replayed: bool) -> Result<Self, CallError> {
        let Wrapper { data, metadata } = from_json(body)?;
        Ok(Self { data, next_cursor: metadata.next_cursor, replayed })
    }

    /// The data, parsed.
    pub(super) fn value<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        from_json(self.data.get().as_bytes())
    }
}

/// Parses a JSON body.
pub(super) fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(body).map_err(|error| CallError::Unreadable(error.to_string()))
}

/// Whether a status means that nothing exists at a path, rather than an error.
pub(super) fn is_absent(status: StatusCode) -> bool {
    let busy = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
    status.is_redirection() || status.is_client_error() && !busy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_kept_as_it_came() {
        let body = br#"{"success":true,"data":{"n": 1.00},"metadata":{"next_cursor":"c"}}"#;
        let answer = ServerResponse::read(body, false).expect("an answer");
        assert_eq!(answer.data.get(), r#"{"n": 1.00}"#);
        assert_eq!(answer.next_cursor.as_deref(), Some("c"));
        assert!(
            ServerResponse::read(br#"{"data":[]}"#, false).expect("bare").next_cursor.is_none()
        );
        for body in ["", "[]", "{}", "<html>"] {
            assert!(ServerResponse::read(body.as_bytes(), false).is_err(), "{body}");
        }
    }
}
