//! Nodes over 127.0.0.1 with events that are only recorded.

mod exchange;
mod hostile;
mod limits;
mod modes;
mod reconnect;
mod throughput;

use std::future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rialto_core::answer::Answer;
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::codec::FRAME_BYTES_MAX;
use super::connection::Connection;
use super::tls::NodeTls;
use super::{HopOptions, TcpHop, WIRE_VERSION};
use crate::cluster::frame::{
    Ask, BatchRecord, CallFuture, CommittedBatch, Frame, Head, Hello, Hop, HopEvents, Notes, Reply,
    ReplyResult,
};
use crate::cluster::{Lease, NodeId};
use crate::fixtures::send_message;
use crate::secret::HubSecret;
use crate::store::log::Place;

const HUB: [u8; 16] = [7; 16];
const WAIT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Connected(u64, Head),
    Refused(u64),
    Replied(u64, Reply),
    Announced(u64, Head),
    Received(CommittedBatch),
    Asked(u64, NodeId, Ask),
    ReadersTold(Vec<AgentId>),
    Noted(NodeId, Notes),
    Left(NodeId),
}

/// How a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallAnswer {
    Echo,
    Nothing,
    Never,
}

struct RecordedEvents {
    sender: mpsc::UnboundedSender<Event>,
    /// 0 for none.
    leading: AtomicU64,
    is_full: AtomicBool,
    call_answer: Mutex<CallAnswer>,
    head: Head,
}

impl RecordedEvents {
    fn record(&self, event: Event) {
        // The test may be over.
        let _ = self.sender.send(event);
    }
}

impl HopEvents for RecordedEvents {
    fn head(&self) -> Head {
        self.head
    }

    fn leading_epoch(&self) -> Option<u64> {
        Some(self.leading.load(Ordering::SeqCst)).filter(|epoch| *epoch != 0)
    }

    fn connected(&self, epoch: u64, head: Head) {
        self.record(Event::Connected(epoch, head));
    }

    fn refused(&self, epoch: u64) {
        self.record(Event::Refused(epoch));
    }

    fn replied(&self, epoch: u64, reply: Reply) {
        self.record(Event::Replied(epoch, reply));
    }

    fn announced(&self, epoch: u64, head: Head) {
        self.record(Event::Announced(epoch, head));
    }

    fn received(&self, batch: CommittedBatch) {
        self.record(Event::Received(batch));
    }

    fn readers_told(&self, agents: Vec<AgentId>) {
        self.record(Event::ReadersTold(agents));
    }

    fn asked(&self, epoch: u64, node: NodeId, ask: Ask) -> bool {
        if self.is_full.load(Ordering::SeqCst) {
            return false;
        }
        self.record(Event::Asked(epoch, node, ask));
        true
    }

    fn noted(&self, node: NodeId, notes: Notes) {
        self.record(Event::Noted(node, notes));
    }

    fn called(&self, body: Vec<u8>) -> CallFuture {
        match *self.call_answer.lock() {
            CallAnswer::Echo => Box::pin(future::ready(Some(body))),
            CallAnswer::Nothing => Box::pin(future::ready(None)),
            CallAnswer::Never => Box::pin(future::pending()),
        }
    }

    fn left(&self, node: NodeId) {
        self.record(Event::Left(node));
    }
}

/// A node without an engine.
struct TestNode {
    id: NodeId,
    hop: Arc<TcpHop>,
    address: SocketAddr,
    events: Arc<RecordedEvents>,
    received: mpsc::UnboundedReceiver<Event>,
}

fn secret(byte: u8) -> HubSecret {
    HubSecret::from_bytes([byte; 32])
}

impl TestNode {
    fn start(id: u64) -> Self {
        Self::with(id, HUB, &secret(1))
    }

    fn with(id: u64, hub: [u8; 16], secret: &HubSecret) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let events = Arc::new(RecordedEvents {
            sender,
            leading: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            call_answer: Mutex::new(CallAnswer::Echo),
            head: Head { number: id * 100, now: Timestamp(id as i64) },
        });
        let id = NodeId(id);
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = HopOptions { listen, hub, node: id, secret };
        let (hop, address) = TcpHop::start(options, events.clone()).expect("it listens");
        Self { id, hop, address, events, received }
    }

    fn lead(&self, epoch: u64) {
        self.events.leading.store(epoch, Ordering::SeqCst);
        self.hop.lead(epoch);
    }

    fn follow(&self, epoch: u64, address: SocketAddr) {
        self.events.leading.store(0, Ordering::SeqCst);
        let address = address.to_string();
        self.hop.follow(&Lease { epoch, node: NodeId(1), address, ..Lease::default() });
    }

    /// The next event but heads, which come at any time.
    async fn next(&mut self) -> Event {
        loop {
            match timeout(WAIT, self.received.recv()).await.expect("an event").expect("it runs") {
                Event::Announced(..) => {}
                event => return event,
            }
        }
    }

    /// The events of a time, but heads.
    async fn events_for(&mut self, duration: Duration) -> Vec<Event> {
        let mut events = Vec::new();
        let collect = async {
            while let Some(event) = self.received.recv().await {
                events.push(event);
            }
        };
        let _ = timeout(duration, collect).await;
        events.retain(|event| !matches!(event, Event::Announced(..)));
        events
    }

    async fn next_reply(&mut self) -> Reply {
        match self.next().await {
            Event::Replied(_, reply) => reply,
            other => panic!("expected a reply, got {other:?}"),
        }
    }

    async fn next_ask(&mut self) -> Ask {
        match self.next().await {
            Event::Asked(_, _, ask) => ask,
            other => panic!("expected a command, got {other:?}"),
        }
    }
}

fn place(number: u64) -> Place {
    Place { number, ..Place::default() }
}

/// A writer of this epoch, and a node that is connected to it.
async fn connected_pair(epoch: u64) -> (TestNode, TestNode) {
    let (writer, mut follower) = (TestNode::start(1), TestNode::start(2));
    writer.lead(epoch);
    follower.follow(epoch, writer.address);
    assert_eq!(follower.next().await, Event::Connected(epoch, writer.events.head));
    (writer, follower)
}

fn ask(number: u64, text: &str) -> Ask {
    Ask { number, low: 0, envelope: send_message(AgentId(1), AgentId(2), text).into() }
}

fn done(number: u64) -> Reply {
    Reply { number, place: number, result: ReplyResult::Answer(Answer::Done) }
}

fn hello(node: u64, epoch: u64) -> Hello {
    let head = Head { number: 0, now: Timestamp(0) };
    Hello { hub: HUB, wire: WIRE_VERSION, node: NodeId(node), epoch, head }
}

/// A connection that has the key, and that sends whatever a test wants.
async fn connect_by_hand(address: SocketAddr) -> Connection {
    let tls = NodeTls::new(&secret(1)).expect("a key");
    let socket = TcpStream::connect(address).await.expect("it listens");
    Connection::new(tls.connect(socket).await.expect("the keys are the same"))
}

/// The same, after both sides sent `Hello`.
async fn say_hello(address: SocketAddr, node: u64, epoch: u64) -> Connection {
    let mut connection = connect_by_hand(address).await;
    connection.write_frame(&Frame::Hello(hello(node, epoch))).await.expect("it is written");
    match connection.input.read_frame(FRAME_BYTES_MAX).await {
        Ok(Frame::Hello(theirs)) => assert_eq!(theirs.epoch, epoch),
        other => panic!("expected a Hello, got {other:?}"),
    }
    connection
}

/// Waits until the other side closes a connection.
async fn assert_closed(connection: &mut Connection) {
    let read = async { while connection.input.read_frame(FRAME_BYTES_MAX).await.is_ok() {} };
    timeout(WAIT, read).await.expect("the connection is closed");
}
