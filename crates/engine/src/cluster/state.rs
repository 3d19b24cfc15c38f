//! What a node of a cluster knows of itself and the others, as other threads read it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rialto_core::id::AgentId;
use tokio::sync::{oneshot, watch};

use super::frame::CommittedBatch;
#[cfg(any(test, feature = "testkit"))]
use super::mistake::Mistake;
use super::place_file::PlaceFile;
use super::{NodeId, NodeRow};
use crate::store::log::Place;

/// A node that has not looked at the log for this long answers nothing: what it knows may be wrong.
pub const STALE_AFTER: Duration = Duration::from_secs(1);

/// The role of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// It follows the log and passes commands on.
    #[default]
    Follower,
    /// It decides commands and appends to the log.
    Writer,
}

/// What a node has applied, and what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The newest batch in the published world.
    pub number: u64,
    /// The epoch of that batch.
    pub epoch: u64,
    pub role: Role,
}

/// A request to the coordinator.
#[derive(Debug)]
pub enum CoordinatorRequest {
    /// Look at the log now. The number of the newest batch found is sent back; the lane gets the
    /// batches up to it.
    Look(oneshot::Sender<u64>),
    /// There is something new in the log.
    Hint,
    /// A batch that the writer has sent.
    Batch(CommittedBatch),
    /// The writer of this epoch does not take connections.
    WriterGone {
        epoch: u64,
    },
    /// This node is stopping: it gives the lease back and takes none any more.
    Resign(oneshot::Sender<()>),
    /// This node has stopped: the others need not consider it any more.
    Leave(oneshot::Sender<()>),
    Stop,
}

/// Shared by the engine's handles, the lane, the coordinator and the connections.
#[derive(Debug)]
pub struct ClusterState {
    pub node: NodeId,
    /// Where other nodes reach this one, once it listens.
    pub address: OnceLock<String>,
    pub applied: watch::Sender<Applied>,
    /// The newest batch in the published world.
    pub place: Mutex<Place>,
    /// An agent was seen that was not online, which other nodes should know soon.
    pub has_urgent_notes: AtomicBool,
    pub requests: mpsc::Sender<CoordinatorRequest>,
    /// When the last look began all of whose batches are in the published world.
    pub looked_at: Mutex<Option<Instant>>,
    /// Whether the node has looked lately.
    pub current: watch::Sender<bool>,
    pub nodes: Mutex<Vec<NodeRow>>,
    pub writer: Mutex<Option<NodeId>>,
    /// Whether the clock of the cluster is known, and whether this node takes part: it writes, or is
    /// connected to the writer.
    pub has_joined: AtomicBool,
    pub joined: watch::Sender<bool>,
    /// Agents whose inbox is being read at other nodes, as of the last note of each.
    remote_readers: Mutex<HashMap<NodeId, (Instant, HashSet<AgentId>)>>,
    /// Whether the set of agents that read here or at other nodes has changed since it was last sent.
    pub readers_changed: AtomicBool,
    /// The newest batch that the writer has sent, and the bytes of those that the coordinator has not
    /// taken yet.
    pub received: AtomicU64,
    pub received_bytes: AtomicU64,
    /// How often this node became the writer.
    pub takeovers: AtomicU64,
    /// Where its place outlives this node, if it has a directory of its own.
    pub place_file: OnceLock<PlaceFile>,
    /// What a test wants this node to do wrong.
    #[cfg(any(test, feature = "testkit"))]
    pub mistake: Mutex<Option<Mistake>>,
}

/// A node as `GET /v1/operator/cluster` shows it.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    pub node: NodeId,
    pub role: Role,
    pub epoch: u64,
    /// The newest batch that this node has applied.
    pub seq: u64,
    /// How long ago the last look began.
    pub lag_ms: u64,
    pub takeovers: u64,
    pub writer: Option<NodeId>,
    pub nodes: Vec<NodeRow>,
}

/// Shows when a node ceases to be current, also while its coordinator waits for the database.
pub async fn watch_staleness(state: Weak<ClusterState>) {
    while let Some(state) = state.upgrade() {
        state.show_staleness();
        drop(state);
        tokio::time::sleep(STALE_AFTER / 10).await;
    }
}

/// The most bytes of batches that wait for the coordinator.
const RECEIVED_BYTES_MAX: u64 = 16 << 20;
/// Notes of other nodes count for this long.
const NOTES_TTL: Duration = Duration::from_secs(3);

impl ClusterState {
    pub fn new(node: NodeId, requests: mpsc::Sender<CoordinatorRequest>) -> Self {
        Self {
            node,
            address: OnceLock::new(),
            applied: watch::Sender::default(),
            place: Mutex::default(),
            has_urgent_notes: AtomicBool::new(false),
            requests,
            looked_at: Mutex::default(),
            current: watch::Sender::new(false),
            nodes: Mutex::default(),
            writer: Mutex::default(),
            has_joined: AtomicBool::new(false),
            joined: watch::Sender::new(false),
            remote_readers: Mutex::default(),
            readers_changed: AtomicBool::new(false),
            received: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            takeovers: AtomicU64::new(0),
            place_file: OnceLock::new(),
            #[cfg(any(test, feature = "testkit"))]
            mistake: Mutex::new(Mistake::of_process()),
        }
    }

    /// Where other nodes reach this one.
    pub fn address(&self) -> &str {
        self.address.get().map_or("", String::as_str)
    }

    /// Writes the newest batch that is applied to the file of this node.
    pub fn save_place(&self) {
        let place = *self.place.lock();
        if let Some(file) = self.place_file.get() {
            file.write(place);
        }
    }

    /// Whether a test has planted this mistake.
    #[cfg(any(test, feature = "testkit"))]
    pub fn has_mistake(&self, mistake: Mistake) -> bool {
        *self.mistake.lock() == Some(mistake)
    }

    /// Sets whose inboxes another node reads.
    pub fn set_remote_readers(&self, node: NodeId, agents: Vec<AgentId>) {
        let agents: HashSet<AgentId> = agents.into_iter().collect();
        let mut readers = self.remote_readers.lock();
        let was = readers.insert(node, (Instant::now(), agents));
        if was.as_ref().map(|(_, agents)| agents) != readers.get(&node).map(|(_, agents)| agents) {
            self.readers_changed.store(true, Ordering::Release);
        }
    }

    /// Whether an agent's inbox is being read at another node.
    pub fn has_remote_reader(&self, agent: AgentId) -> bool {
        let readers = self.remote_readers.lock();
        readers.values().any(|(at, agents)| at.elapsed() < NOTES_TTL && agents.contains(&agent))
    }

    /// Agents whose inbox is being read at another node.
    pub fn remote_readers(&self) -> Vec<AgentId> {
        let mut readers = self.remote_readers.lock();
        readers.retain(|_, (at, _)| at.elapsed() < NOTES_TTL);
        readers.values().flat_map(|(_, agents)| agents.iter().copied()).collect()
    }

    /// Whether a batch has neither been applied nor sent by the writer.
    pub fn is_missing(&self, number: u64) -> bool {
        self.applied.borrow().number.max(self.received.load(Ordering::Acquire)) < number
    }

    /// What the coordinator does with a batch that the writer has sent. If it has not taken earlier
    /// ones for long, it reads the log instead.
    pub fn request_for(&self, batch: CommittedBatch) -> CoordinatorRequest {
        let bytes = batch.record.body.len() as u64;
        if self.received_bytes.load(Ordering::Acquire) + bytes > RECEIVED_BYTES_MAX {
            return CoordinatorRequest::Hint;
        }
        self.received_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.received.fetch_max(batch.place.number, Ordering::AcqRel);
        CoordinatorRequest::Batch(batch)
    }

    /// How long ago the last look began.
    pub fn lag(&self) -> Option<Duration> {
        self.looked_at.lock().map(|at| at.elapsed())
    }

    /// Whether what this node knows is recent enough to answer with.
    pub fn is_current(&self) -> bool {
        self.lag().is_some_and(|lag| lag < STALE_AFTER)
    }

    /// Tells subscribers whether this node is current.
    pub fn show_staleness(&self) {
        let is_current = self.is_current();
        self.current.send_if_modified(|was| std::mem::replace(was, is_current) != is_current);
    }

    pub fn status(&self) -> ClusterStatus {
        let Applied { number, epoch, role } = *self.applied.borrow();
        ClusterStatus {
            node: self.node,
            role,
            epoch,
            seq: number,
            lag_ms: self.lag().map_or(u64::MAX, |lag| lag.as_millis() as u64),
            takeovers: self.takeovers.load(Ordering::Relaxed),
            writer: *self.writer.lock(),
            nodes: self.nodes.lock().clone(),
        }
    }
}
