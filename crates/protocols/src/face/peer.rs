//! Where a request comes from.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

/// The address at the other end, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub Option<SocketAddr>);

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(known.map(|ConnectInfo(address)| *address)))
    }
}
