//! A server at a URL: each message is a POST, and its response is JSON or an event stream.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rialto_protocols::kit::sse::{Event, Parser};
use tokio::sync::Semaphore;
use url::Url;

use super::message::{self, Incoming, MESSAGE_BYTES_MAX, McpError, Request};
use crate::call::root_cause;
use crate::worker::lock_ignoring_poison;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Timeout of a notification, which has no response.
const NOTIFY_TIME_MAX: Duration = Duration::from_secs(10);
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const BOTH_TYPES: &str = "application/json, text/event-stream";
const STREAM: &str = "text/event-stream";
/// How much of an error text that is no message is shown.
const SHOWN_MAX: usize = 300;
/// How many answers to a server's requests are on their way at once. Until one has arrived, no more of
/// its messages are read.
const ANSWERS_MAX: usize = 16;

/// A server at a URL, with the headers that are sent to it and to no other.
#[derive(Clone)]
pub struct HttpServer(Arc<Inner>);

struct Inner {
    http: Client,
    url: Url,
    /// The caller's own, such as a credential.
    headers: HeaderMap,
    next_id: AtomicI64,
    /// The session and the version that a server of the old era has chosen.
    opened: Mutex<Opened>,
    answers: Arc<Semaphore>,
}

#[derive(Clone, Default)]
struct Opened {
    session: Option<HeaderValue>,
    version: Option<&'static str>,
}

/// A request that was sent. Dropping it closes its stream, which is a cancellation in the new era; in
/// the old era the server is told.
pub struct HttpCall {
    server: HttpServer,
    id: i64,
    messages: Messages,
    is_over: bool,
    is_cancellable: bool,
}

/// Something that arrived for a request.
#[derive(Debug)]
pub enum HttpMessage {
    /// Its response: the result as JSON text.
    Result(String),
    /// A notification before it: the method, and the parameters as JSON text.
    Notification {
        /// Its method.
        method: String,
        /// Its parameters.
        params: String,
    },
}

/// The messages of one HTTP response.
enum Messages {
    One(Option<String>),
    Stream(Box<MessageStream>),
}

/// An event stream, and what of it was read.
struct MessageStream {
    response: Response,
    parser: Parser,
    events: VecDeque<Event>,
}

impl HttpServer {
    /// A server at a URL. The headers go with every request to it.
    pub fn new(url: Url, mut headers: HeaderMap) -> Result<Self, McpError> {
        headers.values_mut().for_each(|value| value.set_sensitive(true));
        // A redirect would take the credential elsewhere.
        let built = Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        let http = built.map_err(|error| McpError::NotSent(error.to_string()))?;
        let (next_id, opened) = (AtomicI64::new(1), Mutex::default());
        let answers = Arc::new(Semaphore::new(ANSWERS_MAX));
        Ok(Self(Arc::new(Inner { http, url, headers, next_id, opened, answers })))
    }

    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0.url
    }

    /// Forgets the session and the version that the server has chosen.
    pub(super) fn forget_session(&self) {
        *lock_ignoring_poison(&self.0.opened) = Opened::default();
    }

    /// The version that a server of the old era has chosen goes with every request from now on.
    pub(super) fn set_version(&self, version: &'static str) {
        lock_ignoring_poison(&self.0.opened).version = Some(version);
    }

    fn opened(&self) -> Opened {
        lock_ignoring_poison(&self.0.opened).clone()
    }

    fn with_headers(&self, request: RequestBuilder) -> RequestBuilder {
        let Opened { session, version } = self.opened();
        let mut headers = self.0.headers.clone();
        if let Some(session) = session {
            headers.insert(SESSION, session);
        }
        if let Some(version) = version {
            headers.insert(VERSION, HeaderValue::from_static(version));
        }
        request.headers(headers)
    }

    fn post(&self, text: String) -> RequestBuilder {
        let request = self.0.http.post(self.0.url.clone()).header(ACCEPT, BOTH_TYPES);
        self.with_headers(request.header(CONTENT_TYPE, "application/json")).body(text)
    }

    /// Sends a request whose parameters may depend on its id. `version` is the version that it states,
    /// in the new era.
    pub async fn begin(
        &self,
        request: &Request,
        version: Option<&'static str>,
        params: impl FnOnce(i64) -> Option<String>,
    ) -> Result<HttpCall, McpError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let request = Request { params: params(id), ..request.clone() };
        let mut post = self.post(request.write(id));
        if let Some(version) = version {
            post = post.header(VERSION, version).header(METHOD, request.method.as_ref());
        }
        for (name, value) in &request.headers {
            post = post.header(name, value);
        }
        // From here on the server may act on the request.
        let mut call = HttpCall {
            server: self.clone(),
            id,
            messages: Messages::One(None),
            is_over: false,
            is_cancellable: request.is_cancellable && version.is_none(),
        };
        let response = post.send().await.map_err(|error| {
            call.is_over = true;
            self.transport_error(&error)
        })?;
        call.messages = match self.read_head(response).await {
            Ok(messages) => messages,
            Err(error) => {
                call.is_over = true;
                return Err(error);
            }
        };
        Ok(call)
    }

    async fn read_head(&self, response: Response) -> Result<Messages, McpError> {
        let status = response.status();
        if let Some(session) = response.headers().get(&SESSION) {
            lock_ignoring_poison(&self.0.opened).session = Some(session.clone());
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.trim_start().starts_with(STREAM));
        if is_stream && status.is_success() {
            let parser = Parser::new(MESSAGE_BYTES_MAX);
            let stream = MessageStream { response, parser, events: VecDeque::new() };
            return Ok(Messages::Stream(Box::new(stream)));
        }
        let text = read_text(response).await?;
        let is_message = matches!(Incoming::read(&text), Some(Incoming::Response { .. }));
        if is_message || status.is_success() {
            return Ok(Messages::One(Some(text)));
        }
        if status == StatusCode::NOT_FOUND && self.opened().session.is_some() {
            return Err(McpError::SessionOver);
        }
        let shown: String = text.trim().chars().take(SHOWN_MAX).collect();
        let why = format!("the server answered {status}: {shown}");
        Err(if status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE {
            McpError::Refused(why)
        } else {
            McpError::Failed(why)
        })
    }

    fn transport_error(&self, error: &reqwest::Error) -> McpError {
        let why = format!("cannot reach {}: {}", self.0.url, root_cause(error));
        match error.is_connect() || error.is_builder() {
            true => McpError::NotSent(why),
            false => McpError::Lost(why),
        }
    }

    /// Sends a notification or a response, and waits until the server has it.
    pub(super) async fn send(&self, text: String) {
        let _ = self.post(text).timeout(NOTIFY_TIME_MAX).send().await;
    }

    /// Opens the stream of a server of the old era for what belongs to no request. `None` if the
    /// server has none.
    pub(super) async fn open_stream(&self) -> Result<Option<HttpCall>, McpError> {
        let request = self.0.http.get(self.0.url.clone()).header(ACCEPT, STREAM);
        let response = self.with_headers(request).send().await;
        let response = response.map_err(|error| self.transport_error(&error))?;
        if response.status().is_client_error() {
            return Ok(None);
        }
        let messages = self.read_head(response).await?;
        // No response has this id.
        let server = self.clone();
        Ok(Some(HttpCall { server, id: 0, messages, is_over: true, is_cancellable: false }))
    }

    /// Ends the session of the old era, if there is one.
    pub async fn close(&self) {
        if self.opened().session.is_some() {
            let request = self.with_headers(self.0.http.delete(self.0.url.clone()));
            let _ = request.timeout(Duration::from_secs(2)).send().await;
        }
    }
}

impl HttpCall {
    /// The next message. After the result there is none.
    pub async fn next(&mut self) -> Result<HttpMessage, McpError> {
        loop {
            let is_one = matches!(self.messages, Messages::One(_));
            let text = match &mut self.messages {
                Messages::One(text) => text.take(),
                Messages::Stream(stream) => {
                    stream.next_event().await.inspect_err(|_| {
                        // The stream is gone, and with it the request of the new era.
                        self.is_over |= !self.is_cancellable;
                    })?
                }
            };
            let Some(text) = text else {
                self.is_over = true;
                return Err(McpError::Lost("the server closed the connection".to_owned()));
            };
            match Incoming::read(&text) {
                Some(Incoming::Response { id, result })
                    if id.map_or(is_one, |id| id == self.id) =>
                {
                    self.is_over = true;
                    return Ok(HttpMessage::Result(result.map_err(McpError::Server)?));
                }
                Some(Incoming::Notification { method, params }) => {
                    return Ok(HttpMessage::Notification { method, params });
                }
                Some(Incoming::Request { id, method }) => {
                    let server = self.server.clone();
                    let permit = Arc::clone(&server.0.answers).acquire_owned().await;
                    tokio::spawn(async move {
                        server.send(message::response_to(&id, &method)).await;
                        drop(permit);
                    });
                }
                Some(Incoming::Response { .. }) => {}
                None if is_one => {
                    self.is_over = true;
                    let shown: String = text.chars().take(SHOWN_MAX).collect();
                    return Err(McpError::Unreadable(format!("not a JSON-RPC message: {shown}")));
                }
                None => {}
            }
        }
    }

    /// The id of the request.
    pub fn id(&self) -> i64 {
        self.id
    }
}

impl Drop for HttpCall {
    fn drop(&mut self) {
        if self.is_cancellable && !self.is_over {
            let (server, text) = (self.server.clone(), message::cancelled(self.id));
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { server.send(text).await });
            }
        }
    }
}

impl MessageStream {
    /// The next event's data; `None` at the end of the stream.
    async fn next_event(&mut self) -> Result<Option<String>, McpError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                // Servers may begin with an event without data.
                if event.data.is_empty() {
                    continue;
                }
                return Ok(Some(event.data));
            }
            let Some(bytes) = self.response.chunk().await.map_err(|error| lost(&error))? else {
                return Ok(None);
            };
            let mut parsed = Vec::new();
            self.parser.push(&bytes, &mut parsed).map_err(|error| {
                McpError::Unreadable(format!("the stream cannot be read: {error}"))
            })?;
            self.events.extend(parsed);
        }
    }
}

fn lost(error: &reqwest::Error) -> McpError {
    McpError::Lost(format!("the connection was lost: {}", root_cause(error)))
}

async fn read_text(mut response: Response) -> Result<String, McpError> {
    let mut bytes = Vec::new();
    loop {
        let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? else { break };
        if bytes.len() + chunk.len() > MESSAGE_BYTES_MAX {
            let why = format!("the response has more than {MESSAGE_BYTES_MAX} bytes");
            return Err(McpError::Unreadable(why));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
