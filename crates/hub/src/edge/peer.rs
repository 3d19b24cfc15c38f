//! Which addresses count as one caller for connection and registration limits.

use std::net::{IpAddr, SocketAddr};

use rialto_protocols::adapter::peer::client_network;

/// An IPv4 address, or the network of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer(IpAddr);

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self(client_network(address))
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
