//! Which addresses belong to the public internet.
//!
//! Everything here is fixed (IANA's special-purpose registries and one cloud). `guard` adds the
//! networks that the operator allows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

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
