//! Egress URLs: a URL that passes the guard leads to a public host, however it is parsed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rialto_engine::delivery::egress::{CheckedUrl, Guard};
use url::{Host, Url};

use super::text;

/// Checks the guard, with only the public internet allowed.
pub fn egress_url(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let guard = Guard::default();
    let Ok(target) = guard.check_url(text) else { return };
    assert!(!target.is_plain_http() && target.url().scheme() == "https", "{text} is not https");
    let other = Url::parse(text).expect("the guard accepted it as a URL");
    assert_eq!(other.host(), target.url().host(), "two parsers disagree on {text}");
    assert_eq!(other.port_or_known_default(), target.url().port_or_known_default());
    assert!(target.url().username().is_empty() && target.url().password().is_none());
    assert!(is_public(&target), "{text} leads to a private address");
    let again = guard.check_url(target.url().as_str()).expect("what it let through as it wrote it");
    assert_eq!(again.url(), target.url());
}

fn is_public(target: &CheckedUrl) -> bool {
    match target.url().host() {
        Some(Host::Ipv4(ip)) => is_public_v4(ip),
        Some(Host::Ipv6(ip)) => is_public_v6(ip),
        // A name that another resolver would parse as an address: 127.1, 0x7f.1, 2130706433.
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            let last = name.rsplit('.').next().unwrap_or_default();
            let numeric = last.bytes().all(|byte| byte.is_ascii_digit())
                || last.starts_with("0x") && last[2..].bytes().all(|b| b.is_ascii_hexdigit());
            !numeric && name.parse::<IpAddr>().is_err() && last != "localhost" && name.is_ascii()
        }
        None => false,
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let special = a == 0 || a >= 240 || (a == 198 && (b == 18 || b == 19));
    let inside = ip.is_private() || ip.is_loopback() || ip.is_link_local();
    !(shared
        || special
        || inside
        || ip.is_multicast()
        || ip.is_documentation()
        || ip.is_broadcast())
}

/// Only 2000::/3 is assigned, and 6to4 and Teredo in it contain an IPv4 address.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    let handed_out = a & 0xe000 == 0x2000;
    let hides = a == 0x2002 || (a == 0x2001 && b < 0x200) || (a == 0x2001 && b == 0xdb8);
    handed_out && !hides
}
