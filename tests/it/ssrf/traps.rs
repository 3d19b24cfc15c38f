//! Listeners that record every connection and its destination address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::redirects;

/// Long enough for connections within this machine.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The listeners, at each of their ports on every address.
pub struct Traps {
    pub ports: Vec<u16>,
    seen: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

impl Traps {
    /// Listens at these ports; 0 is any free one.
    pub async fn set(ports: &[u16]) -> Self {
        let seen = Arc::<Mutex<BTreeMap<IpAddr, usize>>>::default();
        let mut bound = Vec::new();
        for port in ports {
            // Accepts IPv4 as well.
            let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port));
            let listener = TcpListener::bind(address).await.expect("the port is free");
            bound.push(listener.local_addr().expect("it is bound").port());
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let at = stream.local_addr().expect("it is connected").ip().to_canonical();
                    *seen.lock().expect("no panic").entry(at).or_default() += 1;
                    tokio::spawn(answer(stream));
                }
            });
        }
        Self { ports: bound, seen }
    }

    /// How often each address was connected to since the last call.
    pub async fn take(&self) -> BTreeMap<IpAddr, usize> {
        // Connections are accepted in the order they were made: when the test's own connection is
        // seen, all before it were.
        for port in &self.ports {
            let before = self.at(Self::DOOR);
            TcpStream::connect((Self::DOOR, *port)).await.expect("the trap listens");
            crate::kit::eventually(async || self.at(Self::DOOR) > before).await;
        }
        let mut seen = std::mem::take(&mut *self.seen.lock().expect("no panic"));
        let knocks = seen.remove(&Self::DOOR).unwrap_or_default();
        // Further connections to the test's own address count as caught.
        if knocks > self.ports.len() {
            seen.insert(Self::DOOR, knocks - self.ports.len());
        }
        seen
    }

    fn at(&self, address: IpAddr) -> usize {
        self.seen.lock().expect("no panic").get(&address).copied().unwrap_or_default()
    }

    /// The address of the test's own connections.
    const DOOR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
}

/// Answers as the path asks for, and closes. A TLS client fails.
async fn answer(mut stream: TcpStream) {
    let mut head = vec![0; 4_096];
    let read = tokio::time::timeout(TIME_LIMIT, stream.read(&mut head)).await;
    if let Ok(Ok(length)) = read {
        let text = String::from_utf8_lossy(&head[..length]);
        let path = text.split(' ').nth(1).unwrap_or_default();
        let _ = stream.write_all(redirects::answer_to(path).as_bytes()).await;
        let _ = stream.shutdown().await;
        // Unread bytes at the close would reset the connection and lose the response.
        let _ = tokio::time::timeout(TIME_LIMIT, stream.read_to_end(&mut head)).await;
    }
}
