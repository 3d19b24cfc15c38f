//! Test fixture: a hub with a few routes, and a raw client.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequest, State};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Response, StatusCode, header};
use rialto_protocols::adapter::Access::{AnyAgent, Public, Register, Signed};
use rialto_protocols::adapter::api::ServedOperation;
use rialto_protocols::adapter::operation::{delete, get, post};
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::adapter::{Api, EdgeError, Operation, RateClass};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::config::{Config, LoadedConfig, Profile};
use crate::edge::{
    BodyRateLimits, ConnectionThreads, Dispatcher, HostPolicy, OperationTable, Principal,
    RateLimits, Settings, bind, serve,
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

/// Counts requests that have begun.
pub type Begun = Arc<AtomicU32>;

/// A running hub; it stops when dropped.
pub struct Hub {
    pub address: SocketAddr,
    pub metrics: Metrics,
    pub trigger: ShutdownTrigger,
    pub serving: JoinHandle<()>,
    /// How many requests for `/soon` and `/never` have begun.
    pub begun: Begun,
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
        let begun = Begun::default();
        let dispatcher = Arc::new(dispatcher(address, flags, metrics.clone(), &begun));
        let (trigger, shutdown) = Shutdown::manual();
        let counted = metrics.clone();
        let serving = tokio::spawn(async move {
            let threads = ConnectionThreads::of_caller();
            serve(listener, &threads, dispatcher, settings, &counted, shutdown).await;
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

/// The operations whose path begins with a name. Errors say that name.
struct TestApi {
    name: String,
    begun: Begun,
}

impl Api for TestApi {
    fn prefix(&self) -> &str {
        &self.name
    }

    fn operations(&self) -> Vec<Operation<()>> {
        let own = |operation: &Operation<Begun>| segment(&operation.info.path) == self.name;
        let own = operations().into_iter().filter(own);
        own.map(|operation| operation.with_state(self.begun.clone())).collect()
    }

    fn error_response(&self, error: EdgeError) -> Response<Body> {
        (status_of(error), format!("{} says: {error}", self.name)).into_response()
    }

    fn body_max(&self) -> usize {
        if ["limited", "keyed"].contains(&&*self.name) { BODY_LIMIT } else { usize::MAX }
    }

    fn allows_any_origin(&self) -> bool {
        self.name == "signed"
    }
}

fn segment(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

fn status_of(error: EdgeError) -> StatusCode {
    match error {
        EdgeError::NotFound => StatusCode::NOT_FOUND,
        EdgeError::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        EdgeError::Malformed { .. } => StatusCode::BAD_REQUEST,
        EdgeError::WrongHost => StatusCode::MISDIRECTED_REQUEST,
        EdgeError::ForeignOrigin => StatusCode::FORBIDDEN,
        EdgeError::EncodedBody => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        EdgeError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        EdgeError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        EdgeError::TooManyRequests { .. } => StatusCode::TOO_MANY_REQUESTS,
        EdgeError::Overloaded | EdgeError::NotCurrent => StatusCode::SERVICE_UNAVAILABLE,
        EdgeError::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Keys of one letter are valid; each belongs to an agent.
fn find_principal(request: &mut http::request::Parts) -> Option<Principal> {
    let key = request.headers.get(header::AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")?;
    if let [letter] = key { Some(Principal::Agent(u64::from(*letter))) } else { None }
}

/// A dispatcher with sequential request ids.
pub fn dispatcher(
    address: SocketAddr,
    flags: &[(&str, &str)],
    metrics: Metrics,
    begun: &Begun,
) -> Dispatcher {
    let config = config(flags);
    let made = AtomicU32::new(0);
    let names: BTreeSet<String> =
        operations().iter().map(|operation| segment(&operation.info.path).to_owned()).collect();
    let api = |name| -> Arc<dyn Api> { Arc::new(TestApi { name, begun: begun.clone() }) };
    let apis: Vec<_> = names.into_iter().map(api).collect();
    let unrecognized = |operations: &[Arc<ServedOperation>], unreadable: Option<String>| {
        let text = format!("none of {} {}", operations.len(), unreadable.unwrap_or_default());
        (StatusCode::BAD_REQUEST, text).into_response()
    };
    Dispatcher {
        refused_keys: Default::default(),
        operations: OperationTable::new(&apis, 16 << 20, Box::new(unrecognized))
            .expect("the operations can be told apart"),
        principals: Box::new(find_principal),
        key_uses: Box::new(|_| None),
        hosts: HostPolicy::new(&config.http, address),
        limits: Arc::new(RateLimits::new(&config.limits)),
        request_ids: Arc::new(move || format!("made-{}", made.fetch_add(1, Ordering::Relaxed))),
        metrics,
        body_rate_limits: BodyRateLimits::from(&config.http),
        node: None,
    }
}

fn operations() -> Vec<Operation<Begun>> {
    vec![
        get("/hello", AnyAgent, async || "hello"),
        get("/health", AnyAgent, async || "well").health_check(),
        get("/open", Public, async || "open"),
        post("/open", AnyAgent, async || "not so open"),
        post("/signed", Signed, async || "signed"),
        get("/peer", AnyAgent, async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string()),
        get("/agents/{id}", AnyAgent, async |PathParam(id): PathParam| format!("agent {id}")),
        delete("/agents/{id}", AnyAgent, async || "no agent"),
        get("/about", AnyAgent, about),
        post("/register", Register, size),
        post("/write", AnyAgent, size),
        post("/limited", AnyAgent, size),
        post("/keyed", AnyAgent, keyed),
        post("/shared", AnyAgent, async |body: BodyBytes| format!("a {}", body.0.len()))
            .recognizes(|json| json.get("a").is_some()),
        post("/shared", AnyAgent, async |body: BodyBytes| format!("b {}", body.0.len()))
            .recognizes(|json| json.get("b").is_some()),
        post("/rpc", AnyAgent, async || "written").rpc_method("things/write"),
        reading(post("/rpc", AnyAgent, async || "read").rpc_method("things/read")),
        reading(post("/rpc", AnyAgent, async || "no such method")),
        post("/unread", AnyAgent, async || StatusCode::UNAUTHORIZED),
        get("/panic", AnyAgent, panicking),
        get("/soon", AnyAgent, soon),
        get("/never", AnyAgent, never),
        get("/flood", AnyAgent, async || Body::from_stream(flood())),
        get("/events", AnyAgent, events),
        get("/upgrade", AnyAgent, upgrade),
    ]
}

/// The same operation, counted as a read.
fn reading(mut operation: Operation<Begun>) -> Operation<Begun> {
    operation.info.rate = RateClass::Read;
    operation
}

async fn size(BodyBytes(body): BodyBytes) -> String {
    body.len().to_string()
}

/// Refuses its caller before it reads the body.
async fn keyed(headers: HeaderMap, request: axum::extract::Request) -> Response<Body> {
    assert!(!headers.contains_key("x-panic"), "a mistake");
    if headers.contains_key("x-refused") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match BodyBytes::from_request(request, &()).await {
        Ok(BodyBytes(body)) => format!("keyed {}", body.len()).into_response(),
        Err(rejection) => rejection.into_response(),
    }
}

async fn soon(State(begun): State<Begun>) -> &'static str {
    begun.fetch_add(1, Ordering::Relaxed);
    sleep(SHORT).await;
    "soon"
}

async fn never(State(begun): State<Begun>) {
    begun.fetch_add(1, Ordering::Relaxed);
    std::future::pending::<()>().await;
}

/// What the dispatcher passes to its handlers.
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
