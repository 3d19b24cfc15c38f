//! The guard: decides which URLs the hub may call, before anything is dialled.
//!
//! A literal address is checked here. A name is checked twice: its form here, its addresses by
//! `dial` at every connect, because a DNS answer can change at any time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use url::{Host, Url};

use super::networks::is_public;

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
