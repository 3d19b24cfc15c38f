//! A response whose body is read as a stream.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout, timeout_at};

use super::response::{self, SendError};
use super::host_limits::Slot;

/// A response whose body is still arriving.
pub struct Opened<'e> {
    pub status: u16,
    /// The media type, in lower case and without parameters.
    pub media_type: String,
    response: reqwest::Response,
    /// Bytes that may still be read.
    left: usize,
    pause: Duration,
    end: Instant,
    _slot: Slot<'e>,
}

impl<'e> Opened<'e> {
    pub(super) fn new(
        response: reqwest::Response,
        limit: usize,
        pause: Duration,
        end: Instant,
        slot: Slot<'e>,
    ) -> Self {
        let media_type = response.headers().get(reqwest::header::CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        Self {
            status: response.status().as_u16(),
            media_type: media_type.to_ascii_lowercase(),
            response,
            left: limit,
            pause,
            end,
            _slot: slot,
        }
    }

    /// The next chunk; `None` at the end. A pause that is too long counts as no response.
    pub async fn next(&mut self) -> Result<Option<Bytes>, SendError> {
        let piece = timeout_at(self.end, timeout(self.pause, self.response.chunk())).await;
        let Ok(Ok(piece)) = piece else { return Err(SendError::TimedOut) };
        let piece = piece.map_err(|error| response::from_client(&error))?;
        let size = piece.as_ref().map_or(0, Bytes::len);
        let too_large = || SendError::Broken("the response is too large".to_owned());
        self.left = self.left.checked_sub(size).ok_or_else(too_large)?;
        Ok(piece)
    }
}
