//! Several nodes over one database: one writes, all serve.
//!
//! Every batch is a row of one log in the database, and the number of the batch is its primary key.
//! A node that decided a batch on top of batch n inserts it as n + 1, so of two nodes that try, one
//! succeeds: the committed batches are one chain whatever clocks, networks and processes do. The
//! lease only says which node should try. The others follow the log and pass commands on.

pub mod frame;
pub mod hop;
#[cfg(any(test, feature = "testkit"))]
pub mod memory;
#[cfg(any(test, feature = "testkit"))]
pub mod mistake;
pub mod place_file;
pub mod state;

use std::fmt;

use rialto_core::encoding::BATCH_VERSION;
use rialto_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::StoreError;
use crate::store::log::{ChainHash, LoggedBatch, Place};

/// Identifies one start of one node: 63 random bits. 0 stands for no node.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Which node should write. Only a hint for the nodes; what keeps a second writer out is the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Raised each time a node takes the lease.
    pub epoch: u64,
    /// 0 if the last writer has stopped, or if there was none.
    pub node: NodeId,
    /// Where the writer takes commands of other nodes, as host and port.
    pub address: String,
    /// The database session that appends the writer's batches.
    pub session: i32,
    /// Raised while the writer is alive and has nothing to append.
    pub beat: u64,
}

/// The oldest and the newest format of batches in the log of a cluster that this program reads. It
/// writes the format that the hub has agreed on, which the writer raises once every live node reads
/// a newer one: so nodes of two versions work together during an upgrade.
pub fn known_formats() -> (u8, u8) {
    (BATCH_VERSION, BATCH_VERSION + pretended_formats())
}

/// In builds with debug assertions, this variable lets a node pretend to be of a later version that
/// knows so many more formats, so that an upgrade can be tested. A batch is encoded the same in all
/// of them; a node tells them apart by the column `format` of its row.
#[cfg(debug_assertions)]
fn pretended_formats() -> u8 {
    let count = std::env::var("RIALTO_TEST_NEXT_FORMAT").ok();
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(not(debug_assertions))]
const fn pretended_formats() -> u8 {
    0
}

/// What a node wants to know of the log.
#[derive(Clone, Copy, Debug)]
pub struct LookQuery {
    /// The newest batch that the node has.
    pub after: Place,
    /// Whether to read the batches. The writer has them already.
    pub with_batches: bool,
}

/// What a node found in the log, in one round trip.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The batches after the node's own, in order and checked hash by hash. Empty without
    /// `with_batches`.
    pub batches: Vec<LoggedBatch>,
    /// The newest batch of the log that the look covers: that of the last of `batches`, or the head
    /// of the log without `with_batches`.
    pub head: Place,
    /// The epoch of that batch; 0 for an empty log.
    pub head_epoch: u64,
    /// There were more batches than one look reads.
    pub has_more: bool,
    pub lease: Lease,
}

/// What a node says of itself to the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    pub node: NodeId,
    /// Where it takes commands of other nodes while it writes.
    pub address: String,
    pub version: String,
    /// The oldest and newest version of batches that it reads.
    pub formats: (u8, u8),
    /// The newest batch that it has applied.
    pub applied: u64,
}

/// A node as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub report: NodeReport,
    /// When it last reported, by the clock of the database.
    pub seen_at: Timestamp,
    /// How long ago that is, by the same clock.
    pub silent_ms: u64,
}

/// The log of a cluster, as a node follows it. Has a connection of its own, and connects again after
/// an error.
pub trait SharedLog: Send {
    /// Reads the log after a place, and the lease. `LostPlace` if the log does not have that place
    /// any more, or another batch in it.
    fn look(&mut self, query: LookQuery) -> Result<Look, StoreError>;

    /// Counts a batch that was not read from the log because the writer sent it.
    fn record_received(&mut self, _bytes: u64) {}

    /// The hash of a batch, if the log has it.
    fn hash_of(&mut self, number: u64) -> Result<Option<ChainHash>, StoreError>;

    /// Takes the lease if it is still as it was seen, and returns it with its new epoch.
    fn take_lease(
        &mut self,
        seen: &Lease,
        node: NodeId,
        address: &str,
    ) -> Result<Option<Lease>, StoreError>;

    /// Raises the beat of this node's lease. False if another node has taken it.
    fn beat(&mut self, lease: &Lease) -> Result<bool, StoreError>;

    /// Gives the lease back, so that another node takes it at once.
    fn release_lease(&mut self, lease: &Lease) -> Result<(), StoreError>;

    /// Ends the database session of an earlier writer that still holds the next place, unless it is
    /// waiting for a standby.
    fn end_session_of(&mut self, lease: &Lease) -> Result<(), StoreError>;

    /// Reports this node, and returns all that have reported lately.
    fn report(&mut self, report: &NodeReport) -> Result<Vec<NodeRow>, StoreError>;

    /// Removes the report of a node that has stopped, so that the others need not consider it.
    fn remove_report(&mut self, node: NodeId) -> Result<(), StoreError>;

    /// Removes some batches from the beginning of the log that the tables have, that are old enough,
    /// and that every live node has passed. Returns whether there may be more of them.
    fn truncate(&mut self) -> Result<bool, StoreError>;

    /// Raises the format of new batches, if it is older, and returns whether it was.
    fn raise_format(&mut self, format: u8) -> Result<bool, StoreError>;

    /// The clock of the database, which all nodes share.
    fn database_time(&mut self) -> Result<Timestamp, StoreError>;
}
