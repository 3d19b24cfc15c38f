//! The guard: decides which URLs the hub may call, before anything is dialled.
//!
//! A literal address is checked here. A name is checked twice: its form here, its addresses by
//! `dial` at every connect, because a DNS answer can change at any time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// The longest URL an agent may give; longer ones are an attack or a mistake.
const URL_BYTES_MAX: usize = 2_048;
/// The longest name DNS can hold.
const NAME_BYTES_MAX: usize = 253;

/// Why the hub will not call. The texts are for callers and never reveal what a name resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text does not parse as a URL with a host.
    #[error("is not a URL of the form https://host/path")]
    NotAUrl,
    /// More bytes than a URL may have.
    #[error("is longer than {URL_BYTES_MAX} bytes")]
    TooLong,
    /// A scheme other than https or http.
    #[error("must begin with https://")]
    UnsupportedScheme,
    /// Plain http to a network the operator did not allow.
    #[error("must begin with https://; http is only for networks the operator of this hub listed")]
    PlainHttp,
    /// A user name or password before the host.
    #[error("must not contain a user name or password")]
    UserInfo,
    /// Port 0 cannot be called.
    #[error("has a port that cannot be called")]
    InvalidPort,
    /// A literal address that is not public.
    #[error("has an address this hub does not call (loopback, private, link-local or reserved)")]
    PrivateAddress,
    /// A name with at least one address that is not public.
    #[error("has a name that resolves to an address this hub does not call")]
    ResolvesToPrivate,
    /// A header that would break or redirect the request.
    #[error("cannot be called with such headers")]
    InvalidHeader,
}

/// A URL that passed the guard, in the exact form that is dialled.
#[derive(Clone, Debug)]
pub struct CheckedUrl {
    url: Url,
    plain: bool,
}

impl CheckedUrl {
    /// The URL, normalised and without its fragment.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Whether the call goes without TLS.
    pub fn is_plain_http(&self) -> bool {
        self.plain
    }

    /// The host in canonical form, so that calls to it can be counted.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default().trim_end_matches('.')
    }
}

/// Knows the networks the operator allowed; all other non-public networks are refused.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allow: Vec<IpNet>,
}

impl Guard {
    /// A guard that allows calls into `allow` as well as to the public internet.
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allow }
    }

    /// Whether the operator allowed this address. A mapped address counts as the IPv4 address it
    /// maps.
    pub fn is_allowed(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|net| net.contains(&address))
    }

    /// Refuses every address that is neither public nor allowed.
    pub fn check_address(&self, address: IpAddr) -> Result<(), TargetError> {
        if is_public(address) || self.is_allowed(address) {
            Ok(())
        } else {
            Err(TargetError::PrivateAddress)
        }
    }

    /// Parses a URL and refuses it if it is already clear that it must not be called.
    pub fn check_url(&self, text: &str) -> Result<CheckedUrl, TargetError> {
        if text.len() > URL_BYTES_MAX {
            return Err(TargetError::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(TargetError::NotAUrl)?;
        let plain = match scheme.to_ascii_lowercase().as_str() {
            "https" => false,
            "http" => true,
            _ => return Err(TargetError::UnsupportedScheme),
        };
        // The URL standard drops tabs and newlines, turns `\` into `/` and skips extra slashes.
        // Other parsers read such texts differently, so they are refused.
        if rest.starts_with('/') || text.chars().any(is_ambiguous) {
            return Err(TargetError::NotAUrl);
        }
        // Also an empty `@`, which the parser would drop silently.
        if rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
            return Err(TargetError::UserInfo);
        }
        let mut url = Url::parse(text).map_err(|_| TargetError::NotAUrl)?;
        url.set_fragment(None);
        // Normalising can turn three bytes into nine, and the normalised form is what is called and
        // checked again.
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(TargetError::TooLong);
        }
        if url.port() == Some(0) {
            return Err(TargetError::InvalidPort);
        }
        match url.host().ok_or(TargetError::NotAUrl)? {
            Host::Ipv4(ip) => self.check_literal(ip.into(), plain)?,
            Host::Ipv6(ip) => self.check_literal(ip.into(), plain)?,
            Host::Domain(name) => self.check_name(name, plain)?,
        }
        Ok(CheckedUrl { url, plain })
    }

    /// The addresses of `localhost`: only those the operator allowed.
    pub(super) fn allowed_loopback_addresses(&self) -> Vec<IpAddr> {
        let local: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        local.into_iter().filter(|ip| self.is_allowed(*ip)).collect()
    }

    fn check_literal(&self, address: IpAddr, plain: bool) -> Result<(), TargetError> {
        self.check_address(address)?;
        if plain && !self.is_allowed(address) { Err(TargetError::PlainHttp) } else { Ok(()) }
    }

    fn check_name(&self, name: &str, plain: bool) -> Result<(), TargetError> {
        if !is_dns_name(name) {
            return Err(TargetError::NotAUrl);
        }
        if is_local_name(name) && self.allowed_loopback_addresses().is_empty() {
            return Err(TargetError::PrivateAddress);
        }
        // If no network is allowed, no name can resolve into one.
        if plain && self.allow.is_empty() { Err(TargetError::PlainHttp) } else { Ok(()) }
    }
}

/// Whether `url` names an address outside the public internet, as far as is known without resolving
/// it: for tests of what a hub would call if its operator allowed no network.
pub fn url_is_private(url: &str) -> bool {
    matches!(Guard::default().check_url(url), Err(TargetError::PrivateAddress))
}

/// `localhost` and all names under it are this machine (RFC 6761, section 6.3), whatever DNS says.
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn is_ambiguous(c: char) -> bool {
    c.is_control() || c.is_whitespace() || c == '\\'
}

/// Letters, digits, `-` and `_` between single dots: what a host may contain after IDNA.
fn is_dns_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    name.len() <= NAME_BYTES_MAX && name.split('.').all(label)
}

// Which addresses belong to the public internet.
//
// Everything here is fixed (IANA's special-purpose registries and one cloud). [`Guard`] adds the
// networks that the operator allows.

/// Networks that lead back to the hub, to its neighbours, or nowhere.
const V4_CLOSED: [Ipv4Net; 18] = [
    v4([0, 0, 0, 0], 8),        // this host
    v4([10, 0, 0, 0], 8),       // private
    v4([100, 64, 0, 0], 10),    // behind a carrier's NAT; some clouds serve their metadata here
    v4([127, 0, 0, 0], 8),      // loopback
    v4([168, 63, 129, 16], 32), // looks public, but inside Azure it is the host's agent
    v4([169, 254, 0, 0], 16),   // link-local, where most clouds serve their metadata
    v4([172, 16, 0, 0], 12),    // private
    v4([192, 0, 0, 0], 24),     // protocol assignments
    v4([192, 0, 2, 0], 24),     // documentation
    v4([192, 31, 196, 0], 24),  // AS112: answers for private reverse names
    v4([192, 88, 99, 0], 24),   // 6to4 relays
    v4([192, 168, 0, 0], 16),   // private
    v4([192, 175, 48, 0], 24),  // AS112
    v4([198, 18, 0, 0], 15),    // benchmarks
    v4([198, 51, 100, 0], 24),  // documentation
    v4([203, 0, 113, 0], 24),   // documentation
    v4([224, 0, 0, 0], 4),      // multicast
    v4([240, 0, 0, 0], 4),      // reserved, and broadcast at its end
];

/// The only IPv6 space assigned to the public. Loopback, link-local, site-local, ULA, multicast,
/// NAT64 and addresses that end in an IPv4 address are all outside it, and so is any future special
/// range.
const V6_PUBLIC: Ipv6Net = v6([0x2000, 0, 0], 3);

/// Special ranges inside the public space. Tunnels hide an unchecked IPv4 address, so they are
/// always refused.
const V6_CLOSED: [Ipv6Net; 5] = [
    v6([0x2001, 0, 0], 23), // protocol assignments: Teredo, benchmarks, ORCHID
    v6([0x2001, 0x0db8, 0], 32), // documentation
    v6([0x2002, 0, 0], 16), // 6to4
    v6([0x2620, 0x004f, 0x8000], 48), // AS112
    v6([0x3fff, 0, 0], 20), // documentation
];

const fn v4(start: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(start[0], start[1], start[2], start[3]), prefix)
}

const fn v6(start: [u16; 3], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(start[0], start[1], start[2], 0, 0, 0, 0, 0), prefix)
}

/// Whether a call to this address goes to the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => !V4_CLOSED.iter().any(|net| net.contains(&ip)),
        IpAddr::V6(ip) => V6_PUBLIC.contains(&ip) && !V6_CLOSED.iter().any(|net| net.contains(&ip)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().expect("test addresses are well formed"))
    }

    #[test]
    fn each_closed_network_is_closed_from_its_first_to_its_last_address() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("168.63.129.16", "168.63.129.16"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.31.196.0", "192.31.196.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("192.175.48.0", "192.175.48.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "239.255.255.255"),
            ("240.0.0.0", "255.255.255.255"),
            ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert!(!public(first), "{first}");
            assert!(!public(last), "{last}");
        }
    }

    #[test]
    fn the_neighbours_of_closed_networks_stay_open() {
        for address in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::1",
            "2001:200::",
            "2001:db7::1",
            "2001:db9::1",
            "2001:ffff::1",
            "2003::1",
            "2606:4700::1111",
            "3ffe::1",
        ] {
            assert!(public(address), "{address}");
        }
    }

    #[test]
    fn ipv6_addresses_that_carry_or_mean_something_local_are_closed() {
        for address in [
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::a00:1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2002:7f00:1::",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "feff::1",
            "ff02::1",
            "ff0e::1",
        ] {
            assert!(!public(address), "{address}");
        }
    }
}
