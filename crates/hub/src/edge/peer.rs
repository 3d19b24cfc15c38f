//! Who counts as one caller when connections and registrations are counted.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The part of an IPv6 address that is its owner's network. Everybody with one address has the
/// 2^64 around it as well, so counting single ones would count nothing.
const NETWORK: u128 = !0 << 64;

/// An IPv4 address, or the network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self(match address.ip().to_canonical() {
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & NETWORK)),
            ip @ IpAddr::V4(_) => ip,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer::from(text.parse::<SocketAddr>().expect("an address"))
    }

    #[test]
    fn ports_do_not_count_and_neither_does_the_lower_half_of_an_ipv6_address() {
        assert_eq!(peer("192.0.2.1:1"), peer("192.0.2.1:2"));
        assert_ne!(peer("192.0.2.1:1"), peer("192.0.2.2:1"));
        assert_eq!(peer("[2001:db8::1]:1"), peer("[2001:db8::ffff:1]:1"));
        assert_ne!(peer("[2001:db8::1]:1"), peer("[2001:db8:0:1::1]:1"));
        assert_eq!(peer("[::ffff:192.0.2.1]:1"), peer("192.0.2.1:1"));
    }
}
