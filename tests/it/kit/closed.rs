//! An endpoint nobody listens at.

use std::net::SocketAddr;

/// A port that is taken, so that nobody else can come to listen there, and that refuses every
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

    /// Opens the port: from now on connections come in.
    pub fn listen(self) -> tokio::net::TcpListener {
        self._held.listen(64).expect("it can listen")
    }
}
