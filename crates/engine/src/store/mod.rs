//! Stores keep batches and rows. All backends have the same behaviour and pass one test suite.
//!
//! A batch is first appended to the log, which makes it durable, and then published, which makes its
//! rows readable.

mod bloom;
pub mod chain;
mod claims;
pub mod log;
pub mod memory;
mod notices;
pub mod postgres;
pub(crate) mod row;
pub mod sqlite;
#[cfg(test)]
pub(crate) mod suite;
mod table_loader;
pub mod unwritten;

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::{Claim, Digest};
use rialto_core::changes::{Batch, Changes, Counters, ExpiredRows};
use rialto_core::event::HistoryLine;
use rialto_core::id::{
    AgentId, AnswerId, EntryId, EventId, JobId, NoticeId, OutcomeId, PostingId, TransferId,
};
use rialto_core::idempotency::IdempotencyRecord;
use rialto_core::job::Job;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::market::MarketRecord;
use rialto_core::notice::{CompletedDelivery, Notice};
use rialto_core::reputation::Outcome;

use parking_lot::Mutex;
use rialto_core::world::World;

use crate::cluster::SharedLog;
use crate::cluster::frame::BatchRecord;
use crate::metrics::Histogram;
use chain::Chain;
use log::{LoggedBatch, Place};

/// Errors of a store.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// No space: nothing was written, and writing may work again later.
    #[error("the disk is full")]
    Full,
    /// A write or its fsync failed: what is on disk is no longer certain.
    #[error("the store failed: {0}")]
    Failed(String),
    /// Rows that differ from what was written.
    #[error("the store is corrupt: {0}")]
    Corrupt(String),
    /// Written by a later version of this program.
    #[error("the store has schema {found}, this program knows {known}: use a newer rialto")]
    NewerSchema { found: i64, known: i64 },
    /// There is nothing to open.
    #[error("{0} contains no store")]
    Missing(String),
    /// A backup that was not restored. A hub started on it would reuse the original's ids
    /// unnoticed.
    #[error(
        "the store is a backup of epoch {epoch}, not a hub's own data; restore it with `rialto \
         restore --from FILE --data DIR`"
    )]
    IsBackup { epoch: u64 },
    /// Another process has it open.
    #[error("another hub is using {0}")]
    InUse(String),
    /// Another node wrote the next batch. Nothing of ours was written there.
    #[error("another node has written batch {number} of the log")]
    Taken { number: u64 },
    /// The database cannot be reached. Whether a batch that was being appended is written is unknown.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// Another session of the database holds the next place of the log.
    #[error("another session of the database is in the way: {0}")]
    Locked(String),
    /// A later version of this program has written batches.
    #[error("batches have format {found}, and this program knows {known}: use a newer rialto")]
    NewerFormat { found: i32, known: u8 },
    /// The log no longer has the batch that this node is at: the database lost its newest changes,
    /// or was restored from a backup, or this node was away for too long.
    #[error("{0}")]
    LostPlace(String),
}

impl StoreError {
    /// Whether it only says that this node cannot append in this place: the log is as it should be.
    pub fn is_about_the_place(&self) -> bool {
        matches!(self, Self::Taken { .. } | Self::Unreachable(_) | Self::Locked(_))
    }
}

/// The key of a row that may not be in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKey {
    /// The full agent, also if it was removed.
    Agent(AgentId),
    Claim(Digest),
    Job(JobId),
    Transfer(TransferId),
    Entry(EntryId),
    Notice(NoticeId),
    Arrival(NoticeId),
    Outcome(OutcomeId),
    MarketRecord(PostingId),
    IdempotencyRecord(AnswerId),
}

impl RowKey {
    /// The id as a number. Claims have none.
    pub fn number(self) -> Option<u64> {
        Some(match self {
            Self::Claim(_) => return None,
            Self::Agent(id) => id.0,
            Self::Job(id) => id.0,
            Self::Transfer(id) => id.0,
            Self::Entry(id) => id.0,
            Self::Notice(id) | Self::Arrival(id) => id.0,
            Self::Outcome(id) => id.0,
            Self::MarketRecord(id) => id.0,
            Self::IdempotencyRecord(id) => id.0,
        })
    }
}

/// A row found by its [`RowKey`].
#[derive(Clone, Debug)]
pub enum Row {
    Agent(Arc<Agent>),
    Claim(Claim),
    Job(Arc<Job>),
    Transfer(Arc<Transfer>),
    Entry(Entry),
    Notice(Notice),
    Arrival(CompletedDelivery),
    Outcome(Outcome),
    Line(HistoryLine),
    Posting(Arc<MarketRecord>),
    Memory(Arc<IdempotencyRecord>),
}

/// A query for rows in the order they were written.
#[derive(Clone, Copy, Debug)]
pub enum PageQuery {
    /// History after a line, oldest first.
    Lines { after: EventId, limit: usize },
    /// Ledger entries before one, newest first.
    Entries { before: EntryId, limit: usize },
    /// Finished jobs, newest first.
    Jobs { before: JobId, limit: usize },
    /// Market records between two, both excluded, in either order.
    MarketRecords { after: PostingId, before: PostingId, newest_first: bool, limit: usize },
}

/// Called with the error after which the store takes no more batches.
pub type FailureHandler = Box<dyn Fn(&StoreError) + Send + Sync>;

/// The error after which a thread of the store has ended.
#[derive(Default)]
pub(crate) struct FailureReport {
    pub error: Option<StoreError>,
    handler: Option<FailureHandler>,
}

impl FailureReport {
    /// Keeps the first error and reports it.
    pub fn record(&mut self, error: StoreError) {
        if let Some(handler) = &self.handler {
            handler(&error);
        }
        self.error.get_or_insert(error);
    }

    /// Sets what is called with the error, at once if it has happened already.
    pub fn set_handler(&mut self, handler: FailureHandler) {
        if let Some(error) = &self.error {
            handler(error);
        }
        self.handler = Some(handler);
    }
}

/// The writing side; only the lane uses it.
pub trait Store: Send {
    /// Every row that must be in memory, as of the last checkpoint. For removed agents it may
    /// contain only the summary.
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError>;

    /// Takes the batches since then, in order.
    fn take_tail(&mut self) -> Vec<LoggedBatch> {
        Vec::new()
    }

    /// The newest batch that was loaded or published, where batches have places that nodes share.
    fn place(&self) -> Place {
        Place::default()
    }

    /// The epoch of the writer of the newest batch that was loaded.
    fn loaded_epoch(&self) -> u64 {
        0
    }

    /// Waits until there is room for another batch. An error of work in the background is reported
    /// here, before the batch is appended.
    fn make_room(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Sets what is called when work in the background fails, as soon as that happens and whether or
    /// not there is another batch.
    fn report_failures(&mut self, _: FailureHandler) {}

    /// The log, for the thread that appends.
    fn log(&self) -> Arc<Mutex<dyn BatchLog>>;

    /// Makes the rows of a batch readable, after it was appended at this place. A batch that needed
    /// no record has none.
    fn publish(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows);

    /// One row, as of the last published batch.
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError>;

    /// The rows that can be read without waiting, if there are any.
    fn recent_rows(&self) -> Option<Arc<dyn RecentRows>> {
        None
    }

    /// Begins work that can wait until the lane is idle.
    fn run_maintenance(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// How long its syncs take, if it syncs.
    fn sync_durations(&self) -> Option<Arc<Histogram>> {
        None
    }

    /// Several rows, in the order of their keys.
    fn load_all(&mut self, keys: &[RowKey]) -> Result<Vec<Option<Row>>, StoreError> {
        keys.iter().map(|key| self.load(*key)).collect()
    }

    /// The log as several nodes share it; `None` if one process has the store to itself.
    fn open_shared_log(&self) -> Result<Option<Box<dyn SharedLog>>, StoreError> {
        Ok(None)
    }

    /// Whether this node writes the tables from now on. Of several nodes only the writer does.
    fn set_writing(&mut self, _writing: bool) {}

    /// Opens a reader that works beside the lane.
    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError>;

    /// Fills an empty world: the rows of the last checkpoint, then every batch after it.
    fn load_world(&mut self, world: &mut World) -> Result<(), StoreError> {
        world.restore(&self.load_hot_rows()?);
        for LoggedBatch { batch, .. } in self.take_tail() {
            for (agent, at) in &batch.for_nodes.last_seen {
                world.record_activity(*agent, *at);
            }
            world.replay(&batch.changes, &batch.expired);
        }
        Ok(())
    }

    /// Appends and publishes one batch, and returns once it is on disk.
    fn commit(&mut self, changes: &Changes, expired: &ExpiredRows) -> Result<(), StoreError> {
        self.make_room()?;
        let batch = Batch::new(changes.clone(), expired.clone());
        let place = self.log().lock().append(&batch)?;
        self.publish(Some(place), changes, expired);
        Ok(())
    }
}

/// The log of a store.
pub trait BatchLog: Send {
    /// Appends a batch and returns once it is on disk. The next batch may be appended only after
    /// this one succeeded.
    fn append(&mut self, batch: &Batch) -> Result<Place, StoreError>;

    /// The batch that was appended last, for other nodes; `None` if they read the log themselves.
    fn newest_record(&self) -> Option<BatchRecord> {
        None
    }

    /// Fails if another node has appended a batch after the newest one of this log.
    fn confirm_head(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Appends after this place from now on, as the writer of this epoch. `next` are the next ids
    /// to hand out there.
    fn continue_at(&mut self, _place: Place, _epoch: u64, _next: Counters) {}

    /// The database session that appends, connected now if it was not; 0 if there is none. A lease
    /// that is taken after this names it.
    fn session(&mut self) -> Result<i32, StoreError> {
        Ok(0)
    }
}

/// Rows that a store has in memory.
pub trait RecentRows: Send + Sync {
    /// The row, or `Some(None)` if it was removed, or `None` if it is not in memory.
    fn get(&self, key: RowKey) -> Option<Option<Row>>;
}

/// The reading side: committed rows only.
pub trait Reader: Send {
    /// One row.
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError>;

    /// Rows in order.
    fn load_page(&mut self, page: PageQuery) -> Result<Vec<Row>, StoreError>;

    /// The rows of a chain from one on, newest first: at most `limit`, and fewer if they are long.
    /// If the first does not exist there are none.
    fn load_chain(
        &mut self,
        chain: Chain,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        chain::follow(chain, from, limit, |key| self.load(key))
    }
}
