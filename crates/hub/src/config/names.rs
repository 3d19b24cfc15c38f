//! Settings with a grammar: URLs, hosts, process ids.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::value::{InvalidValue, Setting, quote_toml};

/// Hosts reserved for the hub's bridges (relay 2.3, `agent_id`).
const HOSTS_RESERVED: [&str; 7] =
    ["registry", "openclaw", "clara", "agora", "a2a", "mcp", "bridge"];
/// An address has at most 128 characters; the longest name and the `@` leave this many.
const RELAY_HOST_MAX: usize = 63;
/// 32 bytes in base64url.
const PROCESS_ID_LENGTH: usize = 43;

macro_rules! names {
    ($($(#[$about:meta])* $Name:ident by $read:ident, $expected:literal, $example:literal;)+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Name(String);

        impl $Name {
            /// The value as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Setting for $Name {
            fn expected() -> String {
                $expected.to_owned()
            }

            fn example() -> &'static str {
                $example
            }

            fn from_text(text: &str) -> Result<Self, InvalidValue> {
                $read(text).map(Self).map_err(|wrong| InvalidValue::new(text, wrong))
            }

            fn to_toml(&self) -> String {
                quote_toml(self)
            }
        }
    )+};
}

names! {
    /// An `http` or `https` URL to which paths can be appended; it never ends in a slash.
    BaseUrl by base_url, "an http or https URL without query or user", "https://hub.example";
    /// A value of the `Host` header, in lower case, with or without a port.
    HostName by host_name, "a host, with or without a port", "hub.example";
    /// The host that short relay names belong to.
    RelayHost by relay_host, "at most 63 letters, digits, dots, dashes and underscores", "chorus";
    /// The id of an AO process.
    ProcessId by process_id, "32 bytes in base64url, which is 43 characters",
        "CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc";
}

type InvalidReason = &'static str;

fn base_url(text: &str) -> Result<String, InvalidReason> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.ok_or("begins with neither http:// nor https://")?.trim_end_matches('/');
    if rest.is_empty() || rest.starts_with([':', '/']) {
        return Err("has no host");
    }
    if rest.contains(['?', '#', '@', '\\']) || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has characters that are not allowed in a base URL");
    }
    let host = rest.split('/').next().unwrap_or_default();
    if is_unspecified(host) {
        return Err("is a wildcard address, which cannot be called");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Whether a host, with or without a port, is a wildcard address such as `0.0.0.0`.
fn is_unspecified(host: &str) -> bool {
    let address = match host.parse::<SocketAddr>() {
        Ok(with_port) => Some(with_port.ip()),
        Err(_) => host.trim_start_matches('[').trim_end_matches(']').parse().ok(),
    };
    address.is_some_and(|address: IpAddr| address.to_canonical().is_unspecified())
}

fn host_name(text: &str) -> Result<String, InvalidReason> {
    // Brackets and colons are needed for ports and IPv6 addresses.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    if text.is_empty() || !text.bytes().all(allowed) {
        return Err("is not a host");
    }
    Ok(text.to_ascii_lowercase())
}

fn relay_host(text: &str) -> Result<String, InvalidReason> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if text.is_empty() || text.len() > RELAY_HOST_MAX || !text.bytes().all(allowed) {
        return Err("is empty, too long or has a character that is not allowed");
    }
    if text.ends_with('.') {
        return Err("ends in a dot");
    }
    if HOSTS_RESERVED.iter().any(|reserved| text.eq_ignore_ascii_case(reserved)) {
        return Err("is reserved for the hub's bridges");
    }
    Ok(text.to_owned())
}

fn process_id(text: &str) -> Result<String, InvalidReason> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if text.len() != PROCESS_ID_LENGTH || !text.bytes().all(allowed) {
        return Err("is not a process id");
    }
    // 43 characters hold two bits more than 32 bytes. Any other last character does not decode, so
    // no message could be sent to that id.
    if !text.ends_with(|last| "AEIMQUYcgkosw048".contains(last)) {
        return Err("has a last character that is not possible for 32 bytes");
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_ready_for_a_path() {
        assert_eq!(base_url("https://hub.example/a/"), Ok("https://hub.example/a".to_owned()));
        assert_eq!(base_url("http://[::1]:7425"), Ok("http://[::1]:7425".to_owned()));
        for text in [
            "",
            "hub.example",
            "ftp://h",
            "http://",
            "https:///",
            "http://u@h",
            "http://h?q",
            "http://h x",
        ] {
            assert!(base_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_are_compared_in_lower_case() {
        assert_eq!(host_name("Hub.Example:7425"), Ok("hub.example:7425".to_owned()));
        assert!(host_name("http://hub.example").is_err());
        assert!(host_name("").is_err());
    }

    #[test]
    fn a_relay_host_never_collides_with_a_bridge() {
        assert!(relay_host("chorus").is_ok());
        for text in ["", "agora", "Bridge", "a.", "a@b", "münchen", &"a".repeat(64)] {
            assert!(relay_host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_process_id_is_32_bytes() {
        let id = ProcessId::example();
        assert!(process_id(id).is_ok());
        for text in [&id[1..], &format!("{id}A"), &id.replace('_', "/"), &id.replace("jLc", "jLd")]
        {
            assert!(process_id(text).is_err(), "{text}");
        }
    }
}
