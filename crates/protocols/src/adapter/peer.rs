//! The client address of a request.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

/// The network part of an IPv6 address. A client with one address usually has the 2^64 around it as
/// well, so counting single addresses would limit nothing.
const NETWORK: u128 = !0 << 64;

/// What counts as one caller when callers are told apart by address: an IPv4 address, or the
/// network of an IPv6 address.
pub fn client_network(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & NETWORK)),
        ip @ IpAddr::V4(_) => ip,
    }
}

/// The client's address, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub Option<SocketAddr>);

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(known.map(|ConnectInfo(address)| *address)))
    }
}
