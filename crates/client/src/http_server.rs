//! A small HTTP server for agents that receive calls. It reads requests and passes them to a
//! handler.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Maximum number of connections; further ones wait in the accept queue.
const CONNECTIONS_MAX: usize = 256;
/// Timeout for the head of a request, and then for its body.
const READ_TIME_MAX: Duration = Duration::from_secs(30);
/// How long running requests may continue after shutdown.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait after a failed accept, which most likely means no free file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLong,
    Incomplete,
    TimedOut,
}

/// The peer's IP address as the socket reports it; stored in the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerIp(pub(crate) IpAddr);

/// An HTTP response: a status and JSON text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The `Allow` header of a 405.
    pub(crate) allow: Option<&'static str>,
    pub(crate) retry_after_seconds: Option<u32>,
    /// A header that is specific to the protocol.
    pub(crate) header: Option<(&'static str, &'static str)>,
}

impl HttpResponse {
    /// A response with a status and JSON text only.
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }
}

/// Whether the body has a content encoding.
pub(crate) fn has_content_encoding(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity")
}

/// Handles every request that arrives at `listener` until `stop`; running requests may then finish.
/// If a caller disconnects, its request handler is dropped.
pub(crate) async fn serve<A, F>(
    listener: TcpListener,
    body_max: usize,
    answer: A,
    stop: impl Future<Output = ()>,
) where
    A: Fn(Parts, Result<Bytes, BodyError>) -> F + Send + Sync + 'static,
    F: Future<Output = HttpResponse> + Send,
{
    let answer = Arc::new(answer);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(READ_TIME_MAX);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => accepted,
        };
        let Ok((stream, from)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        let answer = Arc::clone(&answer);
        let caller = PeerIp(from.ip().to_canonical());
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = Arc::clone(&answer);
            async move {
                let (mut head, body) = request.into_parts();
                head.extensions.insert(caller);
                let body = read_body(body, body_max).await;
                Ok::<_, Infallible>(into_response((answer)(head, body).await))
            }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        connections.spawn(graceful.watch(connection));
    }
    drop(listener);
    let _ = timeout(GRACE, graceful.shutdown()).await;
    // Connections that do not finish in time are aborted.
    connections.shutdown().await;
}

fn into_response(answer: HttpResponse) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(answer.body));
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(methods) = answer.allow {
        headers.insert(ALLOW, HeaderValue::from_static(methods));
    }
    if let Some(seconds) = answer.retry_after_seconds {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some((name, value)) = answer.header {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Reads the whole body of a request, unless it is too long or too slow.
async fn read_body(body: Incoming, max: usize) -> Result<Bytes, BodyError> {
    match timeout(READ_TIME_MAX, Limited::new(body, max).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLong),
        Ok(Err(_)) => Err(BodyError::Incomplete),
        Err(_) => Err(BodyError::TimedOut),
    }
}
