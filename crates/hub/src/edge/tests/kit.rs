//! Test fixture: a hub with a few routes, and a raw client.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Extensions, HeaderMap, Method, Response, StatusCode, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::config::{Config, LoadedConfig, Profile};
use crate::edge::{
    AllowedOrigins, BodyRateLimits, EdgeError, EdgeLayer, FastRoute, HostPolicy, PathPolicy,
    Principal, RateClass, RateLimits, RequestClass, Settings, bind, serve,
};
use crate::edge::{RequestId, TraceParent};
use crate::shutdown::{Shutdown, ShutdownTrigger};
use crate::telemetry::Metrics;

/// A test in which this much time passes has failed.
pub const LONG: Duration = Duration::from_secs(60);
/// Short enough to wait for, but longer than any request that must not time out.
pub const SHORT: Duration = Duration::from_secs(1);
/// The body limit of `/limited`.
pub const BODY_LIMIT: usize = 1000;

/// Limits that no test reaches unless it sets one.
pub fn patient() -> Settings {
    Settings {
        header_timeout: LONG,
        idle_timeout: LONG,
        stall_timeout: LONG,
        linger_timeout: LONG,
        grace: LONG,
        max_connections: 10_000,
        max_connections_per_address: 10_000,
        health_connections: 0,
        health_connections_per_address: 0,
        health_timeout: LONG,
    }
}

pub fn config(flags: &[(&str, &str)]) -> Config {
    let flags: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    let none = std::path::Path::new("/dev/null");
    let loaded = LoadedConfig::load(Profile::Serve, Some(none), std::iter::empty(), &flags);
    loaded.expect("the flags are valid").config
}

/// A running hub; it stops when dropped.
pub struct Hub {
    pub address: SocketAddr,
    pub metrics: Metrics,
    pub trigger: ShutdownTrigger,
    pub serving: JoinHandle<()>,
    /// How many requests for `/soon` and `/never` have begun.
    pub begun: Arc<AtomicU32>,
}

impl Hub {
    pub fn start(settings: Settings) -> Self {
        Self::with(settings, &[])
    }

    pub fn with(settings: Settings, flags: &[(&str, &str)]) -> Self {
        crate::telemetry::keep_callsites_enabled();
        let listener = bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let metrics = Metrics::new(Vec::new);
        let front = front(address, flags, metrics.clone());
        let begun = Arc::new(AtomicU32::new(0));
        let router = front.wrap(routes(Arc::clone(&begun)));
        let (trigger, shutdown) = Shutdown::manual();
        let counted = metrics.clone();
        let serving = tokio::spawn(async move {
            serve(listener, router, settings, &counted, shutdown).await;
        });
        Self { address, metrics, trigger, serving, begun }
    }

    pub async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.expect("the hub accepts"))
    }

    /// Connects from another address of this machine.
    pub async fn connect_from(&self, last: u8) -> io::Result<Client> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, last], 0)))?;
        socket.connect(self.address).await.map(Client)
    }

    /// One request on its own connection.
    pub async fn ask(&self, request: &str) -> String {
        let mut client = self.connect().await;
        client.send(request).await;
        client.rest().await
    }

    pub async fn assert_well(&self) {
        let answer = self.ask(&get_request("/hello")).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
    }

    /// Waits until this many requests have begun.
    pub async fn until_begun(&self, count: u32) {
        until(|| self.begun.load(Ordering::Relaxed) == count).await;
    }

    /// Waits until this many connections are open.
    pub async fn until_open(&self, count: i64) {
        until(|| self.metrics.connection_gauge().get() == count).await;
    }
}

pub async fn until(condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, met).await.expect("it happens in time");
}

/// A request that closes its connection.
pub fn get_request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

/// Any request on its own connection, with additional headers.
pub fn with(method: &str, path: &str, headers: &str) -> String {
    let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
    format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n{host}{headers}\r\n")
}

/// A request that keeps its connection open.
pub fn get_more(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// A client that can send anything.
pub struct Client(pub TcpStream);

/// How a client sends a body.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Whole,
    Chunked,
    /// In a separate packet, so that the hub has read the head before.
    AfterTheHead,
}

impl Client {
    /// Sends a request that keeps the connection open.
    pub async fn send_body(&mut self, path: &str, headers: &str, length: usize, form: Form) {
        let host = if headers.contains("Host:") { "" } else { "Host: localhost\r\n" };
        let body = "x".repeat(length);
        let (framing, body) = match form {
            Form::Whole | Form::AfterTheHead => (format!("Content-Length: {length}"), body),
            Form::Chunked => {
                let body = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
                ("Transfer-Encoding: chunked".to_owned(), body)
            }
        };
        let head = format!("POST {path} HTTP/1.1\r\n{host}{headers}{framing}\r\n\r\n");
        if matches!(form, Form::AfterTheHead) {
            self.send(&head).await;
            tokio::task::yield_now().await;
            self.send(&body).await;
        } else {
            self.send(&(head + &body)).await;
        }
    }

    pub async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("the hub reads");
    }

    /// Everything until the hub closes; bytes before a reset count.
    pub async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = timeout(LONG, self.0.read_to_end(&mut bytes)).await;
        let _ = read.expect("the hub closes in time");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Everything up to and including `end`.
    pub async fn until(&mut self, end: &str) -> String {
        let mut bytes = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&bytes).ends_with(end) {
                bytes.push(self.0.read_u8().await.expect("there is more"));
            }
        };
        timeout(LONG, reading).await.expect("it arrives in time");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Knows the paths below.
struct TestPathPolicy;

impl PathPolicy for TestPathPolicy {
    fn classify(&self, method: &Method, path: &str) -> RequestClass {
        let kind = match (method, path) {
            (&Method::POST, "/register") => RateClass::Register,
            (&Method::POST, _) => RateClass::Write,
            _ => RateClass::Read,
        };
        let pages = match path {
            "/open" if method == Method::GET => AllowedOrigins::Any,
            "/signed" => AllowedOrigins::AnyIfPublished,
            _ => AllowedOrigins::Own,
        };
        RequestClass { origins: pages, rate: kind }
    }

    fn error_response(&self, path: &str, edge_error: EdgeError) -> Response<Body> {
        let owner = path.split('/').nth(1).unwrap_or_default();
        (edge_error.status(), format!("{owner} says: {edge_error}")).into_response()
    }

    fn body_limit(&self, path: &str) -> usize {
        if path == "/limited" || path == "/express" { BODY_LIMIT } else { 16 << 20 }
    }

    fn is_health_check(&self, _: &Method, path: &str) -> bool {
        path == "/health"
    }

    /// Keys of one letter are valid; each belongs to an agent.
    fn find_principal(&self, headers: &HeaderMap, _: &mut Extensions) -> Option<Principal> {
        match headers.get(header::AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")? {
            [envelope] => Some(Principal::Agent(u64::from(*envelope))),
            _ => None,
        }
    }

    fn fast_routes(&self, method: &Method, path: &str) -> Option<FastRoute> {
        (method == Method::POST && path == "/express").then(|| FastRoute {
            route: Arc::from("/express"),
            rate: RateClass::Write,
            excluded_headers: &["x-slow"],
            handler: Arc::new(|http::request::Parts { headers, .. }, body| {
                Box::pin(async move {
                    assert!(!headers.contains_key("x-panic"), "a mistake");
                    if headers.contains_key("x-refused") {
                        return StatusCode::UNAUTHORIZED.into_response();
                    }
                    match body.await {
                        Ok(body) => format!("express {}", body.len()).into_response(),
                        Err(edge_error) => TestPathPolicy.error_response("/express", edge_error),
                    }
                })
            }),
        })
    }
}

/// An edge layer with sequential request ids.
pub fn front(address: SocketAddr, flags: &[(&str, &str)], metrics: Metrics) -> EdgeLayer {
    let config = config(flags);
    let made = AtomicU32::new(0);
    EdgeLayer {
        refused_keys: Default::default(),
        policy: Arc::new(TestPathPolicy),
        hosts: HostPolicy::new(&config.http, address),
        limits: Arc::new(RateLimits::new(&config.limits)),
        request_ids: Arc::new(move || format!("made-{}", made.fetch_add(1, Ordering::Relaxed))),
        metrics,
        body_rate_limits: BodyRateLimits::from(&config.http),
    }
}

fn routes(begun: Arc<AtomicU32>) -> Router {
    let peer = |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() };
    let size = |body: Bytes| async move { body.len().to_string() };
    let soon_begun = Arc::clone(&begun);
    let soon = async move || {
        soon_begun.fetch_add(1, Ordering::Relaxed);
        sleep(SHORT).await;
        "soon"
    };
    let never = async move || {
        begun.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
    };
    Router::new()
        .route("/hello", get(async || "hello"))
        .route("/health", get(async || "well"))
        .route("/open", get(async || "open").post(async || "not so open"))
        .route("/signed", post(async || "signed"))
        .route("/peer", get(peer))
        .route("/agents/{id}", get(async || "an agent"))
        .route("/about", get(about))
        .route("/register", post(size))
        .route("/write", post(size))
        .route("/limited", post(size))
        .route("/express", post(size))
        .route("/unread", post(async || StatusCode::UNAUTHORIZED))
        .route("/panic", get(panicking))
        .route("/soon", get(soon))
        .route("/never", get(never))
        .route("/flood", get(async || Body::from_stream(flood())))
        .route("/events", get(events))
        .route("/upgrade", get(upgrade))
}

/// What the edge layer passes to its handlers.
async fn about(request: axum::extract::Request) -> String {
    let id = request.extensions().get::<RequestId>().map(RequestId::to_string);
    let trace = request.extensions().get::<TraceParent>().map(|parent| parent.trace_id);
    format!("{} {:x}", id.unwrap_or_default(), trace.unwrap_or_default())
}

async fn panicking() {
    tracing::error!("about to panic");
    panic!("a mistake");
}

/// Takes over the connection and echoes its input.
async fn upgrade(mut request: axum::extract::Request) -> impl IntoResponse {
    let upgrading = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let upgraded = upgrading.await.expect("the connection is handed over");
        let (mut reading, mut writing) = tokio::io::split(hyper_util::rt::TokioIo::new(upgraded));
        let _ = tokio::io::copy(&mut reading, &mut writing).await;
    });
    (StatusCode::SWITCHING_PROTOCOLS, [(header::UPGRADE, "echo"), (header::CONNECTION, "upgrade")])
}

fn flood() -> impl stream::Stream<Item = Result<Bytes, Infallible>> {
    stream::repeat_with(|| Ok(Bytes::from(vec![b'x'; 64 << 10])))
}

async fn events() -> impl IntoResponse {
    let first = Ok::<_, Infallible>(Bytes::from_static(b"data: first\n\n"));
    let body = Body::from_stream(stream::iter([first]).chain(stream::pending()));
    ([(header::CONTENT_TYPE, "text/event-stream")], body)
}
