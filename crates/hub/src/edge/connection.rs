//! Serves one connection from accept to close.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::extract::ConnectInfo;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::debug;

use super::bodies::{RequestBody, ResponseBody, UnreadBody};
use super::connection_state::{ConnectionPhase, ConnectionState, HEAD_BYTES_MAX};
use super::dispatcher::Dispatcher;
use super::framing::has_content_length;
use super::idle_timer::IdleTimer;
use super::settings::Settings;
use super::slots::ConnectionSlot;
use super::socket::ConnectionSocket;

/// Buffer size per connection and direction.
const BUFFER_MAX: usize = 64 << 10;

/// Marks a request whose head gives the length of its body in two ways.
#[derive(Clone, Copy, Debug)]
pub struct AmbiguousLength;

/// State shared by all connections of a hub.
pub struct ConnectionServer {
    pub settings: Settings,
    http: http1::Builder,
    dispatcher: Arc<Dispatcher>,
    health_only: bool,
}

impl ConnectionServer {
    pub fn new(dispatcher: Arc<Dispatcher>, settings: Settings) -> Self {
        let mut http = http1::Builder::new();
        // The number of headers stays at hyper's default of 100: setting even the same number would
        // move them off the stack. Its header timer is off because `IdleTimer` can tell waiting
        // from sending.
        http.max_header_size(HEAD_BYTES_MAX).max_buf_size(BUFFER_MAX).header_read_timeout(None);
        Self { settings, http, dispatcher, health_only: false }
    }

    /// Serves health checks only, one request per connection.
    pub fn for_health(dispatcher: Arc<Dispatcher>, settings: &Settings) -> Self {
        let mut counter = Self::new(dispatcher, settings.for_health());
        counter.http.keep_alive(false);
        counter.health_only = true;
        counter
    }

    fn accepts_request<B>(&self, request: &Request<B>) -> bool {
        let route = || self.dispatcher.operations.find(request.method(), request.uri().path());
        !self.health_only || route().class(request.method()).is_health_check
    }
}

/// Serves a connection until it ends, times out or `stop` becomes true. Its memory is freed
/// afterwards.
pub async fn serve_connection(
    counter: Arc<ConnectionServer>,
    stream: std::net::TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
    mut stop: watch::Receiver<bool>,
) {
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let connection_state = Arc::new(ConnectionState::default());
    let line = TokioIo::new(ConnectionSocket::new(stream, Arc::clone(&connection_state), slot));
    let service = service_fn(|request| answer_request(&counter, request, peer, &connection_state));
    let connection = counter.http.serve_connection(line, service).with_upgrades();

    let mut connection = pin!(connection);
    let mut timeout = IdleTimer::new(&counter.settings);
    let mut timer = pin!(sleep(counter.settings.header_timeout));
    // The receiver lives as long as the connection: the accept loop counts receivers to know how
    // many connections are left.
    let mut stopped = pin!(async {
        let _ = stop.wait_for(|stop| *stop).await;
    });
    let ended = poll_fn(|context| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(context) {
                return Poll::Ready(Some(ended));
            }
            if connection_state.is_stopping() || stopped.as_mut().poll(context).is_pending() {
                return timeout
                    .poll(connection_state.snapshot(), timer.as_mut(), context)
                    .map(|()| None);
            }
            connection_state.begin_stop();
            timeout.begin_shutdown();
            connection.as_mut().graceful_shutdown();
        }
    });
    match ended.await {
        Some(Ok(())) => {}
        Some(Err(error)) => debug!(%error, "connection failed"),
        None => debug!(phase = ?connection_state.snapshot().phase(), "connection timed out"),
    }
}

fn answer_request(
    counter: &ConnectionServer,
    mut request: Request<Incoming>,
    peer: SocketAddr,
    connection_state: &Arc<ConnectionState>,
) -> impl Future<Output = Result<http::Response<ResponseBody>, Infallible>> + use<> {
    let dispatcher = &counter.dispatcher;
    connection_state.enter_phase(ConnectionPhase::Responding);
    request.extensions_mut().insert(ConnectInfo(peer));
    let head = connection_state.take_head();
    if request.headers().contains_key(header::TRANSFER_ENCODING) && has_content_length(&head) {
        request.extensions_mut().insert(AmbiguousLength);
    }
    if let Some(path) = dispatcher.operations.normalized_path(request.uri().path())
        && let Some(uri) = with_path(request.uri(), &path)
    {
        *request.uri_mut() = uri;
    }
    let unread = UnreadBody::default();
    // Reading the body of an `Expect: 100-continue` request would send the 100 response.
    let waits = request.headers().contains_key(header::EXPECT);
    let request =
        request.map(|body| RequestBody::new(body, Arc::clone(connection_state), unread.clone()));
    let accepted = counter.accepts_request(&request);
    let (dispatcher, connection_state) = (Arc::clone(dispatcher), Arc::clone(connection_state));
    async move {
        let response = if accepted {
            dispatcher.serve(request).await
        } else {
            let refusal = dispatcher.refuse_non_health(&request);
            // Its body counts as unread from here on.
            drop(request);
            refusal
        };
        let (mut head, body) = response.into_parts();
        let given_up =
            matches!(head.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT);
        // Tells the client that the connection closes; otherwise it would send its next request on
        // it.
        if !unread.drain(!given_up && !waits, &connection_state).await {
            head.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let body = ResponseBody::new(body, &head, connection_state);
        Ok(http::Response::from_parts(head, body))
    }
}

/// The same URI with another path.
fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{path}{query}").parse().ok()?);
    Uri::from_parts(parts).ok()
}
