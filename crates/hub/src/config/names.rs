//! Settings with a grammar: URLs and hosts.

use std::net::{IpAddr, SocketAddr};

use rialto_config::names;

names! {
    /// An `http` or `https` URL to which paths can be appended; it never ends in a slash.
    BaseUrl by base_url, "an http or https URL without query or user", "https://hub.example";
    /// A value of the `Host` header, in lower case, with or without a port.
    HostName by host_name, "a host, with or without a port", "hub.example";
    /// A host and a port to connect to.
    HostPort by host_port, "a host and a port", "node-1.example:7426";
    /// The origin of web pages: a scheme and a host, in lower case, with or without a port.
    Origin by origin, "the origin of a web page", "https://app.example";
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

fn host_port(text: &str) -> Result<String, InvalidReason> {
    let (host, port) = text.rsplit_once(':').ok_or("has no port")?;
    if !port.parse::<u16>().is_ok_and(|port| port != 0) {
        return Err("has no valid port");
    }
    // Without brackets, the end of an IPv6 address would be taken for a port.
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(':') && !bracketed {
        return Err("is an IPv6 address without brackets");
    }
    if is_unspecified(text) {
        return Err("is a wildcard address, which cannot be called");
    }
    host_name(host).map(|host| format!("{host}:{port}"))
}

fn origin(text: &str) -> Result<String, InvalidReason> {
    let text = text.trim_end_matches('/').to_ascii_lowercase();
    let (scheme, host) = text.split_once("://").ok_or("has no scheme such as https://")?;
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        return Err("has no scheme such as https://");
    }
    host_name(host)?;
    Ok(text)
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
    fn a_node_is_reached_at_a_host_and_a_port() {
        for text in ["node-1.example:7426", "10.1.2.3:1", "[::1]:7426"] {
            assert_eq!(host_port(text), Ok(text.to_owned()));
        }
        for text in ["", "node-1", "node-1:", "node-1:0", "::1:7426", "0.0.0.0:7426", "a b:1", ":1"]
        {
            assert!(host_port(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host_in_lower_case() {
        assert_eq!(origin("https://App.Example/"), Ok("https://app.example".to_owned()));
        assert_eq!(origin("vscode-webview://a1"), Ok("vscode-webview://a1".to_owned()));
        assert_eq!(origin("http://localhost:3000"), Ok("http://localhost:3000".to_owned()));
        for text in ["", "app.example", "https://", "https://a/b", "://a", "null", "*"] {
            assert!(origin(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_are_compared_in_lower_case() {
        assert_eq!(host_name("Hub.Example:7425"), Ok("hub.example:7425".to_owned()));
        assert!(host_name("http://hub.example").is_err());
        assert!(host_name("").is_err());
    }
}
