//! HTTP calls to a hub, with one client and one error type.

use std::fmt::Display;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use rialto_core::refusal::Refusal;
use serde_json::Value;

use crate::json;
use crate::origin_client::{self, Reply};

/// Timeout of a call. Long polls take up to half a minute.
const CALL_TIME_MAX: Duration = Duration::from_secs(45);
/// Maximum response size in bytes. Larger than the longest page a hub returns.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The hub refused the request.
    #[error("{message}{}", status_suffix(*status, code))]
    Refused {
        /// The HTTP status; 400 for a request that was never sent.
        status: u16,
        /// The hub's error code; empty for a request that was never sent.
        code: String,
        /// The error message, for people to read.
        message: String,
        /// Whether the hub says that the same request may succeed later.
        retryable: bool,
        /// The hub's advice on what to do.
        hint: Option<String>,
        /// The `Retry-After` the hub sent.
        retry_after: Option<Duration>,
    },
    /// The hub could not be reached.
    #[error("cannot reach {url}: {}", root_cause(error))]
    Unreachable {
        /// The URL that was called.
        url: String,
        /// The transport error.
        error: reqwest::Error,
    },
    /// The hub did not respond in time.
    #[error("{url} did not answer before the timeout")]
    TimedOut {
        /// The URL that was called.
        url: String,
    },
    /// The response was not in the expected form.
    #[error("cannot read the hub's answer: {0}")]
    Unreadable(String),
}

impl CallError {
    /// Whether the hub's operator has suspended the caller. The same call works after the caller is
    /// resumed. The published protocols have no code for this, so the text is checked for them.
    pub fn is_suspended(&self) -> bool {
        match self {
            Self::Refused { status: 403, code, message, .. } => {
                code.eq_ignore_ascii_case("suspended") || *message == Refusal::Suspended.to_string()
            }
            _ => false,
        }
    }

    /// The minimum wait before the same call to a hub's own API can succeed, or `None` if it cannot.
    ///
    /// The call may have taken effect before the response was lost. Retry only calls that are
    /// idempotent.
    pub fn min_retry_delay(&self) -> Option<Duration> {
        self.wait_if(|status, code, retryable| {
            let asks_for_wait = matches!(self, Self::Refused { retry_after: Some(_), .. });
            // A proxy between the client and the hub does not use the hub's error codes.
            let may_pass = retryable || asks_for_wait || code == "unknown";
            matches!(status, 429 | 502..=504) && may_pass
        })
    }

    /// The minimum wait before the same call can succeed, for a call that is idempotent: nothing if
    /// there was no response, and what the server asks for if it refused with a temporary error,
    /// which `is_temporary` tells by status, code and the server's own `retryable`.
    pub(crate) fn wait_if(
        &self,
        is_temporary: impl FnOnce(u16, &str, bool) -> bool,
    ) -> Option<Duration> {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => Some(Duration::ZERO),
            Self::Refused { status, code, retryable, retry_after, .. } => {
                let temporary = is_temporary(*status, code, *retryable);
                temporary.then(|| retry_after.unwrap_or_default())
            }
            Self::Unreadable(_) => None,
        }
    }

    /// A response that is not in the expected form.
    pub(crate) fn unreadable(why: impl Display) -> Self {
        Self::Unreadable(why.to_string())
    }

    /// A request that is invalid and was not sent, so there is no error code from a hub.
    pub(crate) fn invalid(message: impl Into<String>, hint: Option<String>) -> Self {
        Self::Refused {
            status: 400,
            code: String::new(),
            message: message.into(),
            retryable: false,
            hint,
            retry_after: None,
        }
    }
}

/// A hub and, optionally, the key to authenticate with.
#[derive(Clone, Debug)]
pub struct Hub {
    http: reqwest::Client,
    base: String,
    key: Option<String>,
}

impl Hub {
    /// A hub at a base URL such as `http://127.0.0.1:7425`.
    pub fn new(base: &str) -> Result<Self, CallError> {
        let built = reqwest::Client::builder()
            .timeout(CALL_TIME_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build();
        let base = base.trim_end_matches('/').to_owned();
        match built {
            Ok(http) => Ok(Self { http, base, key: None }),
            Err(error) => Err(CallError::Unreachable { url: base, error }),
        }
    }

    /// The same hub with a key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    /// The base URL.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The key sent with each call.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// `GET`, with a path that starts with a slash.
    pub async fn get(&self, path: &str) -> Result<Value, CallError> {
        self.call(Method::GET, path, None).await.map(|(_, body)| body)
    }

    /// `POST` with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, CallError> {
        self.call(Method::POST, path, Some(body)).await.map(|(_, body)| body)
    }

    /// Makes any call. Returns the status and the body of a 2xx response.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), CallError> {
        let (status, text) = self.call_text(method, path, body.map(Value::to_string)).await?;
        Ok((status, json::parse(text.as_bytes())?))
    }

    /// Like `call`, with both bodies as text, for amounts whose digits must not change.
    pub async fn call_text(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<(u16, String), CallError> {
        self.call_once(method, path, body, None).await
    }

    /// The same with an idempotency key: the call has one effect, however often it is made.
    pub async fn call_once(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        key: Option<String>,
    ) -> Result<(u16, String), CallError> {
        let url = format!("{}{path}", self.base);
        let mut request = self.http.request(method, &url);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let response = request.send().await.map_err(|error| transport_error(&url, error))?;
        let reply = Reply::read(response, ANSWER_BYTES_MAX).await?;
        let reply = reply.accepted(origin_client::refusal_from_body)?;
        Ok((reply.status.as_u16(), String::from_utf8_lossy(&reply.body).into_owned()))
    }
}

/// Converts a transport error, with the reason if the URL or the key cannot be sent at all.
fn transport_error(url: &str, error: reqwest::Error) -> CallError {
    // A request that cannot be built was never sent, so this is not the hub's error.
    if error.is_builder() {
        return match reqwest::Url::parse(url) {
            Ok(_) => CallError::invalid(
                "the key contains characters that are not allowed in a header",
                Some("keys are one word, such as rk_…; look for a line break in it".to_owned()),
            ),
            Err(_) => CallError::invalid(
                format!("{url:?} is not a URL"),
                Some("write it like http://127.0.0.1:7425".to_owned()),
            ),
        };
    }
    origin_client::transport_error(url, error)
}

/// The root cause of a failed connection, without the layers in between: `connection refused`.
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let kind = last.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    match kind {
        Some(std::io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(std::io::ErrorKind::ConnectionReset) => "connection reset".to_owned(),
        _ => last.to_string(),
    }
}

/// The status and code of a refusal, if it came from a hub.
fn status_suffix(status: u16, code: &str) -> String {
    if code.is_empty() { String::new() } else { format!(" (HTTP {status}, {code})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestServer, answer, refused};

    #[tokio::test]
    async fn a_key_that_cannot_be_sent_is_not_the_hubs_fault() {
        let stage = TestServer::new(|_, _| answer(200, "", "{}")).await;
        let hub = Hub::new(&stage.url).expect("a client").with_key("rk_1\n2");
        let message = hub.get("/x").await.expect_err("refused").to_string();
        assert_eq!(message, "the key contains characters that are not allowed in a header");
        let hub = Hub::new("nowhere").expect("a client");
        let message = hub.get("/x").await.expect_err("refused").to_string();
        assert_eq!(message, "\"nowhere/x\" is not a URL");
        assert!(stage.heard().is_empty());
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read_to_its_end() {
        let long = format!("\"{}\"", "x".repeat(ANSWER_BYTES_MAX));
        let stage = TestServer::new(move |_, _| answer(200, "", &long)).await;
        let read = Hub::new(&stage.url).expect("a client").get("/x").await;
        assert!(matches!(read, Err(CallError::Unreadable(why)) if why.contains("longer than")));
    }

    #[test]
    fn only_temporary_errors_of_a_hub_are_retried() {
        for (error, again) in [
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
            (refused(503, "unavailable", true, None), true),
            (refused(503, "agent_unavailable", false, None), false),
            (refused(502, "unknown", false, None), true),
            (refused(429, "rate_limited", true, Some(1)), true),
            (refused(404, "not_found", false, None), false),
            (refused(409, "still_running", true, Some(1)), false),
            (refused(500, "internal", true, None), false),
        ] {
            assert_eq!(error.min_retry_delay().is_some(), again, "{error}");
        }
    }
}
