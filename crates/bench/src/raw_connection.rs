//! One minimal HTTP/1.1 connection of the load client: bytes out, a status and a body in.
//!
//! On one machine the client takes CPU time from the server, so only the status and length of an
//! answer are parsed. Requests that need a full HTTP client use `hyper_connection`.

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::hyper_connection::{BenchConnection, BenchRequest};
use super::measurement::RequestError;

/// Buffer for an answer of the usual size.
const BUFFER_BYTES: usize = 4_096;
/// The longest accepted response head.
const HEAD_BYTES_MAX: usize = 64 * 1_024;

/// A whole request, head and body, as sent on the wire.
#[derive(Clone, Debug)]
pub struct RawRequest(pub Bytes);

/// One open connection.
pub(super) struct RawConnection {
    stream: TcpStream,
    buffer: BytesMut,
}

impl BenchRequest for RawRequest {
    type HyperConnection = RawConnection;
}

impl BenchConnection<RawRequest> for RawConnection {
    async fn from_stream(stream: TcpStream) -> Result<Self, RequestError> {
        Ok(Self { stream, buffer: BytesMut::with_capacity(BUFFER_BYTES) })
    }

    async fn is_open(&mut self) -> bool {
        // Between two answers nothing arrives, so any read result means that the connection has
        // ended.
        let found = self.stream.try_read(&mut [0]);
        found.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    }

    async fn exchange(&mut self, request: RawRequest) -> Result<(StatusCode, Bytes), RequestError> {
        self.buffer.clear();
        self.stream.write_all(&request.0).await.map_err(RequestError::connection_failed)?;
        let head = loop {
            if let Some(head) = read_head(&self.buffer)? {
                break head;
            }
            self.more().await?;
        };
        while self.buffer.len() < head.bytes + head.body {
            self.more().await?;
        }
        let _ = self.buffer.split_to(head.bytes);
        Ok((head.status, self.buffer.split_to(head.body).freeze()))
    }
}

impl RawConnection {
    async fn more(&mut self) -> Result<(), RequestError> {
        self.buffer.reserve(BUFFER_BYTES);
        match self
            .stream
            .read_buf(&mut self.buffer)
            .await
            .map_err(RequestError::connection_failed)?
        {
            0 => Err(RequestError::connection_failed("the connection closed before the answer")),
            _ => Ok(()),
        }
    }
}

/// The parts of a response head that are used.
#[derive(Debug, PartialEq, Eq)]
struct ResponseHead {
    status: StatusCode,
    /// Length of the head itself.
    bytes: usize,
    /// Length of the body after it.
    body: usize,
}

/// `None` until the head is complete.
fn read_head(bytes: &[u8]) -> Result<Option<ResponseHead>, RequestError> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        let endless = bytes.len() > HEAD_BYTES_MAX;
        return if endless {
            Err(RequestError::connection_failed("head is too long"))
        } else {
            Ok(None)
        };
    };
    let status = bytes.get(9..12).and_then(|digits| StatusCode::from_bytes(digits).ok());
    let status =
        status.ok_or_else(|| RequestError::connection_failed("the response has no status"))?;
    let length = bytes[..end].split(|byte| *byte == b'\n').find_map(content_length);
    let body = length
        .ok_or_else(|| RequestError::connection_failed("the response has no content-length"))?;
    Ok(Some(ResponseHead { status, bytes: end + 4, body }))
}

fn content_length(line: &[u8]) -> Option<usize> {
    let (name, value) = line.split_at_checked("content-length:".len())?;
    let named = name.eq_ignore_ascii_case(b"content-length:");
    str::from_utf8(value).ok().filter(|_| named)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] =
        b"HTTP/1.1 202 Accepted\r\nx-note: content-length: 9\r\nContent-Length: 5\r\n\r\nhello";

    #[test]
    fn status_and_length_are_read_once_the_head_is_whole() {
        let whole = ANSWER.len() - 5;
        for some in 0..whole {
            assert_eq!(read_head(&ANSWER[..some]), Ok(None));
        }
        let head = ResponseHead { status: StatusCode::ACCEPTED, bytes: whole, body: 5 };
        assert_eq!(read_head(ANSWER), Ok(Some(head)));
    }

    #[test]
    fn answers_without_status_length_or_end_are_broken() {
        for bytes in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"hello, world\r\n\r\n", &[b'x'; 70_000]] {
            assert!(matches!(read_head(bytes), Err(RequestError::ConnectionFailed(_))));
        }
    }
}
