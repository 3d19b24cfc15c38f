//! Redis streams over RESP: `XADD` is answered when it is synced (`appendfsync always`); receivers
//! read with a consumer group and acknowledge what they have read.

use std::io;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use hyper::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Peer, PeerKind, free_address};
use crate::arrivals::{ACK_INTERVAL, Arrival, ReceiverContext, Receivers};
use crate::connection::{BenchConnection, BenchRequest};
use crate::measurement::RequestError;
use crate::message;
use crate::process::{ServerProcess, temporary_dir};

/// How many times the rate of Redis the hub's is to be.
const GOAL: f64 = 1.5;
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// The consumer group of all streams.
const GROUP: &str = "bench";
/// Messages read at once.
const READ_MAX: &str = "1000";

/// Starts Redis with one stream for each receiver.
pub fn start(version: &str, receivers: usize) -> io::Result<Peer> {
    let (dir, address) = (temporary_dir()?, free_address()?);
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--dir"]);
    command.arg(dir.path());
    command.args(["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
    let mut server = ServerProcess::spawn(command.stderr(Stdio::null()))?;
    server.wait_until(START_TIMEOUT, || std::net::TcpStream::connect(address).is_ok())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connection = RedisConnection::connect(address).await.map_err(failed)?;
        for receiver in 0..receivers {
            let create = ["XGROUP", "CREATE", &stream(receiver), GROUP, "$", "MKSTREAM"];
            connection.call(&RedisCommand::new(&create)).await?;
        }
        Ok::<_, io::Error>(())
    })?;
    let name = format!("Redis {version} streams, fsync always");
    Ok(Peer { name, goal: Some(GOAL), kind: PeerKind::Redis, address, server, _dir: dir })
}

/// Opens one receiver for each stream.
pub fn open_receivers(address: SocketAddr, count: usize) -> io::Result<Receivers> {
    let mut receivers = Receivers::new()?;
    for receiver in 0..count {
        let connection = receivers.runtime.block_on(RedisConnection::connect(address));
        let connection = connection.map_err(failed)?;
        receivers.spawn(receive(connection, stream(receiver), receivers.context()));
    }
    Ok(receivers)
}

async fn receive(
    mut connection: RedisConnection,
    stream: String,
    context: ReceiverContext,
) -> io::Result<Vec<Arrival>> {
    let wait_ms = ACK_INTERVAL.as_millis().to_string();
    let head = ["XREADGROUP", "GROUP", GROUP, "reader", "COUNT", READ_MAX, "BLOCK", &wait_ms];
    let read = RedisCommand::new(&[head.as_slice(), &["STREAMS", &stream, ">"]].concat());
    let (mut arrivals, mut unacknowledged) = (Vec::new(), Vec::new());
    let mut last_acknowledged = Instant::now();
    loop {
        let is_last = context.is_closing();
        let entries = read_entries(&connection.call(&read).await?)?;
        let arrived_ns = message::clock_ns(Instant::now());
        let sent = entries.iter().filter_map(|(_, payload)| message::sent_ns(payload));
        arrivals.extend(sent.map(|sent_ns| Arrival { sent_ns, arrived_ns }));
        context.count(entries.len());
        unacknowledged.extend(entries.into_iter().map(|(id, _)| id));
        let is_due = is_last || last_acknowledged.elapsed() >= ACK_INTERVAL;
        if is_due && !unacknowledged.is_empty() {
            let head = ["XACK", &stream, GROUP].map(str::to_owned);
            let words = [head.as_slice(), &std::mem::take(&mut unacknowledged)].concat();
            connection.call(&RedisCommand::new(&words)).await?;
            last_acknowledged = Instant::now();
        }
        if is_last {
            return Ok(arrivals);
        }
    }
}

fn stream(receiver: usize) -> String {
    format!("inbox:{receiver}")
}

/// Ids and payloads of a read: `[[stream, [[id, [name, payload]], …]]]`, or nothing in time.
fn read_entries(reply: &Reply) -> io::Result<Vec<(String, Bytes)>> {
    let streams = match reply {
        Reply::Nil => return Ok(Vec::new()),
        Reply::Array(streams) => streams,
        _ => return Err(unexpected(reply)),
    };
    let entry = |entry: &Reply| {
        let [Reply::Bytes(id), Reply::Array(fields)] = entry.as_array()? else { return None };
        let [_, Reply::Bytes(payload)] = fields.as_slice() else { return None };
        Some((String::from_utf8_lossy(id).into_owned(), payload.clone()))
    };
    let entries = streams.iter().flat_map(|stream| match stream.as_array() {
        Some([_, Reply::Array(entries)]) => entries.as_slice(),
        _ => &[],
    });
    let entries: Option<Vec<_>> = entries.map(entry).collect();
    entries.ok_or_else(|| unexpected(reply))
}

fn unexpected(reply: &Reply) -> io::Error {
    io::Error::other(format!("unexpected answer of Redis: {reply:?}"))
}

fn failed(error: RequestError) -> io::Error {
    io::Error::other(format!("Redis: {error}"))
}

/// A command, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisCommand(Bytes);

impl RedisCommand {
    fn new<T: AsRef<[u8]>>(words: &[T]) -> Self {
        let mut bytes = BytesMut::from(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            let word = word.as_ref();
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        Self(bytes.freeze())
    }

    /// Adds a message to the stream of a receiver.
    pub fn add(receiver: usize, payload: &[u8]) -> Self {
        Self::new(&[b"XADD".as_slice(), stream(receiver).as_bytes(), b"*", b"m", payload])
    }
}

/// A connection with one command in flight.
pub struct RedisConnection {
    stream: TcpStream,
    buffer: BytesMut,
}

impl BenchRequest for RedisCommand {
    type Connection = RedisConnection;
}

impl BenchConnection<RedisCommand> for RedisConnection {
    async fn from_stream(stream: TcpStream) -> Result<Self, RequestError> {
        Ok(Self { stream, buffer: BytesMut::new() })
    }

    async fn is_open(&mut self) -> bool {
        let read = self.stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    async fn exchange(
        &mut self,
        command: RedisCommand,
    ) -> Result<(StatusCode, Bytes), RequestError> {
        match self.call(&command).await.map_err(RequestError::connection_failed)? {
            Reply::Error(text) => Ok((StatusCode::INTERNAL_SERVER_ERROR, text.into())),
            Reply::Bytes(id) => Ok((StatusCode::OK, id)),
            _ => Ok((StatusCode::OK, Bytes::new())),
        }
    }
}

impl RedisConnection {
    async fn call(&mut self, command: &RedisCommand) -> io::Result<Reply> {
        self.stream.write_all(&command.0).await?;
        loop {
            if let Some((reply, length)) = Reply::parse(&self.buffer)? {
                self.buffer.advance(length);
                return Ok(reply);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::Error::other("Redis closed the connection"));
            }
        }
    }
}

/// A reply (RESP 2).
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    Text(String),
    Error(String),
    Number(i64),
    Bytes(Bytes),
    Array(Vec<Reply>),
    Nil,
}

impl Reply {
    fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The first reply in these bytes and its length; `None` until it is complete.
    fn parse(bytes: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let invalid = || io::Error::other("Redis sent an invalid answer");
        let text = str::from_utf8(bytes.get(1..end).ok_or_else(invalid)?).map_err(|_| invalid())?;
        let (number, after) = (text.parse::<i64>(), end + 2);
        let reply = match bytes[0] {
            b'+' => Self::Text(text.to_owned()),
            b'-' => Self::Error(text.to_owned()),
            b':' => Self::Number(number.map_err(|_| invalid())?),
            b'$' | b'*' if number == Ok(-1) => Self::Nil,
            b'$' => {
                let length =
                    number.ok().and_then(|n| usize::try_from(n).ok()).ok_or_else(invalid)?;
                let Some(value) = bytes.get(after..after + length + 2) else { return Ok(None) };
                let value = Bytes::copy_from_slice(&value[..length]);
                return Ok(Some((Self::Bytes(value), after + length + 2)));
            }
            b'*' => {
                let (mut values, mut at) = (Vec::new(), after);
                for _ in 0..number.map_err(|_| invalid())? {
                    let Some((value, length)) = Self::parse(&bytes[at..])? else { return Ok(None) };
                    values.push(value);
                    at += length;
                }
                return Ok(Some((Self::Array(values), at)));
            }
            _ => return Err(invalid()),
        };
        Ok(Some((reply, after)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_words() {
        let command = RedisCommand::add(7, b"a\r\nb");
        let expected =
            "*5\r\n$4\r\nXADD\r\n$7\r\ninbox:7\r\n$1\r\n*\r\n$1\r\nm\r\n$4\r\na\r\nb\r\n";
        assert_eq!(command, RedisCommand(expected.into()));
    }

    #[test]
    fn a_read_is_parsed_once_it_is_complete() {
        let wire = b"*1\r\n*2\r\n$7\r\ninbox:0\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nm\r\n$4\r\na\r\nb\r\n+OK\r\n";
        let whole = wire.len() - 5;
        for some in 0..whole {
            assert_eq!(Reply::parse(&wire[..some]).unwrap(), None, "{some}");
        }
        let (reply, length) = Reply::parse(wire).unwrap().unwrap();
        assert_eq!(length, whole);
        let entries = read_entries(&reply).unwrap();
        assert_eq!(entries, [("1-0".to_owned(), Bytes::from_static(b"a\r\nb"))]);
        assert_eq!(Reply::parse(&wire[whole..]).unwrap(), Some((Reply::Text("OK".to_owned()), 5)));
    }

    #[test]
    fn nothing_in_time_is_no_entry_and_anything_else_is_an_error() {
        let parse = |text: &str| Reply::parse(text.as_bytes()).unwrap().unwrap().0;
        assert_eq!(read_entries(&parse("*-1\r\n")).unwrap(), []);
        assert_eq!(parse(":-3\r\n"), Reply::Number(-3));
        assert_eq!(parse("$-1\r\n"), Reply::Nil);
        assert!(read_entries(&parse("-NOGROUP no such group\r\n")).is_err());
        assert!(Reply::parse(b"?\r\n").is_err());
        assert!(Reply::parse(b"$x\r\n").is_err());
        assert!(Reply::parse(b"\r\n").is_err());
    }
}
