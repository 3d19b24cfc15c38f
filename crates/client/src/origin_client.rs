//! An HTTP client bound to one origin, with its key and its timeouts.
//!
//! Requests never leave the origin: redirects are not followed, and every URL is checked before the
//! key is attached.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use url::{Origin, Url};

use crate::call::{CallError, refusal_from_text, retry_after};
use crate::key::Key;

/// Connect timeout.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Timeout of a call. A server may itself wait half a minute for a receiver.
const CALL_TIME_MAX: Duration = Duration::from_secs(45);
/// Idle timeout of an open stream. Servers send a heartbeat every 15 to 30 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// One server, with or without a key.
#[derive(Clone, Debug)]
pub(super) struct OriginClient {
    http: reqwest::Client,
    origin: Origin,
    key: Option<Key>,
}

impl OriginClient {
    /// A client for the origin of `url`.
    pub(super) fn new(url: &Url) -> Result<Self, CallError> {
        Self::with_idle_timeout(url, SILENCE_MAX)
    }

    /// Like `new`, with a different idle timeout.
    pub(super) fn with_idle_timeout(url: &Url, silence: Duration) -> Result<Self, CallError> {
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
    pub(super) fn with_key(&self, key: Key) -> Self {
        Self { key: Some(key), ..self.clone() }
    }

    /// A request with a total timeout.
    pub(super) fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, CallError> {
        self.streaming_request(method, url).map(|request| request.timeout(CALL_TIME_MAX))
    }

    /// A request whose response may go on as long as it does not exceed the idle timeout.
    pub(super) fn streaming_request(
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
}

/// Sends a request and waits for the head of the response.
pub(super) async fn send(request: RequestBuilder) -> Result<Response, CallError> {
    request.send().await.map_err(transport_error)
}

/// Reads the whole body of a response, up to `max` bytes.
pub(super) async fn read_body(answer: &mut Response, max: usize) -> Result<Vec<u8>, CallError> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(transport_error)? {
        if body.len() + piece.len() > max {
            return Err(CallError::Unreadable(format!("the answer is longer than {max} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Reads the body of a refusal and converts it to an error.
pub(super) async fn read_refusal(mut answer: Response, max: usize) -> CallError {
    let (status, after) = (answer.status(), retry_after(answer.headers()));
    match read_body(&mut answer, max).await {
        Ok(body) => refusal_from_body(status, after, &body),
        Err(error) => error,
    }
}

/// Converts the body of a refusal to an error.
pub(super) fn refusal_from_body(
    status: StatusCode,
    after: Option<Duration>,
    body: &[u8],
) -> CallError {
    refusal_from_text(status, after, &String::from_utf8_lossy(body))
}

/// Converts a transport error: the response is missing or incomplete.
pub(super) fn transport_error(error: reqwest::Error) -> CallError {
    let url = error.url().map(Url::to_string).unwrap_or_default();
    if error.is_builder() {
        return CallError::invalid("the key or a header has characters that cannot be sent", None);
    }
    match error.is_timeout() {
        true => CallError::TimedOut { url },
        false => CallError::Unreachable { url, error: error.without_url() },
    }
}

/// Parses the URL of a server or an endpoint.
pub(super) fn parse_http_url(text: &str) -> Result<Url, CallError> {
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
pub(super) fn with_mount(mut url: Url, mount: &str) -> Url {
    url.set_query(None);
    url.set_fragment(None);
    let there = url.path_segments().and_then(|all| all.rev().find(|name| !name.is_empty()));
    let there = there == Some(mount);
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty();
        if !there {
            segments.push(mount);
        }
    }
    url
}

/// The URL of a path below another URL.
pub(super) fn join_path(base: &Url, path: &[&str]) -> Url {
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
        for (given, wanted) in [
            ("http://h:1", "http://h:1/openclaw"),
            ("http://h:1/openclaw/?x#y", "http://h:1/openclaw"),
            ("http://h:1/a", "http://h:1/a/openclaw"),
            ("http://h:1/myopenclaw", "http://h:1/myopenclaw/openclaw"),
        ] {
            assert_eq!(with_mount(Url::parse(given).expect(given), "openclaw").as_str(), wanted);
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
    fn a_line_ends_at_its_origin() {
        let url = |text| Url::parse(text).expect(text);
        let line = OriginClient::new(&url("http://127.0.0.1:1/a")).expect("a client");
        assert!(line.request(Method::GET, url("http://127.0.0.1:1/b")).is_ok());
        for other in ["http://127.0.0.1:2/a", "https://127.0.0.1:1/a", "http://localhost:1/a"] {
            assert!(line.request(Method::GET, url(other)).is_err(), "{other}");
        }
    }
}
