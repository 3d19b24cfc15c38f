//! Reads a request body: whole, once, within limits.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};

use super::EdgeError;

/// A body must be complete within this time, however slowly it arrives.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// Reads a body of at most `limit` bytes.
pub async fn read_body(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, EdgeError> {
    let encoded = headers
        .get(CONTENT_ENCODING)
        .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoded {
        return Err(EdgeError::EncodedBody);
    }
    let whole = Limited::new(body, limit).collect();
    match tokio::time::timeout(BODY_TIME_MAX, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(EdgeError::TooLarge { limit })
        }
        // The client disconnected and does not wait for an answer.
        Ok(Err(_)) => Err(EdgeError::Malformed { what: "the body ended early" }),
        Err(_) => Err(EdgeError::TooSlow),
    }
}
