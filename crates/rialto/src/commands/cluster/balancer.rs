//! A small load balancer for development: it spreads connections over the nodes that are ready.
//!
//! It passes bytes on and reads none of them, so streams and WebSockets work. A connection stays at
//! its node; if the node ends, the client connects again and reaches another.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Client;
use tokio::io::{AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// Connections at the same time. Further ones wait in the listener's queue.
const CONNECTIONS_MAX: usize = 4_096;
/// How often each node is asked whether it is ready.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// How long such a check, or a new connection to a node, may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a new connection waits for a node while none is ready.
const WAIT_FOR_NODE: Duration = Duration::from_secs(5);
const WAIT_STEP: Duration = Duration::from_millis(20);

const NO_NODE: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\
    Content-Type: text/plain\r\nContent-Length: 17\r\nConnection: close\r\n\r\nno node is ready\n";

/// A node as the load balancer sees it.
struct Backend {
    address: SocketAddr,
    is_ready: AtomicBool,
}

/// Spreads connections over nodes.
pub struct Balancer {
    backends: Vec<Backend>,
    next: AtomicUsize,
    wait_for_node: Duration,
}

impl Balancer {
    pub fn new(addresses: impl IntoIterator<Item = SocketAddr>) -> Arc<Self> {
        let backend = |address| Backend { address, is_ready: AtomicBool::new(false) };
        let backends = addresses.into_iter().map(backend).collect();
        Arc::new(Self { backends, next: AtomicUsize::new(0), wait_for_node: WAIT_FOR_NODE })
    }

    /// Whether every node is ready.
    pub fn are_all_ready(&self) -> bool {
        self.backends.iter().all(|backend| backend.is_ready.load(Ordering::Relaxed))
    }

    /// Asks every node again and again whether it is ready.
    pub async fn watch_nodes(self: Arc<Self>) {
        let client = Client::builder().no_proxy().timeout(CONNECT_TIMEOUT).build();
        let client = client.unwrap_or_default();
        loop {
            for backend in &self.backends {
                let ready = client.get(format!("http://{}/readyz", backend.address)).send().await;
                let is_ready = ready.is_ok_and(|answer| answer.status().is_success());
                backend.is_ready.store(is_ready, Ordering::Relaxed);
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Accepts connections until the listener fails.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) -> io::Result<()> {
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let permit = permits.clone().acquire_owned().await.map_err(io::Error::other)?;
            let (client, _) = listener.accept().await?;
            let balancer = self.clone();
            tokio::spawn(async move {
                // Either side may end a connection at any time, and there is no one to report it to.
                let _ = balancer.pass_on(client).await;
                drop(permit);
            });
        }
    }

    async fn pass_on(&self, mut client: TcpStream) -> io::Result<()> {
        let Some(node) = self.connect().await else {
            client.write_all(NO_NODE).await?;
            return client.shutdown().await;
        };
        client.set_nodelay(true)?;
        node.set_nodelay(true)?;
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_node, mut to_node) = node.into_split();
        let forward = async {
            copy(&mut from_client, &mut to_node).await?;
            // The client sends nothing more, and still reads.
            to_node.shutdown().await?;
            std::future::pending::<io::Result<()>>().await
        };
        let back = async {
            copy(&mut from_node, &mut to_client).await?;
            to_client.shutdown().await
        };
        // What the node has sent is delivered before the connection ends.
        tokio::select! {
            biased;
            ended = back => ended,
            failed = forward => failed,
        }
    }

    /// A connection to the next node that is ready, or to another if that one cannot be reached.
    async fn connect(&self) -> Option<TcpStream> {
        let deadline = Instant::now() + self.wait_for_node;
        loop {
            for _ in &self.backends {
                let at = self.next.fetch_add(1, Ordering::Relaxed) % self.backends.len();
                let backend = &self.backends[at];
                if !backend.is_ready.load(Ordering::Relaxed) {
                    continue;
                }
                match timeout(CONNECT_TIMEOUT, TcpStream::connect(backend.address)).await {
                    Ok(Ok(node)) => return Some(node),
                    _ => backend.is_ready.store(false, Ordering::Relaxed),
                }
            }
            if Instant::now() >= deadline {
                return None;
            }
            sleep(WAIT_STEP).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tokio::io::AsyncReadExt;

    use super::*;

    const READY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

    /// A server that answers every request with its own port, or that it is ready.
    async fn start_node(address: &str) -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let serving = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1_024];
                let length = stream.read(&mut request).await.unwrap_or(0);
                let answer = match request[..length].starts_with(b"GET /readyz") {
                    true => READY.to_owned(),
                    false => format!("{}\n", address.port()),
                };
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        (address, serving)
    }

    async fn start_balancer(nodes: &[SocketAddr]) -> (Arc<Balancer>, SocketAddr) {
        let balancer = Balancer::new(nodes.iter().copied());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(balancer.clone().watch_nodes());
        tokio::spawn(balancer.clone().serve(listener));
        (balancer, address)
    }

    async fn ask(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("text");
        answer.trim_end().to_owned()
    }

    async fn wait_until_ready(balancer: &Balancer) {
        while !balancer.are_all_ready() {
            sleep(WAIT_STEP).await;
        }
    }

    #[tokio::test]
    async fn connections_are_spread_and_one_to_a_node_that_ended_goes_to_another() {
        let (first, serving) = start_node("127.0.0.1:0").await;
        let (second, _serving) = start_node("127.0.0.1:0").await;
        let (balancer, address) = start_balancer(&[first, second]).await;
        wait_until_ready(&balancer).await;
        let mut seen = BTreeSet::new();
        for _ in 0..4 {
            seen.insert(ask(address).await);
        }
        assert_eq!(seen, BTreeSet::from([first, second].map(|node| node.port().to_string())));
        serving.abort();
        let _ = serving.await;
        // At once, although no check has noticed it yet.
        for _ in 0..4 {
            assert_eq!(ask(address).await, second.port().to_string());
        }
        let (_, _serving) = start_node(&first.to_string()).await;
        wait_until_ready(&balancer).await;
        let again = [ask(address).await, ask(address).await];
        assert!(again.contains(&first.port().to_string()), "{again:?}");
    }

    #[tokio::test]
    async fn bytes_pass_both_ways_until_either_side_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let node = listener.local_addr().expect("it is bound");
        let balancer = Balancer::new([node]);
        balancer.backends[0].is_ready.store(true, Ordering::Relaxed);
        let front = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = front.local_addr().expect("it is bound");
        tokio::spawn(balancer.serve(front));
        let mut client = TcpStream::connect(address).await.expect("it listens");
        client.write_all(b"ping").await.expect("it reads");
        let (mut stream, _) = listener.accept().await.expect("the balancer connects");
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).await.expect("four bytes");
        assert_eq!(&bytes, b"ping");
        for event in [b"one ", b"two "] {
            stream.write_all(event).await.expect("it reads");
            client.read_exact(&mut bytes).await.expect("not held back");
            assert_eq!(&bytes, event);
        }
        client.shutdown().await.expect("open");
        assert_eq!(stream.read(&mut bytes).await.expect("open"), 0, "the node sees the end");
        stream.write_all(b"last").await.expect("the client still reads");
        drop(stream);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.expect("it ends");
        assert_eq!(rest, b"last");
    }

    #[tokio::test]
    async fn without_a_node_a_client_is_asked_to_come_back() {
        let wait_for_node = WAIT_STEP;
        let balancer =
            Arc::new(Balancer { backends: Vec::new(), next: AtomicUsize::new(0), wait_for_node });
        let front = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = front.local_addr().expect("it is bound");
        tokio::spawn(balancer.serve(front));
        let answer = ask(address).await;
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1"),
            "{answer}"
        );
    }
}
