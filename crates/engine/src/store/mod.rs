//! Stores keep batches and rows. Two backends have the same behaviour and pass one test suite.
//!
//! A batch is first appended to the log, which makes it durable, and then published, which makes its
//! rows readable.

pub mod log;
pub mod memory;
pub mod sqlite;
#[cfg(test)]
pub(crate) mod suite;
pub mod unwritten;

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::{Claim, Digest};
use rialto_core::changes::{Changes, ExpiredRows};
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

use crate::metrics::Histogram;
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

/// The writing side; only the lane uses it.
pub trait Store: Send {
    /// Every row that must be in memory, as of the last checkpoint. For removed agents it may
    /// contain only the summary.
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError>;

    /// Takes the batches since then, in order.
    fn take_tail(&mut self) -> Vec<LoggedBatch> {
        Vec::new()
    }

    /// Waits until there is room for another batch. An error of work in the background is reported
    /// here, before the batch is appended.
    fn make_room(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

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

    /// Opens a reader that works beside the lane.
    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError>;

    /// Fills an empty world: the rows of the last checkpoint, then every batch after it.
    fn load_world(&mut self, world: &mut World) -> Result<(), StoreError> {
        world.restore(&self.load_hot_rows()?);
        for batch in self.take_tail() {
            world.replay(&batch.changes, &batch.expired);
        }
        Ok(())
    }

    /// Appends and publishes one batch, and returns once it is on disk.
    fn commit(&mut self, changes: &Changes, expired: &ExpiredRows) -> Result<(), StoreError> {
        self.make_room()?;
        let place = self.log().lock().append(changes, expired)?;
        self.publish(Some(place), changes, expired);
        Ok(())
    }
}

/// The log of a store.
pub trait BatchLog: Send {
    /// Appends a batch and returns once it is on disk. The next batch may be appended only after
    /// this one succeeded.
    fn append(&mut self, changes: &Changes, expired: &ExpiredRows) -> Result<Place, StoreError>;
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
}
