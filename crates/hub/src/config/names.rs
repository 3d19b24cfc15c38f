//! Settings with a grammar: URLs and hosts.

use std::net::{IpAddr, SocketAddr};

use rialto_config::names;

names! {
    /// An `http` or `https` URL to which paths can be appended; it never ends in a slash.
    BaseUrl by base_url, "an http or https URL without query or user", "https://hub.example";
    /// A value of the `Host` header, in lower case, with or without a port.
    HostName by host_name, "a host, with or without a port", "hub.example";
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
}
