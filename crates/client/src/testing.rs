//! Small test servers that send exactly the bytes a test specifies.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::call::CallError;

/// Longer than any step takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Awaits a future; panics if it takes so long that it will never finish.
pub(super) async fn in_time<T>(waited: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, waited).await.expect("it comes in time")
}

/// A client with a timeout, so that a server that hangs causes an error.
pub(super) fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(LONG).build().expect("a client")
}

/// A server on its own port that records its requests.
pub(super) struct TestServer {
    pub(super) url: String,
    heard: Arc<Mutex<Vec<RecordedRequest>>>,
}

/// One recorded request.
#[derive(Clone, Debug)]
pub(super) struct RecordedRequest {
    pub(super) method: String,
    pub(super) target: String,
    head: String,
    pub(super) body: String,
}

impl RecordedRequest {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl TestServer {
    /// Answers each request with `answer`, which gets the request and its number (from 0) among the
    /// requests with the same target.
    pub(super) async fn new(
        answer: impl Fn(&RecordedRequest, usize) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(request) = read(&mut stream).await else { continue };
                let number = {
                    let mut heard = kept.lock().expect("sound");
                    let same = |other: &&RecordedRequest| other.target == request.target;
                    let number = heard.iter().filter(same).count();
                    heard.push(request.clone());
                    number
                };
                let _ = stream.write_all(&answer(&request, number)).await;
            }
        });
        Self { url: format!("http://{address}"), heard }
    }

    /// Like `new`, for a server without a well-known document.
    pub(super) async fn plain(
        answer: impl Fn(&RecordedRequest, usize) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let absent = |heard: &RecordedRequest| heard.target.starts_with("/.well-known");
        Self::new(move |heard, number| {
            if absent(heard) { failure(404, "ERR_NOT_FOUND", "") } else { answer(heard, number) }
        })
        .await
    }

    /// The recorded requests, except those for the well-known document.
    pub(super) fn heard(&self) -> Vec<RecordedRequest> {
        let heard = self.heard.lock().expect("sound");
        heard.iter().filter(|heard| !heard.target.starts_with("/.well-known")).cloned().collect()
    }
}

async fn read(stream: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4_096];
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut words = head.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let heard =
            RecordedRequest { method, target, head: head.to_owned(), body: body.to_owned() };
        let length = heard.header("content-length").map_or(0, |n| n.parse().expect("a number"));
        if body.len() >= length {
            return Some(heard);
        }
    }
}

/// A complete response.
pub(super) fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")
        .into_bytes()
}

/// A success in the protocol's format.
pub(super) fn success(data: &str) -> Vec<u8> {
    answer(200, "", &format!(r#"{{"success":true,"data":{data},"metadata":{{}}}}"#))
}

/// A failure in the protocol's format.
pub(super) fn failure(status: u16, code: &str, headers: &str) -> Vec<u8> {
    let error = format!(r#"{{"code":"{code}","message":"no"}}"#);
    answer(status, headers, &format!(r#"{{"success":false,"error":{error}}}"#))
}

/// A refusal as the client reports it.
pub(super) fn refused(status: u16, code: &str, retryable: bool, after_s: Option<u64>) -> CallError {
    CallError::Refused {
        status,
        code: code.to_owned(),
        message: String::new(),
        retryable,
        hint: None,
        retry_after: after_s.map(Duration::from_secs),
    }
}

/// A stream that sends this text and then disconnects.
pub(super) fn stream(text: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    format!("{head}{text}").into_bytes()
}
