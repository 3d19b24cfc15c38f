//! Connections of the load client, with at most one request in flight.
//!
//! On one machine the client takes CPU time from the server, so requests that are already bytes are
//! sent over a [`RawConnection`], and the others over a [`HyperConnection`].

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::StatusCode;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::load::Request;
use crate::measurement::RequestError;

/// Buffer for an answer of the usual size.
const BUFFER_BYTES: usize = 4_096;
/// The longest accepted response head.
const HEAD_BYTES_MAX: usize = 64 * 1_024;

/// A request, and the kind of connection that sends it.
pub(super) trait BenchRequest: Sized + Send + 'static {
    type Connection: BenchConnection<Self>;
}

/// A connection with at most one request in flight.
pub(super) trait BenchConnection<R>: Sized + Send {
    /// Uses an open TCP stream.
    fn from_stream(stream: TcpStream) -> impl Future<Output = Result<Self, RequestError>> + Send;

    /// Waits until a request can be sent; `false` if the connection is closed.
    fn is_open(&mut self) -> impl Future<Output = bool> + Send;

    /// Sends a request and waits for the whole answer.
    fn exchange(
        &mut self,
        request: R,
    ) -> impl Future<Output = Result<(StatusCode, Bytes), RequestError>> + Send;

    /// Connects to a server.
    fn connect(address: SocketAddr) -> impl Future<Output = Result<Self, RequestError>> + Send {
        async move {
            let stream =
                TcpStream::connect(address).await.map_err(RequestError::connection_failed)?;
            stream.set_nodelay(true).map_err(RequestError::connection_failed)?;
            Self::from_stream(stream).await
        }
    }
}

/// A connection over hyper, for requests that need a full HTTP client.
///
/// The task that waits for the answer drives the connection. A separate task, as is usual with
/// hyper, would cost a task switch per request and per answer.
pub(super) struct HyperConnection {
    host: HeaderValue,
    sender: SendRequest<Full<Bytes>>,
    connection: Option<Connection<TokioIo<TcpStream>, Full<Bytes>>>,
}

impl BenchRequest for Request {
    type Connection = HyperConnection;
}

impl BenchConnection<Request> for HyperConnection {
    async fn from_stream(stream: TcpStream) -> Result<Self, RequestError> {
        let host = stream.peer_addr().map_err(RequestError::connection_failed)?.to_string();
        let host = HeaderValue::try_from(host).map_err(RequestError::connection_failed)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(RequestError::connection_failed)?;
        Ok(Self { host, sender, connection: Some(connection) })
    }

    async fn is_open(&mut self) -> bool {
        let Some(driven) = &mut self.connection else { return false };
        tokio::select! {
            // The connection first: only polling it shows that the server has closed it.
            biased;
            _ = driven => {
                self.connection = None;
                false
            }
            ready = self.sender.ready() => ready.is_ok(),
        }
    }

    async fn exchange(&mut self, request: Request) -> Result<(StatusCode, Bytes), RequestError> {
        let Self { host, sender, connection } = self;
        let request = build_request(request, host)?;
        let answer = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            Ok::<_, hyper::Error>((status, answer.into_body().collect().await?.to_bytes()))
        };
        tokio::pin!(answer);
        if let Some(driven) = connection {
            tokio::select! {
                biased;
                answered = &mut answer => return answered.map_err(RequestError::connection_failed),
                _ = driven => {}
            }
        }
        // The server has closed the connection; the answer may have arrived just before.
        *connection = None;
        answer.await.map_err(RequestError::connection_failed)
    }
}

fn build_request(
    request: Request,
    host: &HeaderValue,
) -> Result<hyper::Request<Full<Bytes>>, RequestError> {
    let Request { method, path, headers, body } = request;
    let mut request = hyper::Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.try_into().map_err(RequestError::connection_failed)?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, host.clone());
    Ok(request)
}

/// A whole request, head and body, as sent on the wire.
#[derive(Clone, Debug)]
pub struct RawRequest(pub Bytes);

impl RawRequest {
    /// A POST of `body` to a path of `host`. `headers` are further lines, each with its line break.
    pub fn post(host: SocketAddr, path: &str, headers: &str, body: &[u8]) -> Self {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\n{headers}content-length: {length}\r\n\r\n"
        );
        Self([head.as_bytes(), body].concat().into())
    }

    /// A GET of a path of `host`.
    pub fn get(host: SocketAddr, path: &str) -> Self {
        Self(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").into())
    }

    /// The body alone.
    pub fn body(&self) -> Bytes {
        let head = self.0.windows(4).position(|four| four == b"\r\n\r\n");
        self.0.slice(head.map_or(0, |end| end + 4)..)
    }
}

/// A minimal connection: bytes out, a status and a body in. Only the status and length of an answer
/// are parsed.
pub(super) struct RawConnection {
    stream: TcpStream,
    buffer: BytesMut,
}

impl BenchRequest for RawRequest {
    type Connection = RawConnection;
}

impl BenchConnection<RawRequest> for RawConnection {
    async fn from_stream(stream: TcpStream) -> Result<Self, RequestError> {
        Ok(Self { stream, buffer: BytesMut::with_capacity(BUFFER_BYTES) })
    }

    async fn is_open(&mut self) -> bool {
        // Between two answers nothing arrives, so any read result means that the connection has
        // ended.
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
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
        let read = self.stream.read_buf(&mut self.buffer).await;
        if read.map_err(RequestError::connection_failed)? == 0 {
            return Err(RequestError::connection_failed("the connection closed before the answer"));
        }
        Ok(())
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
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(RequestError::connection_failed("head is too long"));
        }
        return Ok(None);
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
