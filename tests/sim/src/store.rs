//! A store that can crash anywhere around an append or a checkpoint, and run out of space.
//!
//! Like the real one it has a log of encoded records in two files, tables that are a checkpoint of
//! it, and rows in memory that are not in the tables yet. The log and the tables survive a crash. A
//! start reads the tables, and the records after their place with the engine's own reader.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use rialto_core::alias::Digest;
use rialto_core::changes::{Batch, Changes, ExpiredRows};
use rialto_engine::store::log::record::{RecordHeader, chain_after, encode_record, find_records};
use rialto_engine::store::log::{LogId, LoggedBatch, Place};
use rialto_engine::store::memory::MemoryStore;
use rialto_engine::store::unwritten::{Generation, UnwrittenRows, join_page};
use rialto_engine::store::{BatchLog, PageQuery, Reader, Row, RowKey, Store, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is on disk of a record whose append did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenPart {
    Nothing,
    /// Some of its pages.
    Part,
    Whole,
}

/// What happens to an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// The disk is full, and a part of the record may have been written.
    Full(WrittenPart),
    /// It fails.
    Failed(WrittenPart),
}

/// What one append wrote.
#[derive(Clone)]
pub struct Written {
    pub batch: Changes,
    pub expired: ExpiredRows,
}

impl Written {
    /// How it differs from what was decided, as text.
    pub fn differs(&self, batch: &Changes, expired: &ExpiredRows) -> Vec<String> {
        let mut all = Vec::new();
        macro_rules! compare {
            ($($field:ident),+) => {$(
                if self.batch.$field != batch.$field {
                    let (is, should) = (&self.batch.$field, &batch.$field);
                    let field = stringify!($field);
                    all.push(format!("{field}: written {is:?}, decided {should:?}"));
                }
            )+};
        }
        compare!(
            agents,
            agent_states,
            inboxes,
            inboxes_to_persist,
            owners,
            jobs,
            keys,
            rotations,
            deliveries,
            idempotency_records
        );
        compare!(
            aliases,
            claims,
            entries,
            transfers,
            notices,
            completed_deliveries,
            outcomes,
            history_lines,
            market_records
        );
        compare!(next, idempotency_entries);
        if self.expired != *expired {
            all.push(format!("expired {:?}, not {expired:?}", self.expired));
        }
        all
    }
}

/// How one append ended.
pub struct Append {
    /// What is on disk of it now, if it is there.
    pub written: Option<Written>,
    /// Whether its fault occurred.
    pub has_failed: bool,
}

/// What a start read.
#[derive(Clone)]
pub struct Reopened {
    pub tables: Changes,
    pub tail: Vec<LoggedBatch>,
}

const LOG: LogId = *b"simulated log id";
/// A file longer than this is followed by the other, if that is free: a few records.
const FILE_BYTES: usize = 96 << 10;
/// Every this many starts each row is parsed from its text again.
const REREAD: u64 = 4;
/// Every this many batches the record is decoded at once.
const DECODED: u64 = 8;
/// Bytes of a page, the unit in which a disk writes.
const PAGE_BYTES: usize = 4_096;

/// The two files of the log.
#[derive(Default)]
struct LogFiles {
    files: [Vec<u8>; 2],
    /// The newest batch in each file.
    newest: [u64; 2],
    current: usize,
    offset: usize,
    place: Place,
    buffer: Vec<u8>,
}

impl LogFiles {
    /// Writes so many bytes of the record in the buffer at the end of the log.
    fn write(&mut self, bytes: usize, checkpointed: u64) {
        let other = 1 - self.current;
        if self.offset >= FILE_BYTES && self.newest[other] <= checkpointed {
            (self.current, self.offset) = (other, 0);
        }
        let file = &mut self.files[self.current];
        let end = self.offset + bytes;
        file.resize(file.len().max(end), 0);
        file[self.offset..end].copy_from_slice(&self.buffer[..bytes]);
    }

    /// Reads the files after a crash: the batches after the place of the tables.
    fn reopen(&mut self, tables: Place) -> Vec<LoggedBatch> {
        let found = self.files.each_ref().map(|file| find_records(LOG, file));
        let ends = found.each_ref().map(|records| {
            let newest = records.iter().max_by_key(|record| record.number());
            newest.map_or((0, 0), |record| (record.number(), record.end() as usize))
        });
        self.newest = ends.map(|(number, _)| number);
        self.current = usize::from(ends[1].0 > ends[0].0);
        self.offset = ends[self.current].1;
        let records = found.into_iter().flatten().collect();
        let tail = chain_after(tables, records).expect("the log has no gap");
        self.place = tail.last().map_or(tables, |batch| batch.place);
        tail
    }
}

/// What survives a crash, what does not, and the controls of the simulation.
#[derive(Default)]
struct Disk {
    log: LogFiles,
    tables: MemoryStore,
    /// Up to which batch the tables are complete.
    place: Place,
    /// Lost in a crash, and rebuilt from the log.
    unwritten: UnwrittenRows,
    faults: VecDeque<Fault>,
    appends: VecDeque<Append>,
    appended: u64,
    starts: u64,
    reopened: Option<Reopened>,
}

impl Disk {
    fn append(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        let fault = self.faults.pop_front().unwrap_or_default();
        let (checkpointed, log) = (self.place.number, &mut self.log);
        let header = RecordHeader { log: LOG, before: log.place, epoch: 0 };
        let place = encode_record(header, batch, &mut log.buffer)?;
        self.appended += 1;
        if self.appended.is_multiple_of(DECODED) {
            is_read_as_written(&log.buffer, log.place, batch);
        }
        let bytes = log.buffer.len();
        let kept = match fault {
            Fault::None => WrittenPart::Whole,
            Fault::Full(kept) | Fault::Failed(kept) => kept,
        };
        match kept {
            WrittenPart::Nothing => {}
            // The last page is missing, so no record is whole.
            WrittenPart::Part => log.write(bytes - PAGE_BYTES / 2, checkpointed),
            WrittenPart::Whole => log.write(bytes, checkpointed),
        }
        let (batch, expired) = (batch.changes.clone(), batch.expired.clone());
        let written = (kept == WrittenPart::Whole).then_some(Written { batch, expired });
        self.appends.push_back(Append { written, has_failed: fault != Fault::None });
        match fault {
            Fault::Full(_) => return Err(StoreError::Full),
            Fault::Failed(_) => return Err(StoreError::Failed("as planned".to_owned())),
            Fault::None => {}
        }
        log.offset += bytes;
        log.newest[log.current] = place.number;
        log.place = place;
        Ok(place)
    }

    /// Everything that was only in memory is lost; the tables and the log are read.
    fn reopen(&mut self) {
        let mut tables = self.tables.load_hot_rows().expect("maps can be read");
        self.starts += 1;
        if self.starts.is_multiple_of(REREAD) {
            reread_rows(&mut tables);
        }
        let tail = self.log.reopen(self.place);
        self.unwritten = UnwrittenRows::default();
        self.unwritten.active.place = self.place;
        for LoggedBatch { place, batch, .. } in &tail {
            self.unwritten.active.add(Some(*place), &batch.changes, &batch.expired);
        }
        self.faults.clear();
        self.appends.clear();
        self.reopened = Some(Reopened { tables, tail });
    }

    /// Begins a checkpoint, or ends the one that has begun.
    fn checkpoint(&mut self) {
        let Some(generation) = self.unwritten.frozen.pop_front() else {
            self.unwritten.freeze();
            return;
        };
        self.tables.publish(None, &generation.changes, &generation.expired);
        self.place = generation.place;
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        if let RowKey::Claim(digest) = key
            && let Some(row) = self.unwritten_claim(digest)
        {
            return Ok(Some(row));
        }
        match self.unwritten.get(key) {
            Some(row) => Ok(row),
            None => Store::load(&mut self.tables, key),
        }
    }

    /// The newest use of an id that is not in the tables yet.
    fn unwritten_claim(&self, digest: Digest) -> Option<Row> {
        let newest = |rows: &Generation| {
            rows.changes.claims.iter().rev().find(|claim| claim.digest == digest).copied()
        };
        let older = || self.unwritten.frozen.iter().rev().find_map(|rows| newest(rows));
        newest(&self.unwritten.active).or_else(older).map(Row::Claim)
    }
}

/// The store, and the controls of its faults.
#[derive(Clone, Default)]
pub struct SimStore(Arc<Mutex<Disk>>);

impl SimStore {
    /// Sets what happens to the append after those that are set already.
    pub fn arm(&self, fault: Fault) {
        self.0.lock().faults.push_back(fault);
    }

    /// What was set does not happen: there was nothing to append.
    pub fn disarm(&self) {
        self.0.lock().faults.clear();
    }

    /// How the oldest append ended that was not asked for yet.
    pub fn take_append(&self) -> Option<Append> {
        self.0.lock().appends.pop_front()
    }

    /// Begins a checkpoint, or ends the one that has begun.
    pub fn checkpoint(&self) {
        self.0.lock().checkpoint();
    }

    /// What the last start read.
    pub fn reopened(&self) -> Option<Reopened> {
        self.0.lock().reopened.take()
    }
}

impl Store for SimStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        let mut disk = self.0.lock();
        disk.reopen();
        Ok(disk.reopened.as_ref().expect("it was opened just now").tables.clone())
    }

    fn take_tail(&mut self) -> Vec<LoggedBatch> {
        let disk = self.0.lock();
        disk.reopened.as_ref().map(|reopened| reopened.tail.clone()).unwrap_or_default()
    }

    fn log(&self) -> Arc<Mutex<dyn BatchLog>> {
        Arc::new(Mutex::new(SimLog(self.clone())))
    }

    fn publish(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        self.0.lock().unwritten.active.add(place, changes, expired);
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        self.0.lock().load(key)
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

impl Reader for SimStore {
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        self.0.lock().load(key)
    }

    fn load_page(&mut self, page: PageQuery) -> Result<Vec<Row>, StoreError> {
        let mut disk = self.0.lock();
        let unwritten = disk.unwritten.page(page);
        Ok(join_page(page, unwritten, disk.tables.load_page(page)?))
    }
}

/// Its log, for the lane and the thread beside it.
struct SimLog(SimStore);

impl BatchLog for SimLog {
    fn append(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        self.0.0.lock().append(batch)
    }
}

/// Panics unless the record is found after that place and decodes to the batch.
fn is_read_as_written(record: &[u8], before: Place, batch: &Batch) {
    let read = chain_after(before, find_records(LOG, record)).expect("it continues the chain");
    let [read] = &read[..] else { panic!("one record was written, and {} found", read.len()) };
    assert_eq!(&read.batch, batch, "a batch changed in the log");
}

fn reread_rows(rows: &mut Changes) {
    rows.agents.values_mut().for_each(reread);
    rows.agent_states.values_mut().for_each(reread);
    rows.owners.values_mut().for_each(reread);
    rows.jobs.values_mut().for_each(reread);
    rows.keys.values_mut().for_each(reread);
    rows.rotations.values_mut().for_each(reread);
    rows.deliveries.values_mut().flatten().for_each(reread);
}

fn reread<R: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(row: &mut Arc<R>) {
    let text = serde_json::to_string(&**row).expect("rows can be written");
    let read: R = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(read, **row, "a row changed when it was stored and read");
    *row = Arc::new(read);
}
