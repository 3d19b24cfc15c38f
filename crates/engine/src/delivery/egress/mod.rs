//! Egress: every call the hub makes to an agent's endpoint goes through here.
//!
//! `guard` decides where the hub may call, `dial` ensures that it connects to what was checked,
//! `host_limits` and `rate_limit` limit the calls to one host, and `response` bounds what comes
//! back. When to call and how to handle a failure is decided elsewhere.

mod dial;
mod guard;
mod headers;
mod host_limits;
mod response;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::Client;
use rialto_core::time::{Millis, Timestamp};

pub use dial::{Resolve, ResolveFuture};
pub use guard::{CheckedUrl, Guard, TargetError};
pub use response::StreamingResponse;
pub use response::{HttpResponse, SendError};

use dial::{ClientFactory, SystemResolver};
use host_limits::HostLimits;
use host_limits::HostRateLimit;

/// The `User-Agent` header of outgoing calls.
pub const USER_AGENT: &str = concat!("rialto/", env!("CARGO_PKG_VERSION"));

/// Where the hub may call, and for how long.
#[derive(Clone, Debug)]
pub struct EgressSettings {
    /// Networks that may be called although they are not public, also by plain http.
    pub allow: Vec<IpNet>,
    /// Time to resolve, connect and complete the TLS handshake; at most half of `timeout` is used.
    pub connect_timeout: Duration,
    /// Time for a whole call, from resolving to the last byte of the response. Waiting for a permit
    /// at a busy host comes before it and takes at most as long again.
    pub timeout: Duration,
    /// Calls to one host at the same time.
    pub per_host: usize,
    /// Calls to one host in a minute; `None` means no limit.
    pub per_host_per_minute: Option<NonZeroU32>,
}

impl Default for EgressSettings {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            per_host: 8,
            per_host_per_minute: None,
        }
    }
}

/// Why no egress can be built with these settings.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// A zero timeout or zero calls per host: nothing could ever be sent.
    #[error("egress timeouts and calls per host must be above zero")]
    ZeroLimit,
    /// The HTTP client rejected the settings.
    #[error("the HTTP client could not be created")]
    Client(#[from] reqwest::Error),
}

/// The outgoing client.
pub struct Egress {
    guard: Arc<Guard>,
    host_limits: HostLimits,
    rate_limit: HostRateLimit,
    timeout: Duration,
    /// Or why there is none. Without root certificates a machine can do everything but https calls.
    https_client: Result<Client, String>,
    http_client: Client,
}

impl Egress {
    /// An egress that resolves names as the operating system does.
    pub fn new(settings: EgressSettings) -> Result<Self, EgressError> {
        Self::with_resolver(settings, Arc::new(SystemResolver::default()))
    }

    /// An egress with its own resolver, for tests and simulations.
    pub fn with_resolver(
        settings: EgressSettings,
        names: Arc<dyn Resolve>,
    ) -> Result<Self, EgressError> {
        let EgressSettings { allow, connect_timeout, timeout, per_host, per_host_per_minute } =
            settings;
        if connect_timeout.is_zero() || timeout.is_zero() || per_host == 0 {
            return Err(EgressError::ZeroLimit);
        }
        let guard = Arc::new(Guard::new(allow));
        // Connecting must time out before the whole call does; otherwise the two cannot be told
        // apart.
        let connect_timeout = connect_timeout.min(timeout / 2);
        let dialling =
            ClientFactory { names, guard: Arc::clone(&guard), connect_timeout, per_host };
        let plain = dialling.build_http_client()?;
        let secure = dialling.build_https_client().map_err(|e| response::root_cause(&e));
        let (hosts, pace) = (HostLimits::new(per_host), HostRateLimit::new(per_host_per_minute));
        Ok(Self {
            guard,
            host_limits: hosts,
            rate_limit: pace,
            timeout,
            https_client: secure,
            http_client: plain,
        })
    }

    /// Why no https call can work on this machine, if so: worth a warning at start.
    pub fn https_error(&self) -> Option<&str> {
        self.https_client.as_ref().err().map(String::as_str)
    }

    /// The longest a call takes, including the wait for a permit.
    pub fn max_call_duration(&self) -> Duration {
        2 * self.timeout
    }

    /// Whether `url` may be called, as far as is known without resolving it: for registrations.
    pub fn check_url(&self, url: &str) -> Result<(), TargetError> {
        self.guard.check_url(url).map(|_| ())
    }

    /// Takes one of the calls that the host of `url` may get this minute, or returns the time until
    /// the next one. To be called before each call.
    pub fn try_acquire_call(&self, url: &str, now: Timestamp) -> Result<(), Millis> {
        // A forbidden URL is refused by the call itself, and uses none of the host's rate.
        let Ok(target) = self.guard.check_url(url) else { return Ok(()) };
        self.rate_limit.try_acquire(target.host(), now)
    }

    /// Posts `body` once and reads a response of at most `answer_limit` bytes.
    pub async fn post(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        body: Bytes,
        answer_limit: usize,
    ) -> Result<HttpResponse, SendError> {
        let target = self.guard.check_url(url)?;
        let headers = headers::parse_headers(headers)?;
        let client = self.client_for(&target)?;
        let busy = |_| SendError::Unreachable("too many calls to this host at once".to_owned());
        let _slot = self.host_limits.acquire(target.host(), self.timeout).await.map_err(busy)?;
        let call = async {
            let request = client.post(target.url().clone()).headers(headers).body(body);
            let response = request.send().await.map_err(|e| response::classify_error(&e))?;
            response::read_limited(response, answer_limit).await
        };
        tokio::time::timeout(self.timeout, call).await.unwrap_or(Err(SendError::TimedOut))
    }

    /// Posts `body` once and returns the response as a stream. Its head, and every pause in it, may
    /// take as long as a whole call; the whole stream may take `whole_timeout`.
    pub async fn post_streaming(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        body: Bytes,
        answer_limit: usize,
        whole_timeout: Duration,
    ) -> Result<StreamingResponse<'_>, SendError> {
        let target = self.guard.check_url(url)?;
        let headers = headers::parse_headers(headers)?;
        let client = self.client_for(&target)?;
        let busy = |_| SendError::Unreachable("too many calls to this host at once".to_owned());
        let slot = self.host_limits.acquire(target.host(), self.timeout).await.map_err(busy)?;
        let end = tokio::time::Instant::now() + whole_timeout;
        let request = client.post(target.url().clone()).headers(headers).body(body);
        let response = tokio::time::timeout(self.timeout, request.send()).await;
        let response = response.map_err(|_| SendError::TimedOut)?;
        let response = response.map_err(|e| response::classify_error(&e))?;
        Ok(StreamingResponse::new(response, answer_limit, self.timeout, end, slot))
    }

    fn client_for(&self, target: &CheckedUrl) -> Result<&Client, SendError> {
        if target.is_plain_http() {
            return Ok(&self.http_client);
        }
        self.https_client.as_ref().map_err(|_| {
            SendError::Unreachable(
                "this hub has no root certificates, so it cannot call https URLs".into(),
            )
        })
    }
}
