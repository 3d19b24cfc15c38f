//! The connections between the nodes of a cluster: TCP and TLS, on a port of their own.
//!
//! The writer accepts one connection of each other node, and every other node keeps one to the
//! writer. A connection belongs to one epoch: both sides say it in their `Hello`, and the connection
//! ends with the epoch. Nothing is kept across connections; a node asks again when it is connected
//! again.

mod client;
mod codec;
mod connection;
mod outgoing;
#[cfg(any(test, feature = "testkit"))]
pub mod proxy;
mod server;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io};

use parking_lot::Mutex;
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

pub use client::{
    BACKOFF_MAX, CALL_TIMEOUT, CALLS_MAX, CONNECT_TIMEOUT, REFUSED_AFTER_CLOSES, REFUSED_WITHIN,
};
pub use codec::{FRAME_BYTES_MAX, HELLO_BYTES_MAX};
pub use connection::{HANDSHAKE_TIMEOUT, IDLE_FRAME_AFTER, SILENCE_MAX};
pub use outgoing::{OUTGOING_BYTES_MAX, UNSENT_BATCH_BYTES_MAX};
pub use server::{FOLLOWERS_MAX, LEAD_WAIT_MAX, UNANSWERED_MAX, UNAUTHENTICATED_MAX};

use self::client::WriterConnection;
use self::codec::encode_frame;
use self::server::FollowerConnection;
use self::tls::NodeTls;
use super::frame::{
    Ask, BatchRecord, CallFuture, CommittedBatch, Frame, Head, Hello, Hop, HopEvents, Notes, Reply,
};
use super::{Lease, NodeId};
use crate::secret::HubSecret;
use crate::store::log::Place;

/// The version of the frames. `Hello` is the same in all versions.
pub const WIRE_VERSION: u16 = 1;

/// The most bytes of a batch that is sent to other nodes. They read a longer one from the database.
pub const SENT_BATCH_BYTES_MAX: usize = 1 << 20;

/// Where a node listens, and what it says of itself.
pub struct HopOptions<'a> {
    pub listen: SocketAddr,
    /// Identifies the hub, so that nodes of two hubs never talk to each other.
    pub hub: [u8; 16],
    pub node: NodeId,
    /// All nodes of a hub have the same; the key that they show to each other is derived from it.
    pub secret: &'a HubSecret,
}

/// The connections of a node over TCP. They end when this is stopped or dropped.
pub struct TcpHop {
    connections: Arc<Connections>,
    tasks: [AbortHandle; 2],
}

/// What the tasks of the connections share. The events are here and not in [`TcpHop`], so that they
/// may own the hop: when it is stopped, the tasks end and let go of the events.
struct TaskContext {
    hub: [u8; 16],
    node: NodeId,
    tls: NodeTls,
    events: Arc<dyn HopEvents>,
    connections: Arc<Connections>,
}

/// The connections that are open, and those that may be.
struct Connections {
    /// Changed only while `open` is locked.
    mode: watch::Sender<Mode>,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    writer: Option<Arc<WriterConnection>>,
    /// Every one is removed by its own task, when all of its frames were handled.
    followers: HashMap<NodeId, Arc<FollowerConnection>>,
}

/// Which connections a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    /// Neither a writer to follow nor an epoch to write in is known yet.
    Idle,
    Following(Writer),
    Leading {
        epoch: u64,
    },
    Stopped,
}

/// The writer that a node follows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Writer {
    epoch: u64,
    address: Arc<str>,
}

impl TcpHop {
    /// Listens for other nodes. Must be called on a tokio runtime, which then runs the connections.
    /// Returns the address at which it listens, too.
    pub fn start(
        options: HopOptions<'_>,
        events: Arc<dyn HopEvents>,
    ) -> io::Result<(Arc<Self>, SocketAddr)> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = std::net::TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;

        let (mode, _) = watch::channel(Mode::Idle);
        let connections = Arc::new(Connections { mode, open: Mutex::default() });
        let context = Arc::new(TaskContext {
            hub: options.hub,
            node: options.node,
            tls: NodeTls::new(options.secret).map_err(io::Error::other)?,
            events,
            connections: connections.clone(),
        });
        let tasks = [
            runtime.spawn(server::accept_connections(context.clone(), listener)).abort_handle(),
            runtime.spawn(client::keep_connected(context)).abort_handle(),
        ];
        Ok((Arc::new(Self { connections, tasks }), address))
    }

    /// Ends all connections and stops listening, for good.
    pub fn stop(&self) {
        self.connections.change_mode(Mode::Stopped);
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Drop for TcpHop {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for TcpHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpHop").field("mode", &*self.connections.mode.borrow()).finish()
    }
}

impl Hop for TcpHop {
    fn follow(&self, writer: &Lease) {
        let address = Arc::from(writer.address.as_str());
        self.connections.change_mode(Mode::Following(Writer { epoch: writer.epoch, address }));
    }

    fn lead(&self, epoch: u64) {
        self.connections.change_mode(Mode::Leading { epoch });
    }

    fn ask(&self, epoch: u64, ask: Ask) {
        if let Some(writer) = self.connections.writer()
            && writer.epoch == epoch
        {
            writer.outgoing.push(&Frame::Ask(ask));
        }
    }

    fn note(&self, notes: Notes) {
        if let Some(writer) = self.connections.writer() {
            writer.outgoing.push(&Frame::Notes(notes));
        }
    }

    fn reply(&self, node: NodeId, epoch: u64, reply: Reply) {
        let follower = self.connections.open.lock().followers.get(&node).cloned();
        if let Some(follower) = follower
            && follower.epoch == epoch
        {
            follower.reply(reply);
        }
    }

    fn announce(&self, epoch: u64, place: Place, now: Timestamp, record: Option<BatchRecord>) {
        let open = self.connections.open.lock();
        if open.followers.is_empty() {
            return;
        }
        let record = record.filter(|record| record.body.len() <= SENT_BATCH_BYTES_MAX);
        let batch = record.map(|record| CommittedBatch { place, epoch, now, record });
        let frame = batch.and_then(|batch| encode_frame(&Frame::Batch(batch)).ok());
        let head = Head { number: place.number, now };
        for follower in open.followers.values().filter(|follower| follower.epoch == epoch) {
            follower.outgoing.push_batch(frame.as_deref(), head);
        }
    }

    fn tell_readers(&self, agents: &[AgentId]) {
        let frame = Frame::Readers(agents.to_vec());
        for follower in self.connections.open.lock().followers.values() {
            follower.outgoing.push(&frame);
        }
    }

    fn call(&self, body: Vec<u8>) -> CallFuture {
        match self.connections.writer() {
            Some(writer) => writer.call(body),
            None => Box::pin(std::future::ready(None)),
        }
    }
}

impl Connections {
    fn writer(&self) -> Option<Arc<WriterConnection>> {
        self.open.lock().writer.clone()
    }

    /// Closes the connections that do not belong to the new mode, before it returns.
    fn change_mode(&self, mode: Mode) {
        let mut open = self.open.lock();
        let was = self.mode.borrow().clone();
        if was == mode || was == Mode::Stopped {
            return;
        }
        if let Some(writer) = open.writer.take() {
            writer.close();
        }
        for follower in open.followers.values() {
            if mode != (Mode::Leading { epoch: follower.epoch }) {
                follower.outgoing.close();
            }
        }
        self.mode.send_replace(mode);
    }
}

impl TaskContext {
    fn hello(&self, epoch: u64) -> Frame {
        let head = self.events.head();
        Frame::Hello(Hello { hub: self.hub, wire: WIRE_VERSION, node: self.node, epoch, head })
    }
}
