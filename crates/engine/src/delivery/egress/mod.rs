//! Egress: the one way out. Every call the hub makes to an agent's endpoint goes through here.
//!
//! `guard` says where the hub may call, `dial` makes sure it connects to what was checked, `hosts`
//! and `pace` keep one host from getting too much of it, and `answer` bounds what comes back. When
//! to call and what to do about a failure is for others to decide.

mod answer;
mod dial;
mod guard;
mod headers;
mod hosts;
mod networks;
mod opened;
mod pace;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::Client;
use rialto_core::time::{Millis, Timestamp};

pub use answer::{Answer, SendError};
pub use dial::{Resolve, Resolving};
pub use guard::{Blocked, Guard, Target};
pub use opened::Opened;

use dial::{Dialling, System};
use hosts::Hosts;
use pace::Pace;

/// Who calls, as the receivers of what the hub sends read it.
pub const USER_AGENT: &str = concat!("rialto/", env!("CARGO_PKG_VERSION"));

/// How far and how long the hub reaches out.
#[derive(Clone, Debug)]
pub struct EgressSettings {
    /// Networks that may be called although they are not public, and by plain http.
    pub allow: Vec<IpNet>,
    /// Time to resolve, connect and shake hands; never more than half of `timeout` is used.
    pub connect_timeout: Duration,
    /// Time for a whole call, from resolving to the last byte of the answer. Waiting for a slot
    /// at a busy host comes before it and takes as long again at most.
    pub timeout: Duration,
    /// Calls to one host at the same time.
    pub per_host: usize,
    /// Calls to one host in a minute; `None` is as many as there are.
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

/// Why there can be no egress with these settings.
#[derive(Debug, thiserror::Error)]
pub enum BadEgress {
    /// A timeout of zero or no calls at all: nothing could ever be sent.
    #[error("egress timeouts and calls per host must be above zero")]
    Zero,
    /// The client did not take the settings.
    #[error("the HTTP client could not be created")]
    Client(#[from] reqwest::Error),
}

/// The outgoing client.
pub struct Egress {
    guard: Arc<Guard>,
    hosts: Hosts,
    pace: Pace,
    timeout: Duration,
    /// Or why not. A machine without root certificates can still run all but calls to https.
    secure: Result<Client, String>,
    plain: Client,
}

impl Egress {
    /// An egress that resolves names as the operating system does.
    pub fn new(settings: EgressSettings) -> Result<Self, BadEgress> {
        Self::with_resolver(settings, Arc::new(System::default()))
    }

    /// An egress with its own idea of names, for tests and simulations.
    pub fn with_resolver(
        settings: EgressSettings,
        names: Arc<dyn Resolve>,
    ) -> Result<Self, BadEgress> {
        let EgressSettings { allow, connect_timeout, timeout, per_host, per_host_per_minute } =
            settings;
        if connect_timeout.is_zero() || timeout.is_zero() || per_host == 0 {
            return Err(BadEgress::Zero);
        }
        let guard = Arc::new(Guard::new(allow));
        // Connecting has to fail before the call does, or nobody could tell which of them it was.
        let connect_timeout = connect_timeout.min(timeout / 2);
        let dialling = Dialling { names, guard: Arc::clone(&guard), connect_timeout, per_host };
        let plain = dialling.plain()?;
        let secure = dialling.secure().map_err(|e| answer::root_cause(&e));
        let (hosts, pace) = (Hosts::new(per_host), Pace::new(per_host_per_minute));
        Ok(Self { guard, hosts, pace, timeout, secure, plain })
    }

    /// Why no https call can work on this machine, if so: worth a warning at start.
    pub fn https_trouble(&self) -> Option<&str> {
        self.secure.as_ref().err().map(String::as_str)
    }

    /// The longest a call takes, waiting for its turn included.
    pub fn patience(&self) -> Duration {
        2 * self.timeout
    }

    /// Whether `url` may be called, as far as can be told without resolving it: for registrations.
    pub fn check(&self, url: &str) -> Result<(), Blocked> {
        self.guard.check_url(url).map(|_| ())
    }

    /// Takes one of the calls that the host of `url` may get this minute, or says how long there is
    /// none. Whoever is about to call asks first.
    pub fn take_turn(&self, url: &str, now: Timestamp) -> Result<(), Millis> {
        // What must not be called is refused when it is, and costs nobody a turn.
        let Ok(target) = self.guard.check_url(url) else { return Ok(()) };
        self.pace.take(target.host(), now)
    }

    /// Posts `body` once and reads an answer of at most `answer_limit` bytes.
    pub async fn post(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        body: Bytes,
        answer_limit: usize,
    ) -> Result<Answer, SendError> {
        let target = self.guard.check_url(url)?;
        let headers = headers::read(headers)?;
        let client = self.client_for(&target)?;
        let busy = |_| SendError::Unreachable("too many calls to this host at once".to_owned());
        let _slot = self.hosts.enter(target.host(), self.timeout).await.map_err(busy)?;
        let call = async {
            let request = client.post(target.url().clone()).headers(headers).body(body);
            let response = request.send().await.map_err(|e| answer::from_client(&e))?;
            answer::read(response, answer_limit).await
        };
        tokio::time::timeout(self.timeout, call).await.unwrap_or(Err(SendError::TimedOut))
    }

    /// Posts `body` once and hands the answer over as it comes. Its head and every pause in it may
    /// take as long as a whole call, all of it `whole_timeout`.
    pub async fn open(
        &self,
        url: &str,
        headers: Vec<(String, String)>,
        body: Bytes,
        answer_limit: usize,
        whole_timeout: Duration,
    ) -> Result<Opened<'_>, SendError> {
        let target = self.guard.check_url(url)?;
        let headers = headers::read(headers)?;
        let client = self.client_for(&target)?;
        let busy = |_| SendError::Unreachable("too many calls to this host at once".to_owned());
        let slot = self.hosts.enter(target.host(), self.timeout).await.map_err(busy)?;
        let end = tokio::time::Instant::now() + whole_timeout;
        let request = client.post(target.url().clone()).headers(headers).body(body);
        let response = tokio::time::timeout(self.timeout, request.send()).await;
        let response = response.map_err(|_| SendError::TimedOut)?;
        let response = response.map_err(|e| answer::from_client(&e))?;
        Ok(Opened::new(response, answer_limit, self.timeout, end, slot))
    }

    fn client_for(&self, target: &Target) -> Result<&Client, SendError> {
        if target.is_plain() {
            return Ok(&self.plain);
        }
        self.secure.as_ref().map_err(|_| {
            SendError::Unreachable(
                "this hub has no root certificates, so it cannot call https URLs".into(),
            )
        })
    }
}
