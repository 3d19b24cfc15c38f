//! The network between the nodes: one connection of each follower to the writer, in which frames
//! wait until they are delivered.
//!
//! As with TCP, frames on one connection keep their order, and those under way are lost with it.
//! Nothing is ordered across connections. Hints may be lost at any time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rialto_core::encoding;
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use rialto_engine::cluster::frame::{
    Ask, BatchRecord, CallFuture, Frame, Head, Hello, Hop, HopEvents, Notes, Reply,
};
use rialto_engine::cluster::{Lease, NodeId};
use rialto_engine::store::log::Place;

use crate::dice::Dice;

/// Percent of `Hello`s of which the lane is told when the connection opens, and not later.
const TOLD_AT_ONCE: u64 = 60;
/// Every this many frames, one is encoded, decoded and compared.
const ENCODED: u64 = 8;
/// Percent of hints that are lost.
const LOST_HINTS: u64 = 30;

/// A connection of a follower to the writer.
struct Connection {
    epoch: u64,
    writer: NodeId,
    /// Whether the follower has got the writer's `Hello`, and sends.
    is_open: bool,
    to_writer: VecDeque<Frame>,
    to_follower: VecDeque<Frame>,
}

#[derive(Default)]
struct Links {
    nodes: BTreeMap<NodeId, Arc<dyn HopEvents>>,
    /// By the follower.
    connections: BTreeMap<NodeId, Connection>,
    /// Followers that wait for a node to begin to write, and the epoch of its lease.
    dialing: BTreeMap<NodeId, (NodeId, u64)>,
    /// How many frames have arrived.
    delivered: u64,
}

/// All connections.
#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Links>>);

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    ToWriter,
    ToFollower,
}

impl Network {
    /// Adds a node.
    pub fn add(&self, node: NodeId, events: Arc<dyn HopEvents>) -> Arc<dyn Hop> {
        self.0.lock().nodes.insert(node, events);
        Arc::new(SimHop { network: self.clone(), node })
    }

    /// Removes a node and its connections.
    pub fn remove(&self, node: NodeId) {
        let mut links = self.0.lock();
        links.nodes.remove(&node);
        links.dialing.retain(|follower, (writer, _)| *follower != node && *writer != node);
        links.connections.retain(|follower, open| *follower != node && open.writer != node);
    }

    fn events(&self, node: NodeId) -> Option<Arc<dyn HopEvents>> {
        self.0.lock().nodes.get(&node).cloned()
    }

    /// The epoch of a follower's connection, and whether it is open.
    pub fn connection(&self, follower: NodeId) -> Option<(u64, bool)> {
        self.0.lock().connections.get(&follower).map(|open| (open.epoch, open.is_open))
    }

    /// Connects a follower to the writer of a lease. What was under way on an earlier connection is
    /// lost. False if there is no such writer: the follower is connected when it begins to write.
    pub fn connect(&self, follower: NodeId, lease: &Lease) -> bool {
        self.sever(follower);
        let Some(writer) = self.events(lease.node) else { return false };
        if writer.leading_epoch() != Some(lease.epoch) {
            self.0.lock().dialing.insert(follower, (lease.node, lease.epoch));
            return false;
        }
        self.open(follower, lease.node, lease.epoch, writer.head());
        true
    }

    fn open(&self, follower: NodeId, node: NodeId, epoch: u64, head: Head) {
        let hello = Frame::Hello(Hello { hub: [0; 16], wire: 0, node, epoch, head });
        let connection = Connection {
            epoch,
            writer: node,
            is_open: false,
            to_writer: VecDeque::new(),
            to_follower: VecDeque::from([hello]),
        };
        self.0.lock().connections.insert(follower, connection);
    }

    /// Ends a follower's connection.
    pub fn sever(&self, follower: NodeId) {
        self.0.lock().dialing.remove(&follower);
        let ended = self.0.lock().connections.remove(&follower);
        if let Some(writer) = ended.and_then(|ended| self.events(ended.writer)) {
            writer.left(follower);
        }
    }

    /// Where frames wait that the nodes for which `runs` holds could get.
    pub fn waiting(&self, runs: impl Fn(NodeId) -> bool) -> Vec<(NodeId, Direction)> {
        let mut waiting = Vec::new();
        for (follower, open) in &self.0.lock().connections {
            if !open.to_writer.is_empty() && runs(open.writer) {
                waiting.push((*follower, Direction::ToWriter));
            }
            if !open.to_follower.is_empty() && runs(*follower) {
                waiting.push((*follower, Direction::ToFollower));
            }
        }
        waiting
    }

    /// Delivers the next frame of a connection, and returns the node that got it.
    pub fn deliver(
        &self,
        dice: &mut Dice,
        follower: NodeId,
        direction: Direction,
    ) -> Option<NodeId> {
        let mut links = self.0.lock();
        let open = links.connections.get_mut(&follower)?;
        let (epoch, writer) = (open.epoch, open.writer);
        let (frame, to) = match direction {
            Direction::ToWriter => (open.to_writer.pop_front()?, writer),
            Direction::ToFollower => (open.to_follower.pop_front()?, follower),
        };
        if let Frame::Hello(_) = frame {
            open.is_open = true;
            // What the lane sends before it is told goes over the new connection, too.
            if !dice.chance(TOLD_AT_ONCE) {
                open.to_follower.push_front(frame);
                return Some(to);
            }
        }
        let events = links.nodes.get(&to).cloned()?;
        links.delivered += 1;
        let is_encoded = links.delivered.is_multiple_of(ENCODED);
        drop(links);
        if is_encoded {
            survives_the_way(&frame);
        }
        match frame {
            Frame::Hello(hello) => events.connected(epoch, hello.head),
            Frame::Ask(ask) => assert!(events.asked(epoch, follower, ask), "there is room"),
            Frame::Reply(reply) => events.replied(epoch, reply),
            Frame::Head(_) if dice.chance(LOST_HINTS) => {}
            Frame::Head(head) => events.announced(epoch, head),
            Frame::Notes(notes) => events.noted(follower, notes),
            Frame::Call { .. } | Frame::CallReply { .. } | Frame::Readers(_) | Frame::Batch(_) => {}
        }
        Some(to)
    }
}

/// Panics unless a frame arrives as it was sent.
fn survives_the_way(frame: &Frame) {
    let bytes = encoding::encode(frame).expect("frames can be encoded");
    let arrived: Frame = encoding::decode(&bytes).expect("frames can be decoded");
    assert_eq!(*frame, arrived, "a frame changed on the way");
}

/// The connections of one node.
struct SimHop {
    network: Network,
    node: NodeId,
}

impl SimHop {
    fn send_to_writer(&self, epoch: Option<u64>, frame: Frame) {
        let mut links = self.network.0.lock();
        let open = links.connections.get_mut(&self.node).filter(|open| open.is_open);
        if let Some(open) = open.filter(|open| epoch.is_none_or(|epoch| open.epoch == epoch)) {
            open.to_writer.push_back(frame);
        }
    }
}

impl Hop for SimHop {
    /// The simulation connects nodes itself.
    fn follow(&self, _: &Lease) {}

    fn lead(&self, epoch: u64) {
        self.network.sever(self.node);
        let mut links = self.network.0.lock();
        links.connections.retain(|_, open| open.writer != self.node || open.epoch == epoch);
        let waiting: Vec<NodeId> = links
            .dialing
            .extract_if(.., |_, writer| *writer == (self.node, epoch))
            .map(|(follower, _)| follower)
            .collect();
        drop(links);
        let head = self.network.events(self.node).map(|events| events.head()).unwrap_or_default();
        for follower in waiting {
            self.network.open(follower, self.node, epoch, head);
        }
    }

    fn ask(&self, epoch: u64, ask: Ask) {
        self.send_to_writer(Some(epoch), Frame::Ask(ask));
    }

    fn note(&self, notes: Notes) {
        self.send_to_writer(None, Frame::Notes(notes));
    }

    fn reply(&self, node: NodeId, epoch: u64, reply: Reply) {
        let mut links = self.network.0.lock();
        let open = links.connections.get_mut(&node);
        if let Some(open) = open.filter(|open| open.writer == self.node && open.epoch == epoch) {
            open.to_follower.push_back(Frame::Reply(reply));
        }
    }

    /// Batches are read from the log only: the simulation chooses itself when a node has which.
    fn announce(&self, _: u64, place: Place, now: Timestamp, _: Option<BatchRecord>) {
        let head = Head { number: place.number, now };
        let mut links = self.network.0.lock();
        for open in links.connections.values_mut().filter(|open| open.writer == self.node) {
            open.to_follower.push_back(Frame::Head(head));
        }
    }

    fn tell_readers(&self, _: &[AgentId]) {}

    fn call(&self, _: Vec<u8>) -> CallFuture {
        Box::pin(std::future::ready(None))
    }
}
