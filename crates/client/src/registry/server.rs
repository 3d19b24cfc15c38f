//! A hub at a URL: its paths and calls to it.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use url::Url;
use uuid::Uuid;

use super::retry::with_retry;
use crate::call::{CallError, Hub, retry_after};
use crate::ids;
use crate::key::Key;
use crate::origin_client::{self, OriginClient, join_path, parse_http_url, with_mount};
use crate::retry::RetryPolicy;

/// The protocol's path below a hub's URL.
const MOUNT: &str = "registry";
/// Maximum response size: a full page of agents, or fifty jobs of the longest kind.
const ANSWER_BYTES_MAX: usize = 64 << 20;
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

/// The body of a response, whatever its status.
pub(super) struct ServerResponse {
    pub(super) status: u16,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
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

    /// The retry policy.
    pub(super) fn retry(&self) -> RetryPolicy {
        self.retry
    }

    /// The URL of a path below the protocol's path.
    pub(super) fn url(&self, path: &[&str]) -> Url {
        join_path(&self.base, path)
    }

    /// Makes a read call, with retries.
    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, CallError> {
        let call = Call { method: Method::GET, url, body: None, idempotency_key: None };
        with_retry(self.retry, || async { self.call_once(&call).await?.value() }).await
    }

    /// Sends a request that has its own id, with retries.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        url: Url,
        body: String,
    ) -> Result<T, CallError> {
        let call = Call { method: Method::POST, url, body: Some(body), idempotency_key: None };
        with_retry(self.retry, || async { self.call_once(&call).await?.value() }).await
    }

    /// Sends a request without an id, under a new idempotency key.
    pub(super) async fn post_idempotent<T: DeserializeOwned>(
        &self,
        url: Url,
        body: Option<String>,
    ) -> Result<T, CallError> {
        let call =
            Call { method: Method::POST, url, body, idempotency_key: Some(ids::random_id()?) };
        with_retry(self.retry, || async { self.call_once(&call).await?.value() }).await
    }

    /// Makes a call, once.
    pub(super) async fn call_once(&self, call: &Call) -> Result<ServerResponse, CallError> {
        let mut request = self.client.request(call.method.clone(), call.url.clone())?;
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        if let Some(once) = call.idempotency_key {
            request = request.header(IDEMPOTENCY_HEADER, once.to_string());
        }
        ServerResponse::of(request).await
    }
}

impl ServerResponse {
    /// Sends a request and reads the whole response.
    pub(super) async fn of(request: reqwest::RequestBuilder) -> Result<Self, CallError> {
        let mut answer = origin_client::send(request).await?;
        let (status, after) = (answer.status().as_u16(), retry_after(answer.headers()));
        let body = origin_client::read_body(&mut answer, ANSWER_BYTES_MAX).await?;
        Ok(Self { status, retry_after: after, body })
    }

    /// The parsed response, or its refusal.
    pub(super) fn value<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        if !(200..300).contains(&self.status) {
            return Err(self.refusal());
        }
        serde_json::from_slice(&self.body).map_err(|why| CallError::Unreadable(why.to_string()))
    }

    /// The refusal in this response.
    pub(super) fn refusal(&self) -> CallError {
        match reqwest::StatusCode::from_u16(self.status) {
            Ok(status) => origin_client::refusal_from_body(status, self.retry_after, &self.body),
            Err(_) => CallError::Unreadable(format!("{} is not an HTTP status", self.status)),
        }
    }
}
