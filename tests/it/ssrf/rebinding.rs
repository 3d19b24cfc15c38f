//! Names that resolve to forbidden addresses: alone, among others, by an alias, or at the second
//! query.

use std::net::IpAddr;

use super::dns::{Dns, Meaning};
use super::literals::closed;

/// A public address that may be called.
pub const PUBLIC: &str = "8.8.8.8";
/// The same in IPv6.
pub const PUBLIC_SIX: &str = "2606:4700::1111";

pub fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Registers every way to reach every closed address, and returns the names.
pub fn teach(dns: &Dns) -> Vec<String> {
    let mut names = Vec::new();
    for (at, closed) in closed().into_iter().enumerate() {
        // A mapped address does not survive in an IPv6 record.
        let closed = closed.to_canonical();
        let turn = |addresses: &[IpAddr]| vec![addresses.to_vec()];
        let public = ip(PUBLIC);
        let mut ways = vec![
            ("alone", Meaning { turns: turn(&[closed]), canonical: None }),
            ("after", Meaning { turns: turn(&[public, closed]), canonical: None }),
            ("before", Meaning { turns: turn(&[closed, public, ip(PUBLIC_SIX)]), canonical: None }),
            (
                "alias",
                Meaning {
                    turns: turn(&[closed]),
                    canonical: Some(format!("inner{at}.internal.example")),
                },
            ),
        ];
        if closed.is_ipv4() {
            ways.push((
                "later",
                Meaning { turns: vec![vec![public], vec![closed]], canonical: None },
            ));
            let turns = vec![vec![public], vec![public, closed]];
            ways.push(("joined", Meaning { turns, canonical: None }));
        }
        for (way, meaning) in ways {
            let name = format!("{way}{at}.evil.example");
            dns.teach(&name, meaning);
            names.push(name);
        }
    }
    names
}
