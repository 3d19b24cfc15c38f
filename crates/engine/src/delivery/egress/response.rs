//! What an outgoing call returns: a response of bounded size, or how far the request got.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use tokio::time::{Instant, timeout, timeout_at};

use super::guard::TargetError;
use super::host_limits::HostPermit;

/// The receiver's response. A redirect is a response like any other: it is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    /// The complete body.
    pub body: Bytes,
}

/// Why there is no response. The texts are fixed and contain no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The guard refused the target; nothing was sent.
    #[error("the target {0}")]
    Blocked(#[from] TargetError),
    /// No connection was made, so the receiver saw nothing of the request.
    #[error("not reached: {0}")]
    Unreachable(String),
    /// Connected, but no complete response came in time: the request may have been acted on.
    #[error("connected, but the response did not arrive in time")]
    TimedOut,
    /// Connected, but the response cannot be used: the request may have been acted on.
    #[error("connected, but {0}")]
    InvalidResponse(String),
}

/// Reads a body to its end, but at most `limit` bytes of it.
pub(super) async fn read_limited(
    mut response: Response,
    limit: usize,
) -> Result<HttpResponse, SendError> {
    let status = response.status().as_u16();
    let too_large =
        || SendError::InvalidResponse(format!("the response is larger than {limit} bytes"));
    let told = response.content_length().map_or(0, |n| usize::try_from(n).unwrap_or(usize::MAX));
    if told > limit {
        return Err(too_large());
    }
    let mut body = BytesMut::with_capacity(told);
    while let Some(chunk) = response.chunk().await.map_err(|e| classify_error(&e))? {
        if chunk.len() > limit - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(HttpResponse { status, body: body.freeze() })
}

/// Classifies the client's errors by how far the request got.
pub(super) fn classify_error(error: &reqwest::Error) -> SendError {
    if let Some(blocked) = cause::<TargetError>(error) {
        return SendError::Blocked(*blocked);
    }
    if error.is_builder() {
        return SendError::Blocked(TargetError::NotAUrl);
    }
    // This covers resolving, TCP and TLS: everything before the first byte of the request.
    if error.is_connect() {
        return SendError::Unreachable(why_unreachable(error).to_owned());
    }
    if error.is_timeout() {
        return SendError::TimedOut;
    }
    SendError::InvalidResponse(
        "the connection closed or sent invalid HTTP before the response was complete".to_owned(),
    )
}

fn why_unreachable(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        return "connecting timed out";
    }
    if error.is_dns() {
        return "the name could not be resolved";
    }
    match cause::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => "the connection was refused",
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            "there is no route to the host"
        }
        // How rustls reports a handshake that failed.
        Some(io::ErrorKind::Other | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
            "no secure connection: the TLS handshake failed or the certificate is not trusted"
        }
        _ => "the connection failed",
    }
}

/// The first cause of this type, at any depth.
fn cause<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    let mut next = error.source();
    while let Some(inner) = next {
        if let Some(found) = inner.downcast_ref() {
            return Some(found);
        }
        next = inner.source();
    }
    None
}

/// The text of the deepest cause, which is the informative one.
pub(super) fn root_cause(error: &reqwest::Error) -> String {
    let mut deepest: &dyn Error = error;
    while let Some(inner) = deepest.source() {
        deepest = inner;
    }
    deepest.to_string()
}

/// A response whose body is still arriving.
pub struct StreamingResponse<'e> {
    pub status: u16,
    /// The media type, in lower case and without parameters.
    pub media_type: String,
    response: Response,
    /// Bytes that may still be read.
    bytes_left: usize,
    pause: Duration,
    end: Instant,
    _slot: HostPermit<'e>,
}

impl<'e> StreamingResponse<'e> {
    pub(super) fn new(
        response: Response,
        limit: usize,
        idle_timeout: Duration,
        deadline: Instant,
        slot: HostPermit<'e>,
    ) -> Self {
        let media_type = response.headers().get(reqwest::header::CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        Self {
            status: response.status().as_u16(),
            media_type: media_type.to_ascii_lowercase(),
            response,
            bytes_left: limit,
            pause: idle_timeout,
            end: deadline,
            _slot: slot,
        }
    }

    /// The next chunk; `None` at the end. A pause that is too long counts as no response.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        let piece = timeout_at(self.end, timeout(self.pause, self.response.chunk())).await;
        let Ok(Ok(piece)) = piece else { return Err(SendError::TimedOut) };
        let piece = piece.map_err(|error| classify_error(&error))?;
        let size = piece.as_ref().map_or(0, Bytes::len);
        let too_large = || SendError::InvalidResponse("the response is too large".to_owned());
        self.bytes_left = self.bytes_left.checked_sub(size).ok_or_else(too_large)?;
        Ok(piece)
    }
}
