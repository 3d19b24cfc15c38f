//! Which `Host` values the hub accepts, and which origins may call it.
//!
//! A page in the operator's browser can reach a hub on loopback, directly or through DNS rebinding
//! (T29). `Origin` reveals the first case, `Host` the second. See ADR 26.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::config::Http;

/// The host names of this hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPolicy {
    /// Only a loopback address is guarded. Any other address was opened to the network on purpose,
    /// under names the hub cannot know.
    loopback_only: bool,
    /// Names besides those of loopback; a name without a port matches every port.
    known: Vec<(String, Option<u16>)>,
    /// The host of `http.public_url`.
    published: Option<(String, Option<u16>)>,
    /// Origins whose pages may call what models call.
    listed: Vec<String>,
}

impl HostPolicy {
    /// The names of a hub that listens on `bound`.
    pub fn new(http: &Http, bound: SocketAddr) -> Self {
        let owned = |(host, port): (&str, _)| (host.to_ascii_lowercase(), port);
        let url = http.public_url.as_ref().and_then(|url| authority(url.as_str()));
        let published = url.and_then(split).map(owned);
        let allowed = http.allowed_hosts.iter().map(|host| host.as_str());
        let known = allowed.filter_map(split).map(owned).chain(published.clone()).collect();
        let loopback_only = bound.ip().to_canonical().is_loopback();
        Self { loopback_only, known, published, listed: Vec::new() }
    }

    /// Also lets pages of these origins call what models call.
    pub fn with_listed_origins(self, listed: Vec<String>) -> Self {
        Self { listed, ..self }
    }

    /// Whether pages of this origin may call what models call.
    pub fn is_listed_origin(&self, origin: &str) -> bool {
        self.listed.iter().any(|listed| listed.eq_ignore_ascii_case(origin))
    }

    /// Whether the hub accepts this value of `Host`.
    pub fn accepts_host(&self, host: &str) -> bool {
        if !self.loopback_only {
            return true;
        }
        split(host).is_some_and(|(name, port)| is_loopback(name) || self.is_known_host(name, port))
    }

    /// Whether `host` is a public name of the hub: never a loopback name, and on a loopback address
    /// only the host of `http.public_url`, which a proxy forwards.
    pub fn is_public_host(&self, host: &str) -> bool {
        let Some((name, port)) = split(host) else { return false };
        let published = |known: &(String, Option<u16>)| is_same(known, name, port);
        !is_loopback(name)
            && (!self.loopback_only || self.published.as_ref().is_some_and(published))
    }

    /// Whether a page of `origin` belongs to the hub that was addressed as `host`: it has the same
    /// host and port, or is one of the configured names. Two ports of loopback are two origins.
    pub fn is_own_origin(&self, origin: &str, host: &str) -> bool {
        let Some((name, port)) = authority(origin).and_then(split) else {
            return false;
        };
        let default = if origin.starts_with("https:") { 443 } else { 80 };
        let same = |(asked, asked_port): (&str, Option<u16>)| {
            name.eq_ignore_ascii_case(asked)
                && port.unwrap_or(default) == asked_port.unwrap_or(default)
        };
        split(host).is_some_and(same) || self.is_known_host(name, port)
    }

    fn is_known_host(&self, name: &str, port: Option<u16>) -> bool {
        self.known.iter().any(|known| is_same(known, name, port))
    }
}

/// Whether a configured name matches; a name without a port matches every port.
fn is_same((known, only): &(String, Option<u16>), name: &str, port: Option<u16>) -> bool {
    known.eq_ignore_ascii_case(name) && (only.is_none() || *only == port)
}

/// The `host:port` of a URL or an origin.
fn authority(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.split('/').next()
}

/// The host and the port; `None` if it cannot be parsed. Brackets stay with the host.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let name_end = match authority.rfind(']') {
        Some(bracket) => bracket + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (name, rest) = authority.split_at_checked(name_end)?;
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        // "host:" is allowed and means no port.
        Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        _ => return None,
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte);
    (!name.is_empty() && name.bytes().all(fits)).then_some((name, port))
}

/// Names that lead to the local machine whatever DNS says.
fn is_loopback(name: &str) -> bool {
    let six = || name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    name.trim_end_matches('.').eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback())
        || six().and_then(|ip| ip.parse().ok()).is_some_and(|ip: Ipv6Addr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LoadedConfig, Profile};

    fn hosts(bound: &str, flags: &[(&str, &str)]) -> HostPolicy {
        let flags: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        // An empty file, so that no `rialto.toml` of the working directory is read.
        let none = std::path::Path::new("/dev/null");
        let loaded = LoadedConfig::load(Profile::Serve, Some(none), std::iter::empty(), &flags);
        HostPolicy::new(&loaded.expect("valid").config.http, bound.parse().expect("an address"))
    }

    #[test]
    fn on_loopback_only_known_names_are_answered() {
        let flags = [
            ("http.allowed_hosts", "hub.test,exact.test:99"),
            ("http.public_url", "https://p.test"),
        ];
        let hosts = hosts("127.0.0.1:7425", &flags);
        for host in [
            "localhost",
            "LOCALHOST:7425",
            "localhost.:1",
            "127.0.0.1",
            "127.9.9.9:80",
            "[::1]",
            "[::1]:7425",
            "hub.test",
            "Hub.Test:8080",
            "exact.test:99",
            "p.test",
        ] {
            assert!(hosts.accepts_host(host), "{host}");
        }
        for host in [
            "",
            "evil.test",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "127.1",
            "0.0.0.0",
            "[::2]",
            "[::1]x",
            "[::1].evil.test",
            "exact.test",
            "exact.test:98",
            "localhost:http",
            "localhost:99999",
            "user@localhost",
            "evil.test:80:localhost",
            "localhost, evil.test",
        ] {
            assert!(!hosts.accepts_host(host), "{host}");
        }
    }

    #[test]
    fn elsewhere_every_name_is_answered() {
        assert!(hosts("0.0.0.0:7425", &[]).accepts_host("anything.test"));
        assert!(!hosts("[::ffff:127.0.0.1]:7425", &[]).accepts_host("anything.test"));
        assert!(!hosts("[::1]:7425", &[]).accepts_host("anything.test"));
    }

    #[test]
    fn a_page_is_at_home_on_its_own_host_and_port_alone() {
        let flags = [("http.public_url", "https://p.test"), ("http.allowed_hosts", "localhost:99")];
        let hosts = hosts("127.0.0.1:7425", &flags);
        for (origin, host) in [
            ("http://localhost:7425", "localhost:7425"),
            ("http://localhost", "LOCALHOST:80"),
            ("https://hub.test", "HUB.test"),
            ("https://hub.test:443", "hub.test"),
            ("https://p.test", "127.0.0.1:7425"),
            ("http://localhost:99", "127.0.0.1:7425"),
        ] {
            assert!(hosts.is_own_origin(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("null", "localhost:7425"),
            ("http://evil.test", "localhost:7425"),
            ("http://evil.test:7425", "localhost:7425"),
            ("http://localhost.evil.test", "localhost"),
            ("http://localhost:3000", "localhost:7425"),
            ("http://localhost:7425", "127.0.0.1:7425"),
            ("http://[::1]", "127.0.0.1:7425"),
            ("https://hub.test", "hub.test:7425"),
            ("http://hub.test", "hub.test:443"),
            ("http://localhost:3000", "hub.test"),
            ("file://", "localhost"),
            ("", ""),
            ("http://", ""),
        ] {
            assert!(!hosts.is_own_origin(origin, host), "{origin} {host}");
        }
    }

    #[test]
    fn a_hub_on_loopback_is_published_only_under_its_public_url() {
        let flags = [("http.public_url", "https://p.test"), ("http.allowed_hosts", "hub.test")];
        let guarded = hosts("127.0.0.1:7425", &flags);
        assert!(guarded.is_public_host("p.test"));
        for host in ["127.0.0.1:7425", "localhost:7425", "[::1]", "hub.test", ""] {
            assert!(!guarded.is_public_host(host), "{host}");
        }
        let local = hosts("127.0.0.1:7425", &[("http.public_url", "http://localhost:7425")]);
        assert!(!local.is_public_host("localhost:7425"));
        let open = hosts("0.0.0.0:7425", &[]);
        assert!(open.is_public_host("hub.test:7425") && open.is_public_host("192.0.2.1:7425"));
        assert!(!open.is_public_host("localhost:7425") && !open.is_public_host("127.0.0.1"));
    }
}
