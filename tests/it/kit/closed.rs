//! An endpoint that refuses connections.

use std::net::SocketAddr;

/// A port that is bound, so that no other process can listen there, and that refuses every
/// connection.
pub struct ClosedPort {
    pub url: String,
    _held: tokio::net::TcpSocket,
}

impl ClosedPort {
    pub fn take() -> Self {
        let held = tokio::net::TcpSocket::new_v4().expect("a socket");
        held.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let url = format!("http://{}", held.local_addr().expect("an address"));
        Self { url, _held: held }
    }

    /// Starts to listen: from now on connections are accepted.
    pub fn listen(self) -> tokio::net::TcpListener {
        self._held.listen(64).expect("it can listen")
    }
}
