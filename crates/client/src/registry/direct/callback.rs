//! Callbacks: where a promised result may be sent, and sending it there.
//!
//! A requester chooses the URL, so it could make the agent call a third party. Only two targets are
//! allowed: the machine the job came from, resolved again at every attempt, and the origins the
//! agent was configured to trust.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};
use url::{Host, Origin, Url};

use crate::retry::RetryPolicy;

/// Timeouts for the connection, for name resolution and for the response.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const CALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Number of attempts and delays: about two minutes in total.
const RETRY: RetryPolicy = RetryPolicy {
    max_attempts: 8,
    initial_delay: Duration::from_secs(1),
    max_delay: Duration::from_secs(60),
};

/// Where a result may be sent.
#[derive(Clone, Debug)]
pub(super) struct Callback {
    url: Url,
    /// The requester's IP address, as the socket reports it.
    requester_ip: IpAddr,
    is_trusted: bool,
}

impl Callback {
    /// The callback of a job; `None` if there is none that could be called.
    pub(super) fn of(text: &str, requester_ip: IpAddr, trusted: &[Origin]) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let plain = url.username().is_empty() && url.password().is_none() && url.has_host();
        let is_trusted = trusted.contains(&url.origin());
        let callable = plain && matches!(url.scheme(), "http" | "https");
        callable.then_some(Self { url, requester_ip, is_trusted })
    }

    /// Its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.url.as_str().len()
    }

    /// Whether it may be called now.
    pub(super) async fn is_allowed(&self) -> bool {
        self.is_trusted || self.addresses().await.is_some()
    }

    /// The addresses behind the URL; `None` if one of them is not the requester's machine.
    async fn addresses(&self) -> Option<Vec<SocketAddr>> {
        let port = self.url.port_or_known_default()?;
        let addresses: Vec<SocketAddr> = match self.url.host()? {
            Host::Ipv4(ip) => vec![(ip, port).into()],
            Host::Ipv6(ip) => vec![(ip, port).into()],
            Host::Domain(name) => {
                let resolved = timeout(CONNECT_TIME_MAX, lookup_host((name, port))).await;
                resolved.ok()?.ok()?.collect()
            }
        };
        let own = |at: &SocketAddr| self.is_own(at.ip().to_canonical());
        (!addresses.is_empty() && addresses.iter().all(own)).then_some(addresses)
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        ip == self.requester_ip || (ip.is_loopback() && self.requester_ip.is_loopback())
    }

    /// Delivers a result until it is accepted, refused permanently, or the attempts are used up. It
    /// can be fetched in any case.
    pub(super) async fn deliver(&self, result: &str) {
        for tries in 1..=RETRY.max_attempts {
            if self.try_deliver(result).await {
                return;
            }
            if tries < RETRY.max_attempts {
                sleep(RETRY.delay(tries)).await;
            }
        }
    }

    /// Makes one attempt; returns whether no further one is needed.
    async fn try_deliver(&self, result: &str) -> bool {
        let mut client = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIME_MAX)
            .timeout(CALL_TIME_MAX)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if !self.is_trusted {
            let Some(addresses) = self.addresses().await else { return false };
            // Connects to the address that was checked.
            if let Some(Host::Domain(name)) = self.url.host() {
                client = client.resolve_to_addrs(name, &addresses);
            }
        }
        let Ok(client) = client.build() else { return true };
        let request = client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        match request.body(result.to_owned()).send().await {
            Ok(answer) => is_final(answer.status()),
            Err(_) => false,
        }
    }
}

/// Whether a retry would get the same response.
fn is_final(status: StatusCode) -> bool {
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => false,
        status => !status.is_server_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_allowed(url: &str, from: &str) -> bool {
        let trusted = [Url::parse("https://hub.example").expect("a URL").origin()];
        match Callback::of(url, from.parse().expect("an address"), &trusted) {
            Some(callback) => callback.is_allowed().await,
            None => false,
        }
    }

    #[tokio::test]
    async fn only_the_machine_of_the_requester_is_called_back() {
        for (url, from, expected) in [
            ("http://127.0.0.1:1/x", "127.0.0.1", true),
            ("http://127.0.0.2:1/x", "127.0.0.1", true),
            ("http://[::1]:1/x", "127.0.0.1", true),
            ("http://localhost:1/x", "::1", true),
            ("http://192.0.2.7/x", "192.0.2.7", true),
            ("http://[::ffff:192.0.2.7]/x", "192.0.2.7", true),
            ("https://hub.example/registry/callbacks/t", "192.0.2.7", true),
            ("http://127.0.0.1:1/x", "192.0.2.7", false),
            ("http://localhost:1/x", "192.0.2.7", false),
            ("http://192.0.2.8/x", "192.0.2.7", false),
            ("http://169.254.169.254/x", "127.0.0.1", false),
            ("http://hub.example/registry", "127.0.0.1", false),
            ("http://nowhere.invalid/x", "127.0.0.1", false),
            ("http://me@127.0.0.1/x", "127.0.0.1", false),
            ("file:///etc/passwd", "127.0.0.1", false),
            ("local://memory", "127.0.0.1", false),
            ("", "127.0.0.1", false),
        ] {
            assert_eq!(is_allowed(url, from).await, expected, "{url} from {from}");
        }
    }
}
