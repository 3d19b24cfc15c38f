//! What an outgoing call returns: a response of bounded size, or how far the request got.

use std::error::Error;
use std::future::Future;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};
use tokio::time::{Instant, timeout, timeout_at};

use super::guard::TargetError;
use super::host_limits::HostPermit;

/// The most memory taken for a body because of the length it announces.
const READ_AHEAD_MAX: usize = 1024 * 1024;

/// The receiver's response. A redirect is a response like any other: it is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    /// The complete body.
    pub body: Bytes,
}

/// Why a receiver was not reached that is called, but where no server listens.
pub const REFUSED: &str = "the connection was refused";

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
        Some(io::ErrorKind::ConnectionRefused) => REFUSED,
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

/// How long a response may take and how large it may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Bytes of the body, all chunks together.
    pub bytes_max: usize,
    /// Time until the head of the response, including resolving and connecting.
    pub head_timeout: Duration,
    /// Time between two chunks.
    pub idle_timeout: Duration,
    /// Time for everything, from resolving to the last byte; `None` for a stream without an end.
    pub whole_timeout: Option<Duration>,
}

impl ResponseLimits {
    /// The limits of a short call that takes at most `timeout`.
    pub fn within(timeout: Duration, bytes_max: usize) -> Self {
        Self {
            bytes_max,
            head_timeout: timeout,
            idle_timeout: timeout,
            whole_timeout: Some(timeout),
        }
    }
}

/// A response whose body is still arriving. Dropping it closes the connection and releases the slot
/// of its host.
pub struct StreamingResponse {
    /// The HTTP status.
    pub status: u16,
    /// The media type, in lower case and without parameters.
    pub media_type: String,
    /// The time in `Retry-After`, if that is a number of seconds; a date is ignored.
    pub retry_after: Option<Duration>,
    response: Response,
    bytes_max: usize,
    /// Bytes that may still be read.
    bytes_left: usize,
    idle_timeout: Duration,
    deadline: Option<Instant>,
    // Declared last, so that the connection is closed before its slot is free.
    _slot: HostPermit,
}

impl StreamingResponse {
    /// Waits for the head of a response.
    pub(super) async fn open(
        request: RequestBuilder,
        limits: ResponseLimits,
        slot: HostPermit,
    ) -> Result<Self, SendError> {
        // A time too far away to be represented never comes.
        let deadline = limits.whole_timeout.and_then(|whole| Instant::now().checked_add(whole));
        let head = within(deadline, limits.head_timeout, request.send()).await?;
        let response = head.map_err(|error| classify_error(&error))?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let media_type = header(CONTENT_TYPE).unwrap_or_default().split(';').next();
        let seconds = header(RETRY_AFTER).map(str::trim);
        let seconds = seconds.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        Ok(Self {
            status: response.status().as_u16(),
            media_type: media_type.unwrap_or_default().trim().to_ascii_lowercase(),
            retry_after: seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs),
            response,
            bytes_max: limits.bytes_max,
            bytes_left: limits.bytes_max,
            idle_timeout: limits.idle_timeout,
            deadline,
            _slot: slot,
        })
    }

    /// The next chunk; `None` at the end. A pause that is too long counts as no response.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, SendError> {
        let chunk = within(self.deadline, self.idle_timeout, self.response.chunk()).await?;
        let chunk = chunk.map_err(|error| classify_error(&error))?;
        let size = chunk.as_ref().map_or(0, Bytes::len);
        let left = self.bytes_left.checked_sub(size);
        self.bytes_left = left.ok_or_else(|| self.too_large())?;
        Ok(chunk)
    }

    /// Reads the rest of the body.
    pub async fn read_to_end(mut self) -> Result<HttpResponse, SendError> {
        let announced = self.response.content_length().unwrap_or(0);
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        if announced > self.bytes_left {
            return Err(self.too_large());
        }
        let mut body = BytesMut::with_capacity(announced.min(READ_AHEAD_MAX));
        while let Some(chunk) = self.next_chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(HttpResponse { status: self.status, body: body.freeze() })
    }

    fn too_large(&self) -> SendError {
        SendError::InvalidResponse(format!("the response is larger than {} bytes", self.bytes_max))
    }
}

/// The result of `step`, unless it takes longer than `limit` or until `deadline`.
async fn within<T>(
    deadline: Option<Instant>,
    limit: Duration,
    step: impl Future<Output = T>,
) -> Result<T, SendError> {
    let step = timeout(limit, step);
    let result = match deadline {
        Some(deadline) => timeout_at(deadline, step).await.ok().and_then(Result::ok),
        None => step.await.ok(),
    };
    result.ok_or(SendError::TimedOut)
}
