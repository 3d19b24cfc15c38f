//! Open inboxes: streams that are read at full speed, or held open and never read.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::arrivals::{ACK_INTERVAL, Arrival, ReceiverContext, Receivers};
use crate::connection::{BenchConnection, RawConnection, RawRequest};
use crate::hub::json_headers;
use crate::measurement::RequestError;
use crate::message;
use crate::relay::RelayAgent;

/// Inboxes opened at once.
const OPEN_CONCURRENCY: usize = 128;
/// Time limit for opening one inbox.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 16 * 1_024;
/// The smallest receive buffer a system allows.
const STALLED_BYTES: u32 = 4 * 1_024;

/// Opens the inbox of each agent, from its last position, and acknowledges what is read.
pub fn open_inboxes(hub: SocketAddr, owners: &[RelayAgent]) -> io::Result<Receivers> {
    let mut receivers = Receivers::new()?;
    for some in owners.chunks(OPEN_CONCURRENCY) {
        let opened = some.iter().map(|owner| InboxStream::open(hub, owner, receivers.context()));
        for stream in receivers.runtime.block_on(try_join_all(opened))? {
            receivers.spawn(stream.follow(hub));
        }
    }
    Ok(receivers)
}

/// One open inbox.
struct InboxStream {
    owner: RelayAgent,
    stream: TcpStream,
    events: EventParser,
    arrivals: Vec<Arrival>,
    context: ReceiverContext,
    /// The position it was opened at, which is acknowledged already.
    opened_at: u64,
}

impl InboxStream {
    async fn open(
        hub: SocketAddr,
        owner: &RelayAgent,
        context: ReceiverContext,
    ) -> io::Result<Self> {
        let opening = async {
            let mut stream = TcpStream::connect(hub).await?;
            let from = owner.read_to.load(Ordering::Relaxed);
            let resume =
                if from > 0 { format!("last-event-id: {from}\r\n") } else { String::new() };
            stream.write_all(request(hub, owner, "?ack=explicit", &resume).as_bytes()).await?;
            let rest = read_head(&mut stream).await?;
            let mut opened = Self {
                owner: owner.clone(),
                stream,
                events: EventParser::default(),
                arrivals: Vec::new(),
                context,
                opened_at: from,
            };
            let mut connected = opened.feed(&rest);
            while !connected {
                let mut bytes = [0; READ_BYTES];
                let length = opened.stream.read(&mut bytes).await?;
                if length == 0 {
                    return Err(io::Error::other("the inbox closed before its first event"));
                }
                connected = opened.feed(&bytes[..length]);
            }
            Ok(opened)
        };
        tokio::time::timeout(OPEN_TIMEOUT, opening).await?
    }

    /// Reads until the receivers are closed or the hub ends the stream. Acknowledges in a task of its
    /// own, so that reading does not wait for it.
    async fn follow(mut self, hub: SocketAddr) -> io::Result<Vec<Arrival>> {
        let (read_to, positions) = watch::channel(self.opened_at);
        let acknowledging = tokio::spawn(acknowledge(hub, self.owner.key.clone(), positions));
        let mut closing = self.context.closing.clone();
        let mut bytes = vec![0; READ_BYTES];
        loop {
            let position = self.owner.read_to.load(Ordering::Relaxed);
            read_to.send_if_modified(|last| std::mem::replace(last, position) != position);
            let length = tokio::select! {
                biased;
                read = self.stream.read(&mut bytes) => read.unwrap_or(0),
                _ = closing.wait_for(|closing| *closing) => 0,
            };
            if length == 0 {
                break;
            }
            self.feed(&bytes[..length]);
        }
        drop(read_to);
        acknowledging.await.map_err(io::Error::other)??;
        Ok(self.arrivals)
    }

    /// Parses bytes and returns whether they contain the first event.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        let arrived_ns = message::clock_ns(Instant::now());
        let (before, mut last, mut connected) = (self.arrivals.len(), None, false);
        self.events.read(bytes, |event| match event {
            InboxEvent::Connected => connected = true,
            InboxEvent::Message { id, sent_ns } => {
                last = Some(id);
                self.arrivals.push(Arrival { sent_ns, arrived_ns });
            }
        });
        if let Some(id) = last {
            self.owner.read_to.store(id, Ordering::Relaxed);
            self.context.count(self.arrivals.len() - before);
        }
        connected
    }
}

/// Acknowledges positions as they come, in intervals: a position includes all before it (relay 2.5).
/// Ends after the last.
async fn acknowledge(
    hub: SocketAddr,
    key: String,
    mut positions: watch::Receiver<u64>,
) -> io::Result<()> {
    let headers = json_headers(&key);
    let mut connection: Option<RawConnection> = None;
    while positions.changed().await.is_ok() {
        tokio::time::sleep(ACK_INTERVAL).await;
        let up_to = *positions.borrow_and_update();
        let body = format!(r#"{{"up_to":{up_to}}}"#);
        let request = RawRequest::post(hub, "/relay/agent/inbox/ack", &headers, body.as_bytes());
        let open = match connection.take() {
            Some(open) => open,
            None => RawConnection::connect(hub).await.map_err(not_acknowledged)?,
        };
        let (status, answer) =
            connection.insert(open).exchange(request).await.map_err(not_acknowledged)?;
        if !status.is_success() {
            return Err(not_acknowledged(RequestError::unexpected_answer(status, &answer)));
        }
    }
    Ok(())
}

fn not_acknowledged(error: RequestError) -> io::Error {
    io::Error::other(format!("messages could not be acknowledged: {error}"))
}

/// Inboxes that are open and never read; they close when this is dropped.
pub struct StalledInboxes {
    _streams: Vec<TcpStream>,
    _runtime: Runtime,
}

impl StalledInboxes {
    /// Opens the inbox of each agent from the first unacknowledged message and never reads it.
    pub fn open(hub: SocketAddr, owners: &[RelayAgent]) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stalled")
            .enable_all()
            .build()?;
        let mut streams = Vec::with_capacity(owners.len());
        for some in owners.chunks(OPEN_CONCURRENCY) {
            let opened = some.iter().map(|owner| async move {
                let socket = TcpSocket::new_v4()?;
                socket.set_recv_buffer_size(STALLED_BYTES)?;
                let mut stream = socket.connect(hub).await?;
                let request = request(hub, owner, "?ack=explicit", "");
                stream.write_all(request.as_bytes()).await?;
                // The first bytes show that the hub has started to send; they stay unread.
                stream.peek(&mut [0]).await?;
                Ok::<_, io::Error>(stream)
            });
            streams.extend(runtime.block_on(try_join_all(opened))?);
        }
        Ok(Self { _streams: streams, _runtime: runtime })
    }
}

fn request(hub: SocketAddr, owner: &RelayAgent, query: &str, more: &str) -> String {
    let key = &owner.key;
    format!(
        "GET /relay/agent/inbox{query} HTTP/1.1\r\nhost: {hub}\r\nauthorization: Bearer {key}\r\naccept: text/event-stream\r\n{more}\r\n"
    )
}

/// Reads the response head and returns the bytes after it.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::Error::other("the hub closed the connection of an inbox"));
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") || !head.contains("transfer-encoding: chunked") {
        let answer = String::from_utf8_lossy(&bytes).chars().take(300).collect::<String>();
        return Err(io::Error::other(format!("the inbox did not open: {answer}")));
    }
    Ok(bytes.split_off(end))
}

/// An event of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InboxEvent {
    /// The inbox is open.
    Connected,
    /// A message arrived. `sent_ns` is when it was sent, on the benchmark's clock.
    Message { id: u64, sent_ns: u64 },
}

/// Parses an inbox stream as it arrives: chunks, lines, events (relay 2.5). Reads only what the
/// benchmark counts, with less work than a full parser: the position, and when a message was sent.
#[derive(Debug, Default)]
struct EventParser {
    chunk: ChunkState,
    /// The start of a line whose end has not arrived yet.
    line: Vec<u8>,
    id: u64,
    connected: bool,
}

/// Where in the chunked body the next byte belongs.
#[derive(Clone, Copy, Debug)]
enum ChunkState {
    /// In the line with the length of the next chunk.
    Size {
        size: usize,
        ended: bool,
    },
    Data {
        left: usize,
    },
    /// In the line break after a chunk.
    Break,
}

impl Default for ChunkState {
    fn default() -> Self {
        Self::Size { size: 0, ended: false }
    }
}

impl EventParser {
    /// Parses more bytes and passes each event to a callback.
    fn read(&mut self, mut bytes: &[u8], mut handle: impl FnMut(InboxEvent)) {
        while let Some(first) = bytes.first() {
            let taken = match self.chunk {
                ChunkState::Size { size, ended } => {
                    self.chunk = after_size(*first, size, ended);
                    1
                }
                ChunkState::Break => {
                    if *first == b'\n' {
                        self.chunk = ChunkState::default();
                    }
                    1
                }
                ChunkState::Data { left } => {
                    let taken = left.min(bytes.len());
                    self.text(&bytes[..taken], &mut handle);
                    self.chunk = match left - taken {
                        0 => ChunkState::Break,
                        left => ChunkState::Data { left },
                    };
                    taken
                }
            };
            bytes = &bytes[taken..];
        }
    }

    fn text(&mut self, mut text: &[u8], handle: &mut impl FnMut(InboxEvent)) {
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = text.split_at(end);
            text = &rest[1..];
            if self.line.is_empty() {
                self.line(line, handle);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.line(&whole, handle);
                whole.clear();
                self.line = whole;
            }
        }
        self.line.extend_from_slice(text);
    }

    fn line(&mut self, line: &[u8], handle: &mut impl FnMut(InboxEvent)) {
        if let Some(id) = line.strip_prefix(b"id:") {
            let id = str::from_utf8(id).ok().and_then(|id| id.trim().parse().ok());
            self.id = id.unwrap_or(self.id);
        } else if let Some(name) = line.strip_prefix(b"event:") {
            self.connected = name.trim_ascii() == b"connected";
        } else if line.starts_with(b"data:") {
            if std::mem::take(&mut self.connected) {
                handle(InboxEvent::Connected);
            } else if let Some(sent_ns) = message::sent_ns(line) {
                handle(InboxEvent::Message { id: self.id, sent_ns });
            }
        }
    }
}

/// Reads one more byte of a chunk's size line. Text after a `;` is ignored.
fn after_size(byte: u8, size: usize, ended: bool) -> ChunkState {
    match (byte, char::from(byte).to_digit(16)) {
        (b'\n', _) => ChunkState::Data { left: size },
        (_, Some(digit)) if !ended => {
            ChunkState::Size { size: size.saturating_mul(16).saturating_add(digit as usize), ended }
        }
        _ => ChunkState::Size { size, ended: true },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::mpsc;

    use super::*;

    const HEAD: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    const HELLO: &str = "retry: 2000\nid: 0\nevent: connected\ndata: {}\n\n";

    /// Answers each request on a connection with that connection's response, and passes on the
    /// requests. Streams stay open.
    fn hub(answers: Vec<String>) -> (SocketAddr, mpsc::Receiver<String>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let sender = sender.clone();
                std::thread::spawn(move || {
                    let mut request = [0; 4_096];
                    while let Ok(length @ 1..) = stream.read(&mut request) {
                        let request = String::from_utf8_lossy(&request[..length]).into_owned();
                        // The test may have seen enough.
                        let _ = sender.send(request);
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                });
            }
        });
        (address, requests)
    }

    fn chunk(text: &str) -> String {
        format!("{:x}\r\n{text}\r\n", text.len())
    }

    fn envelope(id: u64) -> String {
        chunk(&format!("id: {id}\nevent: message\ndata: {{\"x\":\"#000000000000007 ns\"}}\n\n"))
    }

    fn owner() -> RelayAgent {
        RelayAgent::new("a@chorus".to_owned(), "ca_0f".to_owned())
    }

    #[test]
    fn messages_are_counted_and_acknowledged_and_the_next_stream_continues_after_them() {
        let opened = format!("{HEAD}{}", chunk(HELLO));
        let acknowledged = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned();
        let answers = vec![format!("{opened}{}{}", envelope(1), envelope(2)), acknowledged, opened];
        let (address, requests) = hub(answers);
        let owners = [owner()];
        let inboxes = open_inboxes(address, &owners).unwrap();
        inboxes.wait_for(2);
        let arrivals = inboxes.close().unwrap();
        assert_eq!(arrivals.iter().map(|envelope| envelope.sent_ns).collect::<Vec<_>>(), [7, 7]);
        assert_eq!(owners[0].read_to.load(Ordering::Relaxed), 2);
        let first = requests.recv().unwrap();
        assert!(first.starts_with("GET /relay/agent/inbox?ack=explicit HTTP/1.1\r\n"), "{first}");
        assert!(first.contains("\r\nauthorization: Bearer ca_0f\r\n"), "{first}");
        assert!(!first.contains("last-event-id"), "{first}");
        // One acknowledgement may cover both messages.
        let last = requests.try_iter().last().unwrap();
        assert!(last.starts_with("POST /relay/agent/inbox/ack HTTP/1.1\r\n"), "{last}");
        assert!(last.ends_with(r#"{"up_to":2}"#), "{last}");

        let none = open_inboxes(address, &owners).unwrap().close().unwrap();
        assert_eq!(none, []);
        let second = requests.recv().unwrap();
        assert!(second.contains("\r\nlast-event-id: 2\r\n"), "{second}");
    }

    #[test]
    fn a_refused_acknowledgement_is_an_error() {
        let opened = format!("{HEAD}{}{}", chunk(HELLO), envelope(1));
        let refused = "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy".to_owned();
        let (address, _requests) = hub(vec![opened, refused]);
        let inboxes = open_inboxes(address, &[owner()]).unwrap();
        inboxes.wait_for(1);
        let error = inboxes.close().unwrap_err().to_string();
        assert!(error.contains("could not be acknowledged: 503 busy"), "{error}");
    }

    #[test]
    fn an_inbox_that_does_not_open_is_an_error() {
        let refused = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno".to_owned();
        let (address, _requests) = hub(vec![refused]);
        let error = open_inboxes(address, &[owner()]).err().unwrap().to_string();
        assert!(error.contains("401 Unauthorized"), "{error}");
    }

    #[test]
    fn a_stalled_reader_requests_everything_and_reads_nothing() {
        let (address, requests) = hub(vec![format!("{HEAD}{}", chunk(HELLO))]);
        let stalled = StalledInboxes::open(address, &[owner()]).unwrap();
        assert!(
            requests.recv().unwrap().starts_with("GET /relay/agent/inbox?ack=explicit HTTP/1.1")
        );
        drop(stalled);
    }

    const OPENED: &str =
        "retry: 2000\nid: 41\nevent: connected\ndata: {\"message\":\"Inbox #1\"}\n\n";
    const MESSAGES: &str = "id: 42\nevent: message\ndata: {\"x\":\"at #000000000001234 ns\"}\n\n: ping\n\nid:43\nevent: message\ndata: {\"x\":\"at #000000000005678 ns\"}\n\n";

    fn chunked(texts: &[&str]) -> Vec<u8> {
        let chunk = |text: &&str| format!("{:X};x=1f\r\n{text}\r\n", text.len());
        texts.iter().map(chunk).collect::<String>().into_bytes()
    }

    fn parse(pieces: &[&[u8]]) -> Vec<InboxEvent> {
        let (mut events, mut parsed) = (EventParser::default(), Vec::new());
        for piece in pieces {
            events.read(piece, |event| parsed.push(event));
        }
        parsed
    }

    fn all() -> Vec<InboxEvent> {
        let message = |id, sent_ns| InboxEvent::Message { id, sent_ns };
        vec![InboxEvent::Connected, message(42, 1_234), message(43, 5_678)]
    }

    #[test]
    fn messages_are_parsed_with_their_position_and_time() {
        assert_eq!(parse(&[&chunked(&[OPENED, MESSAGES])]), all());
    }

    #[test]
    fn it_does_not_matter_where_chunks_and_reads_end() {
        let text = format!("{OPENED}{MESSAGES}");
        for cut in 1..text.len() - 1 {
            let wire = chunked(&[&text[..cut], &text[cut..]]);
            assert_eq!(parse(&[&wire]), all(), "chunks cut at {cut}");
        }
        let wire = chunked(&[OPENED, MESSAGES]);
        for cut in 0..wire.len() {
            assert_eq!(parse(&[&wire[..cut], &wire[cut..]]), all(), "reads cut at {cut}");
        }
        let single: Vec<&[u8]> = wire.chunks(1).collect();
        assert_eq!(parse(&single), all());
    }
}
