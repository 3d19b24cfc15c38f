//! Open inboxes: streams that are read at full speed, or held open and never read.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::event_parser::{EventParser, InboxEvent};
use super::message;
use super::relay_agent::RelayAgent;

/// Inboxes opened at once.
const OPEN_CONCURRENCY: usize = 128;
/// Time limit for opening one inbox.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for accepted messages before they count as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 16 * 1_024;
/// The smallest receive buffer a system allows.
const STALLED_BYTES: u32 = 4 * 1_024;

/// A message that arrived, on the benchmark's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub sent_ns: u64,
    pub arrived_ns: u64,
}

/// Inboxes that are open and being read, on one thread.
pub struct OpenInboxes {
    runtime: Runtime,
    count: Arc<AtomicU64>,
    close: watch::Sender<bool>,
    streams: Vec<JoinHandle<Vec<Arrival>>>,
}

impl OpenInboxes {
    /// Opens the inbox of each agent, from its last position.
    pub fn open(hub: SocketAddr, owners: &[RelayAgent]) -> io::Result<Self> {
        let runtime = one_thread("inboxes")?;
        let (close, closing) = watch::channel(false);
        let count = Arc::new(AtomicU64::new(0));
        let mut streams = Vec::with_capacity(owners.len());
        for some in owners.chunks(OPEN_CONCURRENCY) {
            let opened = some.iter().map(|owner| InboxStream::open(hub, owner, &count));
            for stream in runtime.block_on(try_join_all(opened))? {
                streams.push(runtime.spawn(stream.follow(closing.clone())));
            }
        }
        Ok(Self { runtime, count, close, streams })
    }

    /// Waits until this many messages have arrived, or no more arrive.
    pub fn wait_for(&self, letters: u64) {
        let (mut seen, mut since) = (0, Instant::now());
        while seen < letters && since.elapsed() < IDLE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
            let now = self.count.load(Ordering::Relaxed);
            if now > seen {
                (seen, since) = (now, Instant::now());
            }
        }
    }

    /// Closes all inboxes and returns the arrivals.
    pub fn close(self) -> io::Result<Vec<Arrival>> {
        self.close.send_replace(true);
        let mut all = Vec::new();
        for stream in self.streams {
            all.extend(self.runtime.block_on(stream).map_err(io::Error::other)?);
        }
        Ok(all)
    }
}

/// One open inbox.
struct InboxStream {
    owner: RelayAgent,
    stream: TcpStream,
    events: EventParser,
    arrivals: Vec<Arrival>,
    count: Arc<AtomicU64>,
}

impl InboxStream {
    async fn open(hub: SocketAddr, owner: &RelayAgent, count: &Arc<AtomicU64>) -> io::Result<Self> {
        let opening = async {
            let mut stream = TcpStream::connect(hub).await?;
            let from = owner.read_to.load(Ordering::Relaxed);
            let resume =
                if from > 0 { format!("last-event-id: {from}\r\n") } else { String::new() };
            stream.write_all(request(hub, owner, "", &resume).as_bytes()).await?;
            let rest = read_head(&mut stream).await?;
            let (events, count) = (EventParser::default(), Arc::clone(count));
            let mut opened =
                Self { owner: owner.clone(), stream, events, arrivals: Vec::new(), count };
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

    /// Reads until `closing` is set or the hub ends the stream.
    async fn follow(mut self, mut closing: watch::Receiver<bool>) -> Vec<Arrival> {
        let mut bytes = vec![0; READ_BYTES];
        loop {
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
        self.arrivals
    }

    /// Parses bytes and returns whether they contain the first event.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        let came_ns = message::clock_ns(Instant::now());
        let (before, mut last, mut connected) = (self.arrivals.len(), None, false);
        self.events.read(bytes, |event| match event {
            InboxEvent::Connected => connected = true,
            InboxEvent::Message { id, sent_ns } => {
                last = Some(id);
                self.arrivals.push(Arrival { sent_ns, arrived_ns: came_ns });
            }
        });
        if let Some(id) = last {
            self.owner.read_to.store(id, Ordering::Relaxed);
            let new = self.arrivals.len() - before;
            self.count.fetch_add(new as u64, Ordering::Relaxed);
        }
        connected
    }
}

/// Inboxes that are open and never read; they close when this is dropped.
pub struct StalledInboxes {
    _streams: Vec<TcpStream>,
    _runtime: Runtime,
}

impl StalledInboxes {
    /// Opens the inbox of each agent from the first unacknowledged message and never reads it.
    pub fn open(hub: SocketAddr, owners: &[RelayAgent]) -> io::Result<Self> {
        let runtime = one_thread("stalled")?;
        let mut streams = Vec::with_capacity(owners.len());
        for some in owners.chunks(OPEN_CONCURRENCY) {
            let opened = some.iter().map(|owner| async move {
                let socket = TcpSocket::new_v4()?;
                socket.set_recv_buffer_size(STALLED_BYTES)?;
                let mut stream = socket.connect(hub).await?;
                let asked = request(hub, owner, "?ack=explicit", "");
                stream.write_all(asked.as_bytes()).await?;
                // The first bytes show that the hub has started to send; they stay unread.
                stream.peek(&mut [0]).await?;
                Ok::<_, io::Error>(stream)
            });
            streams.extend(runtime.block_on(try_join_all(opened))?);
        }
        Ok(Self { _streams: streams, _runtime: runtime })
    }
}

fn one_thread(name: &str) -> io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).thread_name(name).enable_all().build()
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
        let said = String::from_utf8_lossy(&bytes).chars().take(300).collect::<String>();
        return Err(io::Error::other(format!("the inbox did not open: {said}")));
    }
    Ok(bytes.split_off(end))
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

    /// Answers each connection with the next response, and passes on the requests.
    fn hub(answers: Vec<String>) -> (SocketAddr, mpsc::Receiver<String>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, asked) = mpsc::channel();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4_096];
                let length = stream.read(&mut request).unwrap();
                tell.send(String::from_utf8_lossy(&request[..length]).into_owned()).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                held.push(stream);
            }
        });
        (address, asked)
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
    fn letters_are_counted_and_the_next_stream_goes_on_after_them() {
        let opened = format!("{HEAD}{}", chunk(HELLO));
        let (address, asked) = hub(vec![format!("{opened}{}{}", envelope(1), envelope(2)), opened]);
        let owners = [owner()];
        let inboxes = OpenInboxes::open(address, &owners).unwrap();
        inboxes.wait_for(2);
        let arrivals = inboxes.close().unwrap();
        assert_eq!(arrivals.iter().map(|envelope| envelope.sent_ns).collect::<Vec<_>>(), [7, 7]);
        assert_eq!(owners[0].read_to.load(Ordering::Relaxed), 2);
        let first = asked.recv().unwrap();
        assert!(first.starts_with("GET /relay/agent/inbox HTTP/1.1\r\n"), "{first}");
        assert!(first.contains("\r\nauthorization: Bearer ca_0f\r\n"), "{first}");
        assert!(!first.contains("last-event-id"), "{first}");

        let none = OpenInboxes::open(address, &owners).unwrap().close().unwrap();
        assert_eq!(none, []);
        let second = asked.recv().unwrap();
        assert!(second.contains("\r\nlast-event-id: 2\r\n"), "{second}");
    }

    #[test]
    fn an_inbox_that_does_not_open_is_told() {
        let refused = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno".to_owned();
        let (address, _asked) = hub(vec![refused]);
        let told = OpenInboxes::open(address, &[owner()]).err().unwrap().to_string();
        assert!(told.contains("401 Unauthorized"), "{told}");
    }

    #[test]
    fn a_stalled_reader_asks_for_everything_and_takes_nothing() {
        let (address, asked) = hub(vec![format!("{HEAD}{}", chunk(HELLO))]);
        let stalled = StalledInboxes::open(address, &[owner()]).unwrap();
        assert!(asked.recv().unwrap().starts_with("GET /relay/agent/inbox?ack=explicit HTTP/1.1"));
        drop(stalled);
    }
}
