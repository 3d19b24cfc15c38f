//! Parsers of request headers: host, origin, trace and request id.

use std::sync::OnceLock;

use http::{HeaderMap, HeaderValue};
use rialto_engine::keys;
use rialto_hub::config::{LoadedConfig, Profile};
use rialto_hub::edge::{HostPolicy, IdSource, RequestId, TraceParent};

/// Checks the parsers of single headers.
pub fn headers(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else { return };
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", value.clone());
    headers.insert("x-request-id", value.clone());
    if let Some(trace) = TraceParent::from_headers(&headers) {
        assert!(trace.trace_id != 0 && trace.parent_id != 0, "an invalid trace was accepted");
    }
    let source: IdSource = std::sync::Arc::new(|| "made".to_owned());
    let id = RequestId::from_headers(&headers, &source);
    assert!(id.as_str().bytes().all(|byte| byte.is_ascii_graphic()), "{id} is not safe to log");
    let Ok(text) = value.to_str() else { return };
    if let Some(key) = keys::parse_bearer(text) {
        assert!(!key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    if hosts().accepts_host(text) {
        let name = text.rsplit_once(':').map_or(text, |(name, _)| name).to_ascii_lowercase();
        assert!(is_ours(&name) || is_ours(&text.to_ascii_lowercase()), "{text} is not ours");
    }
    if hosts().is_own_origin(text, "127.0.0.1:7425") {
        assert!(text.contains("://"), "{text} is not an origin");
    }
}

fn is_ours(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let inside = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let six = inside.and_then(|ip| ip.parse::<std::net::Ipv6Addr>().ok());
    let four = name.parse::<std::net::Ipv4Addr>();
    name == "localhost"
        || six.is_some_and(|ip| ip.is_loopback())
        || four.is_ok_and(|ip| ip.is_loopback())
}

/// The host names of a hub on loopback without configured names.
fn hosts() -> &'static HostPolicy {
    static HOSTS: OnceLock<HostPolicy> = OnceLock::new();
    HOSTS.get_or_init(|| {
        let flags = [("http.listen", "127.0.0.1:7425".to_owned())];
        let loaded = LoadedConfig::load(Profile::Serve, None, std::iter::empty(), &flags);
        let config = loaded.expect("the defaults are valid").config;
        HostPolicy::new(&config.http, config.http.listen)
    })
}
