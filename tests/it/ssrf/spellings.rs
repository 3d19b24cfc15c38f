//! Every known spelling of an address in a URL.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The hosts that some parser reads as this address.
pub fn hosts_of(address: IpAddr) -> Vec<String> {
    match address {
        IpAddr::V4(ip) => four(ip),
        IpAddr::V6(ip) => six(ip),
    }
}

fn four(ip: Ipv4Addr) -> Vec<String> {
    let bits = u32::from(ip);
    let [a, b, c, d] = ip.octets();
    let text = ip.to_string();
    let mut hosts = vec![
        text.clone(),
        format!("{text}."),
        // One, two and three numbers, in several bases.
        format!("{bits}"),
        format!("{bits:#x}"),
        format!("0{bits:o}"),
        format!("{a}.{}", bits & 0xff_ffff),
        format!("{a}.{b}.{}", bits & 0xffff),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a:o}.{b}.{c:#x}.{d}"),
        // Percent escapes, and digits and dots of other scripts.
        text.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        text.replace('.', "%2e"),
        text.chars().map(wide).collect(),
        text.replace('.', "。"),
        text.chars().map(circled).collect(),
    ];
    let [_, _, _, _, _, _, ab, cd] = ip.to_ipv6_mapped().segments();
    hosts.extend([
        format!("[::ffff:{text}]"),
        format!("[::{text}]"),
        format!("[::ffff:0:{text}]"),
        format!("[64:ff9b::{text}]"),
        format!("[64:ff9b:1::{text}]"),
        format!("[2002:{ab:x}:{cd:x}::1]"),
        format!("[2001:0:{ab:x}:{cd:x}::1]"),
        format!("[fe80::5efe:{text}]"),
    ]);
    hosts
}

fn six(ip: Ipv6Addr) -> Vec<String> {
    let long: Vec<String> = ip.segments().iter().map(|part| format!("{part:04X}")).collect();
    vec![
        format!("[{ip}]"),
        format!("[{}]", long.join(":")),
        format!("[{ip}%25lo]"),
        format!("[{ip}%lo]"),
        format!("%5B{ip}%5D"),
        format!("{ip}"),
    ]
}

fn wide(c: char) -> char {
    c.to_digit(10).and_then(|digit| char::from_u32(0xff10 + digit)).unwrap_or('．')
}

fn circled(c: char) -> char {
    match c.to_digit(10) {
        Some(0) => '⓪',
        Some(digit) => char::from_u32(0x245f + digit).unwrap_or(c),
        None => c,
    }
}

/// The URLs that try one host at one port: plain, and with parts that confuse parsers.
pub fn urls_of(host: &str, port: u16) -> Vec<String> {
    vec![
        format!("https://{host}/"),
        format!("https://{host}:{port}/x"),
        format!("http://{host}:{port}/x"),
        format!("https://agent.example@{host}:{port}/"),
        format!("https://{host}:{port}#@agent.example/"),
        format!("https://agent.example\\@{host}:{port}/"),
        format!("https:\\\\{host}:{port}/"),
        format!("https://\t{host}:{port}/"),
        format!("https:///{host}:{port}/"),
        format!("gopher://{host}:{port}/"),
    ]
}
