//! An HTTP client bound to one origin, with its key and its timeouts.
//!
//! Requests never leave the origin: redirects are not followed, and every URL is checked before the
//! key is attached.

use std::future::Future;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderMap, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Origin, Url};

use crate::call::CallError;
use crate::json;
use crate::key::Key;

/// Connect timeout.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Timeout of a call. A server may itself wait half a minute for a receiver.
const CALL_TIME_MAX: Duration = Duration::from_secs(45);
/// Idle timeout of an open stream. Servers send a heartbeat every 15 to 30 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// Maximum size in bytes of a refusal to open a stream.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// Maximum number of pages of one list; at 1,000 items a page this covers any server.
const PAGES_MAX: usize = 1_000;

/// One server, with or without a key.
#[derive(Clone, Debug)]
pub(crate) struct OriginClient {
    http: reqwest::Client,
    origin: Origin,
    key: Option<Key>,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Reads a refusal in the form of one protocol: its status, its `Retry-After` and its body.
pub(crate) type RefusalReader = fn(StatusCode, Option<Duration>, &[u8]) -> CallError;

impl OriginClient {
    /// A client for the origin of `url`.
    pub(crate) fn new(url: &Url) -> Result<Self, CallError> {
        Self::with_idle_timeout(url, SILENCE_MAX)
    }

    /// Like `new`, with a different idle timeout.
    pub(crate) fn with_idle_timeout(url: &Url, silence: Duration) -> Result<Self, CallError> {
        let built = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .read_timeout(silence)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        match built {
            Ok(http) => Ok(Self { http, origin: url.origin(), key: None }),
            Err(error) => Err(CallError::Unreachable { url: url.to_string(), error }),
        }
    }

    /// The same client with a key.
    pub(crate) fn with_key(&self, key: Key) -> Self {
        Self { key: Some(key), ..self.clone() }
    }

    /// A request with a total timeout.
    pub(crate) fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, CallError> {
        self.streaming_request(method, url).map(|request| request.timeout(CALL_TIME_MAX))
    }

    /// A request whose response may go on as long as it does not exceed the idle timeout.
    pub(crate) fn streaming_request(
        &self,
        method: Method,
        url: Url,
    ) -> Result<RequestBuilder, CallError> {
        if url.origin() != self.origin {
            return Err(CallError::Unreadable(format!(
                "{url} is on another origin than the server"
            )));
        }
        let request = self.http.request(method, url);
        Ok(match &self.key {
            Some(key) => request.bearer_auth(key.reveal()),
            None => request,
        })
    }

    /// Opens an event stream: what follows the event with this id, or where the server starts.
    pub(crate) async fn open_events(
        &self,
        url: Url,
        last_event_id: Option<&str>,
        read_refusal: RefusalReader,
    ) -> Result<Response, CallError> {
        let request = self.streaming_request(Method::GET, url)?;
        let mut request = request.header(ACCEPT, "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = send(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(Reply::read(response, REFUSAL_BYTES_MAX).await?.refusal(read_refusal))
    }
}

impl Reply {
    /// Sends a request and reads the whole response, up to `max` bytes.
    pub(crate) async fn fetch(request: RequestBuilder, max: usize) -> Result<Self, CallError> {
        Self::read(send(request).await?, max).await
    }

    /// Reads the body of a response, up to `max` bytes.
    pub(crate) async fn read(mut response: Response, max: usize) -> Result<Self, CallError> {
        let body = read_body(&mut response, max).await?;
        let headers = std::mem::take(response.headers_mut());
        Ok(Self { status: response.status(), headers, body })
    }

    /// The response if it is a success, or else its refusal.
    pub(crate) fn accepted(self, read_refusal: RefusalReader) -> Result<Self, CallError> {
        if self.status.is_success() { Ok(self) } else { Err(self.refusal(read_refusal)) }
    }

    /// The refusal in this response.
    pub(crate) fn refusal(&self, read_refusal: RefusalReader) -> CallError {
        read_refusal(self.status, retry_after(&self.headers), &self.body)
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, parsed as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        json::parse(&self.body)
    }

    /// The body as text.
    pub(crate) fn text(self) -> Result<String, CallError> {
        String::from_utf8(self.body).map_err(|_| CallError::unreadable("it is not valid UTF-8"))
    }
}

/// Sends a request and waits for the head of the response.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, CallError> {
    request.send().await.map_err(|error| {
        let url = error.url().map(Url::to_string).unwrap_or_default();
        transport_error(&url, error)
    })
}

/// Reads the whole body of a response, up to `max` bytes.
pub(crate) async fn read_body(response: &mut Response, max: usize) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(piece)) if body.len() + piece.len() > max => {
                return Err(CallError::unreadable(format!(
                    "the answer is longer than {max} bytes"
                )));
            }
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => return Ok(body),
            Err(error) => return Err(transport_error(response.url().as_str(), error)),
        }
    }
}

/// Reads every page of a list. `page` returns the items at a cursor, and the cursor of the next page.
pub(crate) async fn read_pages<T, F>(
    mut page: impl FnMut(Option<String>) -> F,
) -> Result<Vec<T>, CallError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), CallError>>,
{
    let (mut items, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let (more, next) = page(cursor.clone()).await?;
        items.extend(more);
        if next.is_none() || next == cursor {
            return Ok(items);
        }
        cursor = next;
    }
    Err(CallError::unreadable(format!("the list has more than {PAGES_MAX} pages")))
}

/// Reads the code and text of a refusal in any of the hub's formats.
pub(crate) fn refusal_from_body(
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> CallError {
    let body: Value = serde_json::from_str(&String::from_utf8_lossy(body)).unwrap_or_default();
    let pick = |paths: &[&str]| {
        let text = paths.iter().find_map(|path| body.pointer(path).and_then(Value::as_str));
        text.map(str::to_owned)
    };
    let code = pick(&["/error/code", "/code", "/error_code", "/title"]);
    let message = pick(&["/error/message", "/detail", "/error_message", "/title"]);
    let retryable = ["/error/retryable", "/retryable"].iter().find_map(|path| body.pointer(path));
    CallError::Refused {
        status: status.as_u16(),
        code: code.unwrap_or_else(|| "unknown".to_owned()),
        message: message
            .unwrap_or_else(|| "the hub refused the request and gave no reason".to_owned()),
        retryable: retryable.and_then(Value::as_bool).unwrap_or(false),
        hint: pick(&["/error/hint", "/hint"]),
        retry_after,
    }
}

/// Reads `Retry-After`. Only the form in seconds is read, because hubs send that one.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    seconds.parse().ok().map(Duration::from_secs)
}

/// Converts a transport error: the response is missing or incomplete.
pub(crate) fn transport_error(url: &str, error: reqwest::Error) -> CallError {
    if error.is_builder() {
        return CallError::invalid("the key or a header has characters that cannot be sent", None);
    }
    let url = url.to_owned();
    if error.is_timeout() {
        return CallError::TimedOut { url };
    }
    CallError::Unreachable { url, error: error.without_url() }
}

/// Parses the URL of a server or an endpoint.
pub(crate) fn parse_http_url(text: &str) -> Result<Url, CallError> {
    let example = || Some("write it like http://127.0.0.1:7425".to_owned());
    let no_url = |_| CallError::invalid(format!("{text:?} is not a URL"), example());
    let url = Url::parse(text.trim()).map_err(no_url)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(CallError::invalid(format!("{text:?} is not an http or https URL"), example()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(CallError::invalid(
            "the URL must not contain a user name or a password",
            example(),
        ));
    }
    Ok(url)
}

/// Appends a protocol's path segment to the URL and drops everything after it.
pub(crate) fn with_mount(mut url: Url, mount: &str) -> Url {
    url.set_query(None);
    url.set_fragment(None);
    let last = url.path_segments().and_then(|all| all.rev().find(|name| !name.is_empty()));
    let is_mounted = last == Some(mount);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty();
        if !is_mounted {
            segments.push(mount);
        }
    }
    url
}

/// Adds the query parameters that have a value.
pub(crate) fn add_query<'a>(
    url: &mut Url,
    pairs: impl IntoIterator<Item = (&'a str, Option<String>)>,
) {
    for (name, value) in pairs {
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, &value);
        }
    }
}

/// The URL of a path below another URL.
pub(crate) fn join_path(base: &Url, path: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_found_below_an_address_or_where_it_is_said_to_be() {
        for (given, mounted) in [
            ("http://h:1", "http://h:1/openclaw"),
            ("http://h:1/", "http://h:1/openclaw"),
            ("http://h:1/a/openclaw/", "http://h:1/a/openclaw"),
            ("http://h:1/openclaw/?x#y", "http://h:1/openclaw"),
            ("http://h:1/a", "http://h:1/a/openclaw"),
            ("http://h:1/myopenclaw", "http://h:1/myopenclaw/openclaw"),
        ] {
            assert_eq!(with_mount(Url::parse(given).expect(given), "openclaw").as_str(), mounted);
        }
        let base = Url::parse("http://h:1/a/").expect("a URL");
        assert_eq!(join_path(&base, &["b", "c/d"]).as_str(), "http://h:1/a/b/c%2Fd");
    }

    #[test]
    fn only_plain_http_urls_are_called() {
        for text in ["http://127.0.0.1:7425", "https://hub.example/relay", " http://[::1]:1/ "] {
            assert!(parse_http_url(text).is_ok(), "{text}");
        }
        for text in ["", "hub.example", "ftp://hub.example", "http://", "http://me:pw@hub.example"]
        {
            assert!(parse_http_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_parameters_with_a_value_are_added() {
        let mut url = Url::parse("http://h:1/a").expect("a URL");
        add_query(&mut url, [("x", None)]);
        assert_eq!(url.as_str(), "http://h:1/a");
        add_query(&mut url, [("x", None), ("y", Some("1 &".to_owned()))]);
        assert_eq!(url.as_str(), "http://h:1/a?y=1+%26");
    }

    #[test]
    fn requests_never_leave_the_origin() {
        let url = |text| Url::parse(text).expect(text);
        let client = OriginClient::new(&url("http://127.0.0.1:1/a")).expect("a client");
        assert!(client.request(Method::GET, url("http://127.0.0.1:1/b")).is_ok());
        for other in ["http://127.0.0.1:2/a", "https://127.0.0.1:1/a", "http://localhost:1/a"] {
            assert!(client.request(Method::GET, url(other)).is_err(), "{other}");
        }
    }
}
