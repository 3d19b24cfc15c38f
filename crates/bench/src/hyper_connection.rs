//! One HTTP/1.1 connection of the load client, over hyper.
//!
//! The task that waits for the answer drives the connection. A separate task, as is usual with
//! hyper, would cost a task switch per request and per answer. `raw_connection` is the leaner
//! alternative for requests that are already bytes.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::StatusCode;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::load::Request;
use super::measurement::RequestError;

/// A request, and the kind of connection that sends it.
pub(super) trait BenchRequest: Sized + Send + 'static {
    type HyperConnection: BenchConnection<Self>;
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

/// One open connection.
pub(super) struct Wire {
    host: HeaderValue,
    sender: SendRequest<Full<Bytes>>,
    connection: Option<Connection<TokioIo<TcpStream>, Full<Bytes>>>,
}

impl BenchRequest for Request {
    type HyperConnection = Wire;
}

impl BenchConnection<Request> for Wire {
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
