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

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::Client;
use rialto_core::time::{Millis, Timestamp};

pub use dial::{Resolve, ResolveFuture};
pub use guard::{CheckedUrl, Guard, TargetError, url_is_private};
pub use headers::can_send_header;
pub use response::{HttpResponse, REFUSED, ResponseLimits, SendError, StreamingResponse};

use dial::{ClientFactory, ResolveError, SystemResolver};
use host_limits::{HostLimits, HostPermit, HostRateLimit};

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

/// The methods an outgoing call can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads; the body is not sent.
    Get,
    /// Sends a body.
    Post,
}

/// One outgoing call. It has no `Debug`, because headers contain credentials.
pub struct HttpRequest<'a> {
    /// The method.
    pub method: Method,
    /// The URL, not checked yet.
    pub url: &'a str,
    /// The headers, not checked yet.
    pub headers: Vec<(String, String)>,
    /// The body of a POST.
    pub body: Bytes,
}

/// A slot of one host that is kept for a long call; dropping it releases the slot.
pub struct HostSlot(HostPermit);

/// The outgoing client.
pub struct Egress {
    guard: Arc<Guard>,
    dialling: ClientFactory,
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
            dialling,
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

    /// Resolves the host of `url` and checks all its addresses without connecting: for
    /// registrations that should fail early. Every later call checks them again.
    pub async fn check_addresses(&self, url: &str) -> Result<(), SendError> {
        self.addresses(url).await.map(drop)
    }

    /// The addresses that a call of `url` may connect to now, all of them checked.
    pub async fn addresses(&self, url: &str) -> Result<Vec<IpAddr>, SendError> {
        let target = self.guard.check_url(url)?;
        let found = tokio::time::timeout(self.timeout, self.dialling.addresses(&target));
        match found.await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(ResolveError::Blocked(error))) => Err(SendError::Blocked(error)),
            Ok(Err(ResolveError::NotResolved(_))) | Err(_) => {
                Err(SendError::Unreachable("the name could not be resolved".to_owned()))
            }
        }
    }

    /// Whether the host of `url` could take a long call now and still have a slot free for short
    /// ones; `false` for a URL that may not be called.
    pub fn has_spare_slot(&self, url: &str) -> bool {
        let target = self.guard.check_url(url);
        target.is_ok_and(|target| self.host_limits.has_spare_slot(target.host()))
    }

    /// Takes a slot of the host of `url` for a long call, unless it is the last free one. Two
    /// callers can never both take the slot that [`has_spare_slot`](Self::has_spare_slot) saw.
    pub fn try_reserve_slot(&self, url: &str) -> Option<HostSlot> {
        let target = self.guard.check_url(url).ok()?;
        self.host_limits.try_reserve(target.host()).ok().map(HostSlot)
    }

    /// Gets `url` once and reads a response of at most `max_bytes`, all within `timeout`.
    pub async fn get(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        max_bytes: usize,
        timeout: Duration,
    ) -> Result<HttpResponse, SendError> {
        let request = HttpRequest { method: Method::Get, url, headers, body: Bytes::new() };
        let limits = ResponseLimits::within(timeout, max_bytes);
        self.open(request, limits, None).await?.read_to_end().await
    }

    /// Posts `body` once and reads a response of at most `answer_limit` bytes.
    pub async fn post(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        body: Bytes,
        answer_limit: usize,
    ) -> Result<HttpResponse, SendError> {
        let request = HttpRequest { method: Method::Post, url, headers, body };
        let limits = ResponseLimits::within(self.timeout, answer_limit);
        self.open(request, limits, None).await?.read_to_end().await
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
    ) -> Result<StreamingResponse, SendError> {
        let request = HttpRequest { method: Method::Post, url, headers, body };
        let limits = ResponseLimits {
            whole_timeout: Some(whole_timeout),
            ..ResponseLimits::within(self.timeout, answer_limit)
        };
        self.open(request, limits, None).await
    }

    /// Sends `request` once and returns the response as soon as its head is there. The wait for a
    /// slot of the host comes before the times in `limits`, unless `slot` is one of that host.
    pub async fn open(
        &self,
        request: HttpRequest<'_>,
        limits: ResponseLimits,
        slot: Option<HostSlot>,
    ) -> Result<StreamingResponse, SendError> {
        let target = self.guard.check_url(request.url)?;
        let headers = headers::parse_headers(request.headers)?;
        let client = self.client_for(&target)?;
        let slot = match slot.filter(|HostSlot(permit)| permit.host() == target.host()) {
            Some(HostSlot(permit)) => permit,
            None => self.wait_for_slot(&target).await?,
        };
        let url = target.url().clone();
        let request = match request.method {
            Method::Get => client.get(url),
            Method::Post => client.post(url).body(request.body),
        };
        StreamingResponse::open(request.headers(headers), limits, slot).await
    }

    async fn wait_for_slot(&self, target: &CheckedUrl) -> Result<HostPermit, SendError> {
        let slot = self.host_limits.acquire(target.host(), self.timeout).await;
        slot.map_err(|_| SendError::Unreachable("too many calls to this host at once".to_owned()))
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
