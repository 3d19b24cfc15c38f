//! A server that counts connections and answers with raw bytes, valid or not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// What the server does with a request.
#[derive(Clone, Copy)]
pub(super) enum Does {
    /// Answers and closes.
    Reply(&'static str),
    /// Answers and waits for the next request on the same connection.
    ReplyAndKeep(&'static str),
    /// Answers, then sends this again and again.
    ReplyAndRepeat(&'static str, &'static str, Duration),
    /// Closes without an answer.
    Close,
    /// Reads and never answers.
    Hang,
}

pub(super) struct Server {
    address: SocketAddr,
    hits: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Listens on all addresses of this machine, so that every connection to it is seen.
    pub(super) async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (hits, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::default()));
        let server = Self { address, hits: Arc::clone(&hits), requests: Arc::clone(&requests) };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                hits.fetch_add(1, Ordering::SeqCst);
                let requests = Arc::clone(&requests);
                // Tests include clients that disconnect early.
                tokio::spawn(async move { serve(stream, does, &requests).await.ok() });
            }
        });
        server
    }

    pub(super) fn url(&self, scheme: &str, host: &str) -> String {
        format!("{scheme}://{host}:{}/hook?x=1", self.address.port())
    }

    pub(super) fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no test panics while holding this").clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    does: Does,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    loop {
        let Some(request) = read_request(&mut stream).await? else { return Ok(()) };
        requests.lock().expect("no test panics while holding this").push(request);
        match does {
            Does::Close => return Ok(()),
            Does::Hang => std::future::pending().await,
            Does::Reply(text) => {
                stream.write_all(text.as_bytes()).await?;
                return stream.shutdown().await;
            }
            Does::ReplyAndKeep(text) => stream.write_all(text.as_bytes()).await?,
            Does::ReplyAndRepeat(text, more, pause) => {
                stream.write_all(text.as_bytes()).await?;
                loop {
                    stream.write_all(more.as_bytes()).await?;
                    if pause.is_zero() {
                        tokio::task::yield_now().await;
                    } else {
                        tokio::time::sleep(pause).await;
                    }
                }
            }
        }
    }
}

/// Reads a GET, or up to the end of the two-byte body that all other tests send; `None` if there is
/// none.
async fn read_request(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut request = Vec::new();
    let is_whole = |request: &[u8]| match request.starts_with(b"GET ") {
        true => request.ends_with(b"\r\n\r\n"),
        false => request.ends_with(b"\r\n\r\n{}"),
    };
    while !is_whole(&request) {
        let mut some = [0; 1_024];
        match stream.read(&mut some).await? {
            0 => return Ok(None),
            n => request.extend_from_slice(&some[..n]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&request).into_owned()))
}
