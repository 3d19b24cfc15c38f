//! URLs with literal addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::spellings::{hosts_of, urls_of};
use super::urls::{CLOSED, HOSTILE, PLAIN};

/// One or two addresses of every network that must not be called.
pub fn closed() -> Vec<IpAddr> {
    CLOSED.iter().map(|text| text.parse().expect("an address")).collect()
}

/// Everything that a hub without listed networks must refuse, at ports with listeners: the table of
/// the guard's own tests, and every closed address in every spelling.
pub fn all(ports: &[u16]) -> Vec<String> {
    let table = HOSTILE.iter().chain(PLAIN).map(|url| (*url).to_owned());
    let hosts = closed().into_iter().flat_map(hosts_of);
    let spelled = hosts.enumerate().map(|(at, host)| one_of(at, &host, ports));
    let distinct: BTreeSet<String> = table.chain(spelled).collect();
    distinct.into_iter().collect()
}

/// Those that mean this machine.
pub fn of_this_machine(ports: &[u16]) -> Vec<String> {
    let loopback = ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::"].map(|text| text.parse());
    let hosts = loopback.into_iter().map(|ip: Result<IpAddr, _>| ip.expect("an address"));
    let hosts = hosts.flat_map(hosts_of).chain(["localhost".to_owned(), "a.localhost.".to_owned()]);
    hosts.flat_map(|host| urls_of(&host, ports[0])).collect()
}

/// One of the spellings of a host, in rotation.
fn one_of(at: usize, host: &str, ports: &[u16]) -> String {
    let urls = urls_of(host, ports[at % ports.len()]);
    // Coprime with the number of spellings.
    urls[at * 7 % urls.len()].clone()
}
