//! A response whose body is read as a stream.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout, timeout_at};

use super::host_limits::HostPermit;
use super::response::{self, SendError};

/// A response whose body is still arriving.
pub struct StreamingResponse<'e> {
    pub status: u16,
    /// The media type, in lower case and without parameters.
    pub media_type: String,
    response: reqwest::Response,
    /// Bytes that may still be read.
    bytes_left: usize,
    pause: Duration,
    end: Instant,
    _slot: HostPermit<'e>,
}

impl<'e> StreamingResponse<'e> {
    pub(super) fn new(
        response: reqwest::Response,
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
        let piece = piece.map_err(|error| response::classify_error(&error))?;
        let size = piece.as_ref().map_or(0, Bytes::len);
        let too_large = || SendError::InvalidResponse("the response is too large".to_owned());
        self.bytes_left = self.bytes_left.checked_sub(size).ok_or_else(too_large)?;
        Ok(piece)
    }
}
