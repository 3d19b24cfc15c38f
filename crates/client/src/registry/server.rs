//! A hub at a URL: its paths, calls to it, and which of them are retried.

use std::future::Future;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use url::Url;
use uuid::Uuid;

use crate::call::{CallError, Hub};
use crate::ids;
use crate::key::Key;
use crate::origin_client::{self, OriginClient, Reply, join_path, parse_http_url, with_mount};
use crate::retry::RetryPolicy;

/// The protocol's path below a hub's URL.
const MOUNT: &str = "registry";
/// Maximum response size: a full page of agents, or fifty jobs of the longest kind.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Header that makes a repeated call idempotent.
const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// A hub, called with or without a key.
///
/// Temporary errors are retried (see [`RetryPolicy`]): every call is idempotent, by the ids it carries or
/// by an `Idempotency-Key`. Only [`Server::register`] is not retried, because a new agent's key is
/// only in the first response.
#[derive(Clone, Debug)]
pub struct Server {
    client: OriginClient,
    base: Url,
    retry: RetryPolicy,
}

/// A request and its idempotency key.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<String>,
    pub(super) idempotency_key: Option<Uuid>,
}

impl Server {
    /// The hub at a URL, which may omit the `/registry` at its end. Sends nothing.
    pub fn new(url: &str) -> Result<Self, CallError> {
        let base = with_mount(parse_http_url(url)?, MOUNT);
        Ok(Self { client: OriginClient::new(&base)?, base, retry: RetryPolicy::default() })
    }

    /// The same hub as `hub`, with its key if it has one.
    pub fn from_hub(hub: &Hub) -> Result<Self, CallError> {
        let server = Self::new(hub.base())?;
        Ok(match hub.key() {
            Some(key) => server.with_key(Key::new(key)),
            None => server,
        })
    }

    /// The same hub with a key: an agent's own, or an operator's.
    pub fn with_key(&self, key: Key) -> Self {
        Self { client: self.client.with_key(key), ..self.clone() }
    }

    /// Sets the retry policy.
    pub fn with_retry(&self, retry: RetryPolicy) -> Self {
        Self { retry, ..self.clone() }
    }

    /// The URL of a path below the protocol's path.
    pub(super) fn url(&self, path: &[&str]) -> Url {
        join_path(&self.base, path)
    }

    /// Makes a read call, with retries.
    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, CallError> {
        self.call(Call::get(url)).await
    }

    /// Sends a request that has its own id, with retries.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        url: Url,
        body: String,
    ) -> Result<T, CallError> {
        self.call(Call::post(url, body)).await
    }

    /// Makes an idempotent call, with retries.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: Call) -> Result<T, CallError> {
        self.retry_call(|| async {
            self.call_once(&call).await?.accepted(origin_client::refusal_from_body)?.json()
        })
        .await
    }

    /// Repeats a call for as long as its errors are temporary and attempts are left.
    pub(super) async fn retry_call<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        call: impl FnMut() -> F,
    ) -> Result<T, CallError> {
        self.retry.run(min_retry_delay, call).await
    }

    /// Makes a call, once.
    pub(super) async fn call_once(&self, call: &Call) -> Result<Reply, CallError> {
        let mut request = self.client.request(call.method.clone(), call.url.clone())?;
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        if let Some(key) = call.idempotency_key {
            request = request.header(IDEMPOTENCY_HEADER, key.to_string());
        }
        Reply::fetch(request, ANSWER_BYTES_MAX).await
    }
}

impl Call {
    /// A read call.
    pub(super) fn get(url: Url) -> Self {
        Self { method: Method::GET, url, body: None, idempotency_key: None }
    }

    /// A request with a body that has its own id.
    pub(super) fn post(url: Url, body: String) -> Self {
        Self { method: Method::POST, url, body: Some(body), idempotency_key: None }
    }

    /// A request without an id, under a new idempotency key.
    pub(super) fn post_idempotent(url: Url, body: Option<String>) -> Result<Self, CallError> {
        let idempotency_key = Some(ids::random_id()?);
        Ok(Self { method: Method::POST, url, body, idempotency_key })
    }
}

/// The minimum wait before the same call can succeed; `None` if it cannot.
pub(super) fn min_retry_delay(error: &CallError) -> Option<Duration> {
    error.wait_if(|status, code, retryable| {
        // A proxy in between does not use the protocol's codes.
        retryable || matches!(status, 502..=504) && code == "unknown"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::refused;

    #[test]
    fn only_what_the_protocol_calls_retryable_is_retried() {
        for (error, again) in [
            (refused(503, "AGENT_OFFLINE", true, None), true),
            (refused(429, "RATE_LIMITED", true, None), true),
            (refused(409, "CONFLICT", true, None), true),
            (refused(409, "CONFLICT", false, None), false),
            (refused(402, "BUDGET_INSUFFICIENT", false, None), false),
            (refused(502, "EXECUTION_ERROR", false, None), false),
            (refused(502, "unknown", false, None), true),
            (refused(500, "unknown", false, None), false),
            (CallError::TimedOut { url: String::new() }, true),
            (CallError::Unreadable(String::new()), false),
        ] {
            assert_eq!(min_retry_delay(&error).is_some(), again, "{error:?}");
        }
    }
}
