//! The PostgreSQL store, which several nodes share: a log with one row per batch, and tables that are
//! its checkpoint.
//!
//! A commit inserts one row into the log, and the number of the batch is its primary key: of two
//! nodes that append the same batch, one succeeds. The writer's checkpoint thread writes the tables
//! behind. Every node keeps the rows that are not in the tables yet in memory, where reading looks
//! first. The tables may have rows that are newer than this node's world, never older ones than it
//! has dropped from memory.
//!
//! Each connection belongs to one thread and connects again after an error.

pub mod admin;
mod chains;
mod checkpoint;
mod copy;
pub mod inspect;
mod log;
mod log_check;
mod read;
mod records;
mod schema;
mod session;
mod shared_log;
mod snapshot;
#[cfg(test)]
mod tests;
mod tls;
mod url;
mod write;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rialto_core::changes::{Changes, ExpiredRows};

use super::bloom::FilterLoader;
use super::claims::RecentClaims;
use super::log::{LoggedBatch, Place};
use super::row::sql_id;
use super::{BatchLog, FailureHandler, Reader, RecentRows, Row, RowKey, Store, StoreError};
use crate::cluster::SharedLog;
use crate::metrics::Histogram;
pub use checkpoint::CheckpointLimits;
use checkpoint::{Checkpointer, SharedRows};
use log::PostgresLog;
use read::{PostgresReader, read_digest};
use session::{Session, SessionSettings, store_error};
use shared_log::PostgresSharedLog;
use snapshot::LogTail;
use url::Database;

/// Claims read at a time for the filter.
const FILTER_SLICE: usize = 8_192;
/// How long reading a part of them may take.
const FILTER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a store is opened with.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostgresOptions {
    pub limits: CheckpointLimits,
}

/// The log and the tables of a hub in a PostgreSQL schema.
pub struct PostgresStore {
    database: Arc<Database>,
    hub: [u8; 16],
    /// For the lane's own reads.
    reader: PostgresReader,
    shared: Arc<SharedRows>,
    checkpointer: Checkpointer,
    log: Arc<Mutex<PostgresLog>>,
    durations: Arc<Histogram>,
    /// `None` only while the claims are replaced.
    filter_loader: Option<FilterLoader>,
    /// Bytes of log before the current generation.
    bytes_before: u64,
    /// When the current generation began.
    since: Instant,
    /// The batches after the last checkpoint, until the world has them.
    tail: Vec<LoggedBatch>,
    /// The epoch of the newest batch that was loaded.
    epoch: u64,
}

impl PostgresStore {
    /// Opens the store at a database URL, and creates its schema if there is none. Like all of its
    /// methods it waits for the database, so it must not be called on a thread of a runtime.
    pub fn open(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let database = Arc::new(Database::parse(url)?);
        let mut session = Session::new(database.clone(), SessionSettings::default());
        let meta = schema::open(&mut session, &database.schema)?;
        let tail = session.run_again(snapshot::load_tail)?;
        let shared = Arc::new(SharedRows::default());
        shared.format.store(meta.format, Ordering::Release);
        let log = PostgresLog::new(database.clone(), shared.clone());
        let mut store = Self {
            hub: meta.hub,
            reader: PostgresReader::new(database.clone(), shared.clone()),
            checkpointer: Checkpointer::start(database.clone(), shared.clone(), options.limits)?,
            durations: log.durations(),
            log: Arc::new(Mutex::new(log)),
            filter_loader: Some(start_filter_loader(&database, &shared, tail.newest_claim)?),
            database,
            shared,
            bytes_before: 0,
            since: Instant::now(),
            tail: Vec::new(),
            epoch: tail.epoch,
        };
        store.shared.unwritten.write().active.place = tail.checkpoint;
        store.catch_up(&tail)?;
        store.log.lock().continue_at(tail.head(), tail.epoch, tail.next);
        store.tail = tail.batches;
        Ok(store)
    }

    /// Identifies the hub, so that nodes of two hubs never talk to each other.
    pub fn hub_id(&self) -> [u8; 16] {
        self.hub
    }

    /// Compares a value that only nodes with the hub's secret have; the first node stores it.
    pub fn check_secret(&self, check: [u8; 32]) -> Result<(), StoreError> {
        let mut session = Session::new(self.database.clone(), SessionSettings::default());
        session.run_again(|connection| schema::check_secret(connection, check))
    }

    /// Publishes the batches that this store does not have yet.
    fn catch_up(&mut self, tail: &LogTail) -> Result<(), StoreError> {
        let published = self.place();
        if tail.checkpoint.number > published.number {
            // What lies between is in the tables alone, and so are its claims.
            self.shared.drop_checkpointed(tail.checkpoint.number);
            self.shared.unwritten.write().active.place = tail.checkpoint;
            // Its thread must not complete the new filter.
            self.filter_loader = None;
            let newest = tail.newest_claim;
            self.filter_loader = Some(start_filter_loader(&self.database, &self.shared, newest)?);
        }
        self.shared.log_bytes.fetch_add(tail.bytes, Ordering::Relaxed);
        for LoggedBatch { place, batch, .. } in &tail.batches {
            if place.number > published.number {
                self.publish(Some(*place), &batch.changes, &batch.expired);
            }
        }
        Ok(())
    }

    /// Writes everything to the tables, and waits for it.
    #[cfg(test)]
    pub(crate) fn write_tables(&self) {
        self.checkpointer.write_rest();
        assert!(self.checkpointer.is_done(), "the tables can be written");
    }
}

/// Fills the filter of claims beside the lane. Claims that are written to the table later are in
/// memory first, and come to the filter when they leave it.
fn start_filter_loader(
    database: &Arc<Database>,
    shared: &Arc<SharedRows>,
    newest_claim: u64,
) -> Result<FilterLoader, StoreError> {
    *shared.claims.write() = RecentClaims::with_indexed(newest_claim);
    let settings =
        SessionSettings { answer_timeout: Some(FILTER_TIMEOUT), ..SessionSettings::default() };
    let (mut session, shared) = (Session::new(database.clone(), settings), shared.clone());
    let mut after = 0_i64;
    FilterLoader::start(move || {
        const DIGESTS: &str =
            "SELECT id, digest FROM claims WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3";
        let (last, limit) = (sql_id(newest_claim), FILTER_SLICE as i64);
        let rows =
            session.run_again(|connection| connection.query(DIGESTS, &[&after, &last, &limit]))?;
        let digests = rows.iter().map(|row| read_digest(row, 1)).collect::<Result<Vec<_>, _>>()?;
        if let Some(row) = rows.last() {
            after = row.try_get(0).map_err(store_error)?;
        }
        let is_last = rows.len() < FILTER_SLICE;
        shared.claims.write().fill_filter(&digests, is_last);
        Ok(!is_last)
    })
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.checkpointer.write_rest();
    }
}

impl Store for PostgresStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        // A session of its own: a large table takes longer than answers may take.
        let mut session = Session::new(self.database.clone(), SessionSettings::default());
        let (hot_rows, tail) = session.run_again(snapshot::load_all)?;
        let published = self.place();
        self.catch_up(&tail)?;
        if tail.head().number > published.number {
            self.log.lock().continue_at(tail.head(), tail.epoch, tail.next);
        }
        self.epoch = tail.epoch;
        self.tail = tail.batches;
        Ok(hot_rows)
    }

    fn take_tail(&mut self) -> Vec<LoggedBatch> {
        std::mem::take(&mut self.tail)
    }

    fn place(&self) -> Place {
        self.shared.unwritten.read().active.place
    }

    fn loaded_epoch(&self) -> u64 {
        self.epoch
    }

    fn make_room(&mut self) -> Result<(), StoreError> {
        self.checkpointer.make_room()
    }

    fn log(&self) -> Arc<Mutex<dyn BatchLog>> {
        self.log.clone()
    }

    fn publish(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        if !changes.claims.is_empty() {
            self.shared.claims.write().add(&changes.claims);
        }
        let bytes = self.shared.log_bytes.load(Ordering::Relaxed);
        let mut unwritten = self.shared.unwritten.write();
        if unwritten.active.is_empty() {
            (self.bytes_before, self.since) = (bytes, Instant::now());
        }
        unwritten.active.add(place, changes, expired);
        unwritten.active.bytes = bytes - self.bytes_before;
        drop(unwritten);
        self.checkpointer.freeze_if_long(self.since.elapsed());
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        self.reader.load(key)
    }

    fn load_all(&mut self, keys: &[RowKey]) -> Result<Vec<Option<Row>>, StoreError> {
        self.reader.load_all(keys)
    }

    fn recent_rows(&self) -> Option<Arc<dyn RecentRows>> {
        Some(self.shared.clone())
    }

    fn report_failures(&mut self, handler: FailureHandler) {
        self.checkpointer.report_failures(handler);
    }

    fn run_maintenance(&mut self) -> Result<(), StoreError> {
        self.checkpointer.make_room()?;
        self.checkpointer.write_all();
        Ok(())
    }

    fn sync_durations(&self) -> Option<Arc<Histogram>> {
        Some(self.durations.clone())
    }

    fn open_shared_log(&self) -> Result<Option<Box<dyn SharedLog>>, StoreError> {
        let (database, shared) = (self.database.clone(), self.shared.clone());
        Ok(Some(Box::new(PostgresSharedLog::new(database, shared))))
    }

    fn set_writing(&mut self, writing: bool) {
        self.checkpointer.set_writing(writing);
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(PostgresReader::new(self.database.clone(), self.shared.clone())))
    }
}
