//! What nodes say to each other, and the interface of the connection between them.

use std::future::Future;
use std::pin::Pin;

use rialto_core::answer::Answer;
use rialto_core::encoding::{Encodable, decode_batch};
use rialto_core::envelope::Envelope;
use rialto_core::id::AgentId;
use rialto_core::idempotency::Receipt;
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Lease, NodeId, known_formats};
use crate::store::log::record::chain_hash;
use crate::store::log::{LoggedBatch, Place};

/// One message between two nodes. The first of each direction is `Hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Frame {
    Hello(Hello),
    Ask(Ask),
    Reply(Reply),
    Head(Head),
    Notes(Notes),
    /// A question about state that only the writer has in memory, and its answer.
    Call {
        number: u64,
        body: Vec<u8>,
    },
    CallReply {
        number: u64,
        /// `None` if there is no answer.
        body: Option<Vec<u8>>,
    },
    /// Agents whose inbox is being read at any node, from the writer.
    Readers(Vec<AgentId>),
    /// In place of a `Head`.
    Batch(CommittedBatch),
}

impl Encodable for Frame {}

/// Binds a connection to an epoch. The writer answers with its own, or closes the connection if it
/// does not write in this epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Identifies the hub, so that nodes of two hubs never talk to each other.
    pub hub: [u8; 16],
    /// The version of these frames.
    pub wire: u16,
    pub node: NodeId,
    pub epoch: u64,
    pub head: Head,
}

/// A command that a node passes on to the writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The node's own number for it.
    pub number: u64,
    /// The lowest number that is still unanswered; the writer may forget what is below.
    pub low: u64,
    pub envelope: Envelope,
}

/// The writer's reply to an [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub number: u64,
    /// The batch that the node must have applied before it passes the reply on.
    pub place: u64,
    pub result: ReplyResult,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplyResult {
    Answer(Answer),
    /// An earlier request had the same idempotency key.
    Replayed(Receipt),
    Refused(Refusal),
    /// The command is in the log already, and its receipt with it.
    Committed,
    /// The database has no space.
    Full,
    /// The first request with this idempotency key is still running.
    StillRunning,
    /// A bug in the writer.
    Fault,
    /// The writer has too many commands, or cannot write now. Nothing was done.
    Overloaded,
}

/// The newest batch of the log, and the writer's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub number: u64,
    pub now: Timestamp,
}

/// A batch that the writer has committed, so that other nodes need not read it from the database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedBatch {
    pub place: Place,
    pub epoch: u64,
    /// The writer's time.
    pub now: Timestamp,
    pub record: BatchRecord,
}

/// A batch as the log has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRecord {
    pub format: u8,
    #[serde(with = "serde_bytes")]
    pub body: Vec<u8>,
}

impl CommittedBatch {
    /// Decodes the batch, if it continues this place and this program knows its format.
    pub fn decode(&self, before: Place) -> Option<LoggedBatch> {
        let Self { place, epoch, record: BatchRecord { format, body }, .. } = self;
        let (oldest, newest) = known_formats();
        let continues = place.number == before.number + 1
            && chain_hash(before.hash, place.number, *epoch, body) == place.hash;
        if !continues || !(oldest..=newest).contains(format) {
            return None;
        }
        let batch = decode_batch(body).ok()?;
        Some(LoggedBatch { place: *place, epoch: *epoch, batch })
    }
}

/// What a node tells the writer and may be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    pub last_seen: Vec<(AgentId, Timestamp)>,
    pub presented: Vec<(AgentId, u64)>,
    /// Agents whose inbox is being read at this node.
    pub with_readers: Vec<AgentId>,
}

impl Notes {
    pub fn is_empty(&self) -> bool {
        self.last_seen.is_empty() && self.presented.is_empty() && self.with_readers.is_empty()
    }
}

/// The connections of a node to the others. Nothing here waits: what cannot be sent is lost, and
/// the sender learns that from the events.
pub trait Hop: Send + Sync {
    /// Connects to the writer of this lease, and again whenever the connection ends, until another
    /// writer is named. Ends the connection to an earlier writer.
    fn follow(&self, writer: &Lease);

    /// Ends the connection to the writer, for a node that writes itself.
    fn lead(&self, epoch: u64);

    /// Passes a command on to the writer.
    fn ask(&self, epoch: u64, ask: Ask);

    /// Tells the writer what may be lost.
    fn note(&self, notes: Notes);

    /// Replies to a node, if it is connected in this epoch.
    fn reply(&self, node: NodeId, epoch: u64, reply: Reply);

    /// Tells all connected nodes of a new batch, and sends it if there is a record of it.
    fn announce(&self, epoch: u64, place: Place, now: Timestamp, record: Option<BatchRecord>);

    /// Tells all connected nodes whose inbox is being read at any node.
    fn tell_readers(&self, agents: &[AgentId]);

    /// Asks the writer about state that only it has. `None` if there is no answer.
    fn call(&self, body: Vec<u8>) -> CallFuture;
}

/// The answer to a call.
pub type CallFuture = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// What the connections report to the engine. Called from the tasks of the connections, so nothing
/// here may wait.
pub trait HopEvents: Send + Sync {
    /// This node and its head, for `Hello`.
    fn head(&self) -> Head;

    /// The epoch in which this node writes, if it does. Others are refused.
    fn leading_epoch(&self) -> Option<u64>;

    /// There is a connection to the writer of this epoch. What was asked before may be lost.
    fn connected(&self, epoch: u64, head: Head);

    /// The writer of this epoch does not take connections: its process is gone.
    fn refused(&self, epoch: u64);

    /// The writer has replied.
    fn replied(&self, epoch: u64, reply: Reply);

    /// The writer has a new batch.
    fn announced(&self, epoch: u64, head: Head);

    /// The writer has sent a batch.
    fn received(&self, batch: CommittedBatch);

    /// The writer tells whose inbox is being read at any node.
    fn readers_told(&self, agents: Vec<AgentId>);

    /// A node passes a command on. False if there is no room; the hop then replies `Overloaded`.
    fn asked(&self, epoch: u64, node: NodeId, ask: Ask) -> bool;

    /// A node tells what may be lost.
    fn noted(&self, node: NodeId, notes: Notes);

    /// A node asks about state that only the writer has.
    fn called(&self, body: Vec<u8>) -> CallFuture;

    /// A node that was connected is not any more.
    fn left(&self, node: NodeId);
}
