//! NATS JetStream over its text protocol: a publish is answered when the message is stored; receivers
//! pull batches from a durable consumer each and acknowledge every message.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Peer, PeerKind, free_address};
use crate::arrivals::{ACK_INTERVAL, Arrival, ReceiverContext, Receivers};
use crate::connection::{BenchConnection, BenchRequest};
use crate::measurement::RequestError;
use crate::message;
use crate::process::{ServerProcess, temporary_dir};

/// How many times the rate of JetStream with a sync for each message the hub's is to be.
const GOAL: f64 = 15.0;
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The stream of all messages.
const STREAM: &str = "bench";
/// Messages pulled at once, and how long a pull waits for them.
const PULL_MAX: usize = 1_000;
const PULL_WAIT: Duration = Duration::from_secs(1);
const READ_BYTES: usize = 16 * 1_024;

/// Starts NATS with one stream and a consumer for each receiver.
pub fn start(version: &str, receivers: usize) -> io::Result<Peer> {
    let (dir, address) = (temporary_dir()?, free_address()?);
    let config = dir.path().join("nats.conf");
    // Versions before 2.10 do not know the setting, and sync every two minutes.
    let syncs = [true, false].into_iter().find(|syncs| {
        fs::write(&config, settings(dir.path(), *syncs)).is_ok() && is_valid(&config)
    });
    let syncs = syncs.ok_or_else(|| io::Error::other("nats-server refuses its settings"))?;
    let mut command = Command::new("nats-server");
    command.args(["--addr", "127.0.0.1", "--port", &address.port().to_string(), "--config"]);
    let mut server = ServerProcess::spawn(command.arg(&config).stderr(Stdio::null()))?;
    server.wait_until(START_TIMEOUT, || std::net::TcpStream::connect(address).is_ok())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(create_stream(address, receivers))?;
    let interval = if syncs { "always" } else { "every 2 minutes" };
    let name = format!("JetStream {version}, fsync {interval}");
    let goal = syncs.then_some(GOAL);
    Ok(Peer { name, goal, kind: PeerKind::Nats, address, server, _dir: dir })
}

fn settings(dir: &Path, syncs: bool) -> String {
    let sync = if syncs { "sync_interval: always" } else { "" };
    format!("jetstream {{ store_dir: \"{}\"\n{sync}\n}}\n", dir.join("data").display())
}

fn is_valid(config: &Path) -> bool {
    let mut command = Command::new("nats-server");
    command.arg("-t").arg("--config").arg(config).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

async fn create_stream(address: SocketAddr, receivers: usize) -> io::Result<()> {
    let mut connection = NatsConnection::connect(address).await.map_err(failed)?;
    let stream = json!({
        "name": STREAM,
        "subjects": ["inbox.*"],
        "storage": "file",
        "retention": "limits",
        "num_replicas": 1,
    });
    connection.call_api(&format!("$JS.API.STREAM.CREATE.{STREAM}"), &stream).await?;
    for receiver in 0..receivers {
        let name = consumer(receiver);
        let consumer = json!({"stream_name": STREAM, "config": {
            "durable_name": name,
            "filter_subject": subject(receiver),
            "ack_policy": "explicit",
            "deliver_policy": "all",
            "max_ack_pending": -1,
        }});
        let create = format!("$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{name}");
        connection.call_api(&create, &consumer).await?;
    }
    Ok(())
}

fn subject(receiver: usize) -> String {
    format!("inbox.{receiver}")
}

fn consumer(receiver: usize) -> String {
    format!("reader-{receiver}")
}

/// Opens one receiver for each consumer.
pub fn open_receivers(address: SocketAddr, count: usize) -> io::Result<Receivers> {
    let mut receivers = Receivers::new()?;
    for receiver in 0..count {
        let connection = receivers.runtime.block_on(NatsConnection::connect(address));
        let connection = connection.map_err(failed)?;
        receivers.spawn(receive(connection, consumer(receiver), receivers.context()));
    }
    Ok(receivers)
}

async fn receive(
    mut connection: NatsConnection,
    consumer: String,
    context: ReceiverContext,
) -> io::Result<Vec<Arrival>> {
    let pull = json!({"batch": PULL_MAX, "expires": PULL_WAIT.as_nanos() as u64}).to_string();
    let next = format!("$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{consumer}");
    let pull = publish(&next, &connection.answers, pull.as_bytes());
    let (mut arrivals, mut unacknowledged) = (Vec::new(), BytesMut::new());
    let (mut pulled, mut pulled_at) = (PULL_MAX, Instant::now());
    let mut last_acknowledged = Instant::now();
    connection.buffer.reserve(READ_BYTES);
    loop {
        let is_last = context.is_closing();
        if (pulled >= PULL_MAX || pulled_at.elapsed() > PULL_WAIT) && !is_last {
            connection.stream.write_all(&pull).await?;
            (pulled, pulled_at) = (0, Instant::now());
        }
        let mut frame = match tokio::time::timeout(ACK_INTERVAL, connection.next_frame()).await {
            Ok(frame) => Some(frame?),
            Err(_) => None,
        };
        let arrived_ns = message::clock_ns(Instant::now());
        let before = arrivals.len();
        while let Some(one) = frame {
            match (one.reply_to, message::sent_ns(&one.payload)) {
                (Some(reply_to), Some(sent_ns)) => {
                    arrivals.push(Arrival { sent_ns, arrived_ns });
                    unacknowledged.extend_from_slice(&publish(&reply_to, "", b"+ACK"));
                }
                // A message without payload ends the pull: it has waited long enough.
                _ => pulled = PULL_MAX,
            }
            frame = connection.buffered_frame().await?;
        }
        let new = arrivals.len() - before;
        pulled += new;
        context.count(new);
        if is_last || last_acknowledged.elapsed() >= ACK_INTERVAL {
            connection.stream.write_all(&unacknowledged.split()).await?;
            last_acknowledged = Instant::now();
        }
        if is_last {
            return Ok(arrivals);
        }
    }
}

fn failed(error: RequestError) -> io::Error {
    io::Error::other(format!("NATS: {error}"))
}

/// One `PUB`, with a subject for the answer if it is not empty.
fn publish(subject: &str, answer_to: &str, payload: &[u8]) -> Bytes {
    let length = payload.len();
    let head = format!("PUB {subject} {answer_to} {length}\r\n");
    [head.as_bytes(), payload, b"\r\n"].concat().into()
}

/// A message to publish.
pub struct Publish {
    subject: String,
    payload: Bytes,
}

impl Publish {
    /// A message to a receiver.
    pub fn new(receiver: usize, payload: Bytes) -> Self {
        Self { subject: subject(receiver), payload }
    }
}

/// A connection with one request in flight, and the subject at which it gets its answers.
pub struct NatsConnection {
    stream: TcpStream,
    buffer: BytesMut,
    answers: String,
}

impl BenchRequest for Publish {
    type Connection = NatsConnection;
}

impl BenchConnection<Publish> for NatsConnection {
    async fn from_stream(stream: TcpStream) -> Result<Self, RequestError> {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        let answers = format!("_INBOX.bench.{}", CONNECTIONS.fetch_add(1, Ordering::Relaxed));
        let mut connection = Self { stream, buffer: BytesMut::new(), answers };
        connection.subscribe().await.map_err(RequestError::connection_failed)?;
        Ok(connection)
    }

    async fn is_open(&mut self) -> bool {
        // A closed connection shows in the next exchange; between two, only pings arrive.
        true
    }

    async fn exchange(&mut self, message: Publish) -> Result<(StatusCode, Bytes), RequestError> {
        let answer = self.call(&message.subject, &message.payload).await;
        let answer = answer.map_err(RequestError::connection_failed)?;
        let is_stored = answer.windows(6).any(|part| part == b"\"seq\":");
        Ok((if is_stored { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR }, answer))
    }
}

impl NatsConnection {
    /// Subscribes to the connection's answers.
    async fn subscribe(&mut self) -> io::Result<()> {
        let options = json!({"verbose": false, "pedantic": false, "headers": true});
        let hello = format!("CONNECT {options}\r\nSUB {} 1\r\n", self.answers);
        self.stream.write_all(hello.as_bytes()).await
    }

    /// Publishes a message and waits for the answer.
    async fn call(&mut self, subject: &str, payload: &[u8]) -> io::Result<Bytes> {
        self.stream.write_all(&publish(subject, &self.answers, payload)).await?;
        self.next_frame().await.map(|frame| frame.payload)
    }

    /// Calls the JetStream API.
    async fn call_api(&mut self, subject: &str, body: &Value) -> io::Result<()> {
        let answer = self.call(subject, body.to_string().as_bytes()).await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        match answer.get("error") {
            None => Ok(()),
            Some(error) => Err(io::Error::other(format!("NATS refused {subject}: {error}"))),
        }
    }

    /// The next message.
    async fn next_frame(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.buffered_frame().await? {
                return Ok(frame);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::other("NATS closed the connection"));
            }
        }
    }

    /// The next message that has arrived already. Answers pings on the way.
    async fn buffered_frame(&mut self) -> io::Result<Option<Frame>> {
        while let Some((line, length)) = Line::parse(&self.buffer)? {
            self.buffer.advance(length);
            match line {
                Line::Message(frame) => return Ok(Some(frame)),
                Line::Ping => self.stream.write_all(b"PONG\r\n").await?,
                Line::Other => {}
            }
        }
        Ok(None)
    }
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    reply_to: Option<String>,
    payload: Bytes,
}

/// One unit of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Message(Frame),
    Ping,
    Other,
}

impl Line {
    /// The first unit in these bytes and its length; `None` until it is complete.
    fn parse(bytes: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let text = String::from_utf8_lossy(&bytes[..end]);
        let words: Vec<&str> = text.split_whitespace().collect();
        let invalid = || io::Error::other(format!("NATS sent an invalid message: {text}"));
        // The sizes come last: of the headers, where there are any, and of everything.
        let sizes = match words.first() {
            Some(&"MSG") => 1,
            Some(&"HMSG") => 2,
            Some(&"PING") => return Ok(Some((Self::Ping, end + 2))),
            Some(&"-ERR") => return Err(io::Error::other(format!("NATS: {text}"))),
            _ => return Ok(Some((Self::Other, end + 2))),
        };
        let size = |from_end: usize| {
            let word = words.len().checked_sub(from_end).and_then(|at| words.get(at));
            word.and_then(|word| word.parse::<usize>().ok()).ok_or_else(invalid)
        };
        let (total, headers) = (size(1)?, if sizes == 2 { size(2)? } else { 0 });
        let start = end + 2;
        let Some(whole) = bytes.get(start..start + total + 2) else { return Ok(None) };
        let payload = whole.get(headers..total).ok_or_else(invalid)?;
        // The verb, the subject and the subscription come first, then where to answer, if at all.
        let reply_to = words.get(3).filter(|_| words.len() == 4 + sizes);
        let reply_to = reply_to.map(|subject| (*subject).to_owned());
        let frame = Frame { reply_to, payload: Bytes::copy_from_slice(payload) };
        Ok(Some((Self::Message(frame), start + total + 2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(wire: &str) -> (Line, usize) {
        for some in 0..wire.len() {
            assert_eq!(Line::parse(&wire.as_bytes()[..some]).unwrap(), None, "{some}");
        }
        Line::parse(wire.as_bytes()).unwrap().unwrap()
    }

    fn frame(reply_to: Option<&str>, payload: &'static str) -> Line {
        let reply_to = reply_to.map(str::to_owned);
        Line::Message(Frame { reply_to, payload: payload.into() })
    }

    #[test]
    fn messages_are_parsed_once_they_are_complete() {
        let plain = "MSG inbox.1 1 $JS.ACK.9 5\r\na\r\nbc\r\n";
        assert_eq!(parse(plain), (frame(Some("$JS.ACK.9"), "a\r\nbc"), plain.len()));
        let answer = "MSG _INBOX.bench.0 1 2\r\nok\r\n";
        assert_eq!(parse(answer), (frame(None, "ok"), answer.len()));
        let ended = "HMSG _INBOX.bench.0 1 8 8\r\nNATS/1.0\r\n";
        assert_eq!(parse(ended), (frame(None, ""), ended.len()));
        let with_headers = "HMSG inbox.1 1 ack 4 6\r\nabcdok\r\n";
        assert_eq!(parse(with_headers), (frame(Some("ack"), "ok"), with_headers.len()));
    }

    #[test]
    fn pings_are_told_from_what_can_be_ignored_and_errors_are_reported() {
        assert_eq!(parse("PING\r\n"), (Line::Ping, 6));
        assert_eq!(parse("INFO {}\r\n"), (Line::Other, 9));
        for bad in ["-ERR 'Unknown'\r\n", "MSG a 1 x\r\n", "HMSG a 1 9 2\r\nab\r\n", "MSG\r\n"] {
            assert!(Line::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_publish_names_where_to_answer_only_if_it_wants_an_answer() {
        assert_eq!(publish("inbox.1", "_INBOX.0", b"hi"), "PUB inbox.1 _INBOX.0 2\r\nhi\r\n");
        assert_eq!(publish("ack", "", b"+ACK"), "PUB ack  4\r\n+ACK\r\n");
    }
}
