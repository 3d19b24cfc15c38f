//! HTTP calls to a hub, with one client and one error type.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use rialto_core::refusal::Refusal;
use serde_json::Value;

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
        let body = serde_json::from_str(&text);
        Ok((status, body.map_err(|error| CallError::Unreadable(error.to_string()))?))
    }

    /// Like `call`, with both bodies as text, for amounts whose digits must not change.
    pub async fn call_text(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<(u16, String), CallError> {
        let url = format!("{}{path}", self.base);
        let mut request = self.http.request(method, &url);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let mut answer = request.send().await.map_err(|error| transport_error(&url, error))?;
        let status = answer.status();
        let retry_after = retry_after(answer.headers());
        let mut body = Vec::new();
        while let Some(piece) =
            answer.chunk().await.map_err(|error| transport_error(&url, error))?
        {
            if body.len() + piece.len() > ANSWER_BYTES_MAX {
                let why = format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
                return Err(CallError::Unreadable(why));
            }
            body.extend_from_slice(&piece);
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        if !status.is_success() {
            return Err(refusal_from_text(status, retry_after, &text));
        }
        Ok((status.as_u16(), text))
    }
}

/// Maps a transport error to a `CallError`.
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
    match error.is_timeout() {
        true => CallError::TimedOut { url: url.to_owned() },
        false => CallError::Unreachable { url: url.to_owned(), error: error.without_url() },
    }
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

/// Reads the code and text of a refusal in any of the hub's formats.
pub(crate) fn refusal_from_text(
    status: StatusCode,
    retry_after: Option<Duration>,
    text: &str,
) -> CallError {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let pick = |paths: &[&str]| {
        let found = paths.iter().find_map(|path| body.pointer(path).and_then(Value::as_str));
        found.map(str::to_owned)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Stage, answer};

    #[tokio::test]
    async fn a_key_that_cannot_be_sent_is_not_the_hubs_fault() {
        let stage = Stage::new(|_, _| answer(200, "", "{}")).await;
        let hub = Hub::new(&stage.url).expect("a client").with_key("rk_1\n2");
        let said = hub.get("/x").await.expect_err("refused").to_string();
        assert_eq!(said, "the key contains characters that are not allowed in a header");
        let hub = Hub::new("nowhere").expect("a client");
        let said = hub.get("/x").await.expect_err("refused").to_string();
        assert_eq!(said, "\"nowhere/x\" is not a URL");
        assert!(stage.heard().is_empty());
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read_to_its_end() {
        let long = format!("\"{}\"", "x".repeat(ANSWER_BYTES_MAX));
        let stage = Stage::new(move |_, _| answer(200, "", &long)).await;
        let read = Hub::new(&stage.url).expect("a client").get("/x").await;
        assert!(matches!(read, Err(CallError::Unreadable(why)) if why.contains("longer than")));
    }
}
