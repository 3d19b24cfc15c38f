//! For tests: the log of a cluster in memory, and connections between nodes of one process.

mod gate;
mod network;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use rialto_core::changes::{Batch, Changes, Counters, ExpiredRows};
use rialto_core::encoding;
use rialto_core::time::Timestamp;

use super::frame::BatchRecord;
use super::mistake::Mistake;
use super::{Lease, Look, LookQuery, NodeId, NodeReport, NodeRow, SharedLog};
use crate::store::log::record::chain_hash;
use crate::store::log::{ChainHash, LoggedBatch, NextIds, Place};
use crate::store::memory::MemoryStore;
use crate::store::{BatchLog, Reader, Row, RowKey, Store, StoreError};
use gate::AppendGates;
pub use network::MemoryNetwork;

/// Every this many batches, what was encoded is decoded and compared.
const DECODED: u64 = 8;

/// What happens to the next append of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFault {
    /// The connection ends, and the batch is written or not.
    Doubt {
        is_written: bool,
    },
    /// The connection ends, and the batch is written when the test says so, if its place is free
    /// then.
    Late,
    Full,
}

struct LogRow {
    epoch: u64,
    hash: ChainHash,
    batch: Batch,
}

/// A batch on its way to the log, of a session that its node no longer has.
struct LateRow {
    number: u64,
    before: ChainHash,
    row: LogRow,
}

#[derive(Default)]
struct Record {
    rows: Vec<LogRow>,
    lease: Lease,
    nodes: HashMap<NodeId, NodeReport>,
    now: Timestamp,
    faults: VecDeque<AppendFault>,
    late: Vec<LateRow>,
    /// Nodes that do not reach the database.
    cut: HashSet<NodeId>,
    /// Whether reports wait, and how many do.
    holds_reports: bool,
    held_reports: usize,
    mistake: Option<Mistake>,
}

impl Record {
    fn head(&self) -> Place {
        let hash = self.rows.last().map_or(ChainHash::default(), |row| row.hash);
        Place { number: self.rows.len() as u64, hash }
    }

    fn hash_at(&self, number: u64) -> Option<ChainHash> {
        match number {
            0 => Some(ChainHash::default()),
            number => self.rows.get(usize::try_from(number).ok()? - 1).map(|row| row.hash),
        }
    }

    fn insert(&mut self, number: u64, before: ChainHash, row: LogRow) -> Result<(), StoreError> {
        if self.hash_at(number - 1) != Some(before) {
            return Err(StoreError::Taken { number });
        }
        if number != self.rows.len() as u64 + 1 {
            if self.mistake != Some(Mistake::NoKey) {
                return Err(StoreError::Taken { number });
            }
            // The second batch replaces the first.
            self.rows.truncate(usize::try_from(number).unwrap_or(usize::MAX) - 1);
        }
        self.rows.push(row);
        Ok(())
    }

    /// The batches after a place.
    fn batches_after(&self, number: u64) -> Vec<LoggedBatch> {
        let rows = self.rows.iter().zip(1..).skip(usize::try_from(number).unwrap_or(usize::MAX));
        let logged = |(row, number): (&LogRow, u64)| LoggedBatch {
            place: Place { number, hash: row.hash },
            epoch: row.epoch,
            batch: row.batch.clone(),
        };
        rows.map(logged).collect()
    }
}

/// The database of a cluster.
#[derive(Clone, Default)]
pub struct MemoryCluster {
    record: Arc<Mutex<Record>>,
    reports_changed: Arc<Condvar>,
    gates: AppendGates,
}

impl MemoryCluster {
    /// A database whose clock shows this time.
    pub fn at(now: Timestamp) -> Self {
        let cluster = Self::default();
        cluster.record.lock().now = now;
        cluster
    }

    /// A node's store over it.
    pub fn store(&self) -> MemoryNodeStore {
        let log = MemoryNodeLog {
            cluster: self.clone(),
            node: Arc::default(),
            place: Place::default(),
            epoch: 0,
            next: NextIds::default(),
            has_failed: false,
            newest: None,
        };
        MemoryNodeStore {
            cluster: self.clone(),
            rows: MemoryStore::default(),
            node: log.node.clone(),
            log: Arc::new(Mutex::new(log)),
            place: (Place::default(), 0),
            tail: Vec::new(),
        }
    }

    /// The batches of the log.
    pub fn batches(&self) -> Vec<LoggedBatch> {
        self.batches_after(0)
    }

    /// The batches after a place.
    pub fn batches_after(&self, number: u64) -> Vec<LoggedBatch> {
        self.record.lock().batches_after(number)
    }

    /// The newest batch.
    pub fn head(&self) -> Place {
        self.record.lock().head()
    }

    /// The hash of a batch, if the log is that long.
    pub fn hash_at(&self, number: u64) -> Option<ChainHash> {
        self.record.lock().hash_at(number)
    }

    /// Sets the clock of the database.
    pub fn set_time(&self, now: Timestamp) {
        self.record.lock().now = now;
    }

    pub fn lease(&self) -> Lease {
        self.record.lock().lease.clone()
    }

    /// Sets what happens to the appends after those that are set already.
    pub fn arm(&self, fault: AppendFault) {
        self.record.lock().faults.push_back(fault);
    }

    /// What was set for later appends does not happen. Returns whether there was anything.
    pub fn disarm(&self) -> bool {
        let mut record = self.record.lock();
        let had_faults = !record.faults.is_empty();
        record.faults.clear();
        had_faults
    }

    /// Holds back the next append of a node, which must be on another thread.
    pub fn hold_append(&self, node: NodeId) {
        self.gates.close(node);
    }

    /// Lets the append go on with what is set for it, and returns when it has ended.
    pub fn release_append(&self, node: NodeId) {
        self.gates.open(node);
    }

    /// How many batches are on their way.
    pub fn late_count(&self) -> usize {
        self.record.lock().late.len()
    }

    /// One of the batches that are on their way is lost.
    pub fn lose_late(&self, index: usize) {
        self.record.lock().late.swap_remove(index);
    }

    /// What is on its way arrives, if its place is free. Returns how many batches did.
    pub fn land_late(&self) -> usize {
        let mut record = self.record.lock();
        let late = std::mem::take(&mut record.late);
        let landed = late
            .into_iter()
            .filter_map(|LateRow { number, before, row }| record.insert(number, before, row).ok());
        landed.count()
    }

    /// Cuts or restores a node's connections to the database.
    pub fn set_cut(&self, node: NodeId, is_cut: bool) {
        let mut record = self.record.lock();
        match is_cut {
            true => record.cut.insert(node),
            false => record.cut.remove(&node),
        };
    }

    /// Lets reports of nodes wait, as on a database whose disk is slow, or lets them go on.
    pub fn hold_reports(&self, hold: bool) {
        self.record.lock().holds_reports = hold;
        self.reports_changed.notify_all();
    }

    /// How many reports wait.
    pub fn held_reports(&self) -> usize {
        self.record.lock().held_reports
    }

    /// The newest batch is lost, as in a fail-over to a standby that lags behind.
    pub fn lose_newest(&self) {
        self.record.lock().rows.pop();
    }

    /// Plants a mistake: places are no longer unique.
    pub fn drop_key(&self) {
        self.plant(Mistake::NoKey);
    }

    /// Plants a mistake of the database.
    pub fn plant(&self, mistake: Mistake) {
        self.record.lock().mistake = Some(mistake);
    }

    fn reach(&self, node: NodeId) -> Result<parking_lot::MutexGuard<'_, Record>, StoreError> {
        let record = self.record.lock();
        match record.cut.contains(&node) {
            true => Err(StoreError::Unreachable("the test has cut the connection".to_owned())),
            false => Ok(record),
        }
    }
}

/// A node's store: all rows are in its own memory, because the log is never shortened.
pub struct MemoryNodeStore {
    cluster: MemoryCluster,
    rows: MemoryStore,
    /// Known once the node has reported or taken the lease.
    node: Arc<Mutex<NodeId>>,
    log: Arc<Mutex<MemoryNodeLog>>,
    place: (Place, u64),
    tail: Vec<LoggedBatch>,
}

impl Store for MemoryNodeStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        let batches = self.cluster.batches();
        for LoggedBatch { place, epoch, batch } in &batches {
            self.publish(Some(*place), &batch.changes, &batch.expired);
            self.place = (*place, *epoch);
        }
        self.tail = batches;
        Ok(Changes::default())
    }

    fn take_tail(&mut self) -> Vec<LoggedBatch> {
        std::mem::take(&mut self.tail)
    }

    fn log(&self) -> Arc<Mutex<dyn BatchLog>> {
        self.log.clone()
    }

    fn publish(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        self.rows.publish(place, changes, expired);
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        Store::load(&mut self.rows, key)
    }

    fn open_shared_log(&self) -> Result<Option<Box<dyn SharedLog>>, StoreError> {
        let (cluster, node) = (self.cluster.clone(), self.node.clone());
        Ok(Some(Box::new(MemorySharedLog { cluster, node })))
    }

    fn place(&self) -> Place {
        self.place.0
    }

    fn loaded_epoch(&self) -> u64 {
        self.place.1
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.rows.open_reader()
    }
}

/// Where a node appends.
struct MemoryNodeLog {
    cluster: MemoryCluster,
    node: Arc<Mutex<NodeId>>,
    place: Place,
    epoch: u64,
    next: NextIds,
    has_failed: bool,
    newest: Option<BatchRecord>,
}

impl MemoryNodeLog {
    fn append_now(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        let number = self.place.number + 1;
        if self.has_failed {
            return Err(StoreError::Failed("an earlier append failed".to_owned()));
        }
        let node = *self.node.lock();
        let mut record = self.cluster.reach(node).inspect_err(|_| self.has_failed = true)?;
        let fault = record.faults.pop_front();
        if fault == Some(AppendFault::Full) {
            return Err(StoreError::Full);
        }
        self.next.check(&batch.changes)?;
        let body = encoding::encode_batch(batch, Vec::new())
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        let hash = chain_hash(self.place.hash, number, self.epoch, &body);
        if number.is_multiple_of(DECODED) {
            let read = encoding::decode_batch(&body)
                .map_err(|error| StoreError::Corrupt(error.to_string()))?;
            assert_eq!(read, *batch, "a batch changed in the log");
        }
        let row = LogRow { epoch: self.epoch, hash, batch: batch.clone() };
        let doubt = || StoreError::Unreachable("the test has ended the connection".to_owned());
        let inserted = match fault {
            None => record.insert(number, self.place.hash, row),
            Some(AppendFault::Doubt { is_written: true }) => {
                let _ = record.insert(number, self.place.hash, row);
                Err(doubt())
            }
            Some(AppendFault::Late) => {
                record.late.push(LateRow { number, before: self.place.hash, row });
                Err(doubt())
            }
            Some(_) => Err(doubt()),
        };
        self.has_failed = inserted.is_err();
        inserted?;
        self.place = Place { number, hash };
        self.newest = Some(BatchRecord { format: encoding::BATCH_VERSION, body });
        self.next.advance(&batch.changes);
        Ok(self.place)
    }

    fn confirm_now(&self) -> Result<(), StoreError> {
        let record = self.cluster.reach(*self.node.lock())?;
        match record.head() == self.place || record.mistake == Some(Mistake::NoConfirmation) {
            true => Ok(()),
            false => Err(StoreError::Taken { number: self.place.number + 1 }),
        }
    }
}

impl BatchLog for MemoryNodeLog {
    fn append(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        let (gates, node) = (self.cluster.gates.clone(), *self.node.lock());
        gates.pass(node, || self.append_now(batch))
    }

    fn newest_record(&self) -> Option<BatchRecord> {
        self.newest.clone()
    }

    fn confirm_head(&mut self) -> Result<(), StoreError> {
        let (gates, node) = (self.cluster.gates.clone(), *self.node.lock());
        gates.pass(node, || self.confirm_now())
    }

    fn continue_at(&mut self, place: Place, epoch: u64, next: Counters) {
        (self.place, self.epoch, self.next) = (place, epoch, NextIds(next));
        self.has_failed = false;
    }
}

struct MemorySharedLog {
    cluster: MemoryCluster,
    node: Arc<Mutex<NodeId>>,
}

impl MemorySharedLog {
    fn reach(&self) -> Result<parking_lot::MutexGuard<'_, Record>, StoreError> {
        let node = *self.node.lock();
        self.cluster.reach(node)
    }
}

impl SharedLog for MemorySharedLog {
    fn look(&mut self, query: LookQuery) -> Result<Look, StoreError> {
        let record = self.reach()?;
        let LookQuery { after, with_batches } = query;
        if record.hash_at(after.number) != Some(after.hash) {
            return Err(StoreError::LostPlace(format!(
                "this node is at batch {} ({:?}), and the log ends at batch {} ({:?})",
                after.number,
                after.hash,
                record.head().number,
                record.head().hash
            )));
        }
        let batches = match with_batches {
            true => record.batches_after(after.number),
            false => Vec::new(),
        };
        Ok(Look {
            batches,
            head: record.head(),
            head_epoch: record.rows.last().map_or(0, |row| row.epoch),
            has_more: false,
            lease: record.lease.clone(),
        })
    }

    fn hash_of(&mut self, number: u64) -> Result<Option<ChainHash>, StoreError> {
        Ok(self.reach()?.hash_at(number))
    }

    fn take_lease(
        &mut self,
        seen: &Lease,
        node: NodeId,
        address: &str,
    ) -> Result<Option<Lease>, StoreError> {
        *self.node.lock() = node;
        let mut record = self.reach()?;
        if (record.lease.epoch, record.lease.beat) != (seen.epoch, seen.beat) {
            return Ok(None);
        }
        let address = address.to_owned();
        let (epoch, beat) = (seen.epoch + 1, seen.beat + 1);
        record.lease = Lease { epoch, node, address, session: 0, beat };
        Ok(Some(record.lease.clone()))
    }

    fn beat(&mut self, lease: &Lease) -> Result<bool, StoreError> {
        let mut record = self.reach()?;
        let is_mine = record.lease.epoch == lease.epoch;
        record.lease.beat += u64::from(is_mine);
        Ok(is_mine)
    }

    fn release_lease(&mut self, lease: &Lease) -> Result<(), StoreError> {
        let mut record = self.reach()?;
        if record.lease.epoch == lease.epoch {
            (record.lease.node, record.lease.address) = (NodeId(0), String::new());
        }
        Ok(())
    }

    fn end_session_of(&mut self, _: &Lease) -> Result<(), StoreError> {
        Ok(())
    }

    fn report(&mut self, report: &NodeReport) -> Result<Vec<NodeRow>, StoreError> {
        *self.node.lock() = report.node;
        let mut record = self.reach()?;
        record.held_reports += 1;
        self.cluster.reports_changed.wait_while(&mut record, |record| record.holds_reports);
        record.held_reports -= 1;
        record.nodes.insert(report.node, report.clone());
        let seen_at = record.now;
        let row = |report: &NodeReport| NodeRow { report: report.clone(), seen_at, silent_ms: 0 };
        Ok(record.nodes.values().map(row).collect())
    }

    fn remove_report(&mut self, node: NodeId) -> Result<(), StoreError> {
        self.reach()?.nodes.remove(&node);
        Ok(())
    }

    fn truncate(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn raise_format(&mut self, _: u8) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        Ok(self.cluster.record.lock().now)
    }
}
