//! The in-memory store: maps, for tests, simulation and benchmarks. Nothing is persisted.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use rialto_core::alias::{Claim, Digest};
use rialto_core::changes::{Batch, Changes, ExpiredRows};
use rialto_core::event::HistoryLine;
use rialto_core::id::{
    AnswerId, EntryId, EventId, JobId, NoticeId, OutcomeId, PostingId, TransferId,
};
use rialto_core::idempotency::IdempotencyRecord;
use rialto_core::job::Job;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::market::MarketRecord;
use rialto_core::notice::{CompletedDelivery, Notice};
use rialto_core::reputation::Outcome;

use super::log::Place;
use super::{BatchLog, PageQuery, Reader, Row, RowKey, Store, StoreError};

#[derive(Default)]
struct Tables {
    /// Every row that a running world has in memory, as one big change.
    hot_rows: Changes,
    claims: HashMap<Digest, Claim>,
    archive: BTreeMap<JobId, Arc<Job>>,
    transfers: BTreeMap<TransferId, Arc<Transfer>>,
    entries: BTreeMap<EntryId, Entry>,
    notices: BTreeMap<NoticeId, Arc<Notice>>,
    arrivals: BTreeMap<NoticeId, CompletedDelivery>,
    outcomes: BTreeMap<OutcomeId, Outcome>,
    lines: BTreeMap<EventId, Arc<HistoryLine>>,
    postings: BTreeMap<PostingId, Arc<MarketRecord>>,
    idempotency_records: BTreeMap<AnswerId, Arc<IdempotencyRecord>>,
}

/// Rows in memory, shared between the lane and its readers.
#[derive(Clone, Default)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
}

impl Store for MemoryStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        Ok(self.tables.lock().hot_rows.clone())
    }

    fn log(&self) -> Arc<Mutex<dyn BatchLog>> {
        Arc::new(Mutex::new(NoLog))
    }

    fn publish(&mut self, _: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        self.tables.lock().write(changes, expired);
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        Ok(self.tables.lock().get(key))
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

/// Nothing is persisted, so nothing is appended.
struct NoLog;

impl BatchLog for NoLog {
    fn append(&mut self, _: &Batch) -> Result<Place, StoreError> {
        Ok(Place::default())
    }
}

impl Reader for MemoryStore {
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        Ok(self.tables.lock().get(key))
    }

    fn load_page(&mut self, page: PageQuery) -> Result<Vec<Row>, StoreError> {
        let tables = self.tables.lock();
        Ok(match page {
            PageQuery::Lines { after, limit } => {
                let later = (Bound::Excluded(after), Bound::Unbounded);
                let lines = tables.lines.range(later).take(limit);
                lines.map(|(_, line)| Row::Line(HistoryLine::clone(line))).collect()
            }
            PageQuery::Entries { before, limit } => {
                let entries = tables.entries.range(..before).rev().take(limit);
                entries.map(|(_, entry)| Row::Entry(entry.clone())).collect()
            }
            PageQuery::MarketRecords { after, before, newest_first, limit } => {
                let between = tables.postings.values();
                let between = between.filter(|one| one.id > after && one.id < before);
                let rows: Vec<_> = between.cloned().map(Row::Posting).collect();
                match newest_first {
                    true => rows.into_iter().rev().take(limit).collect(),
                    false => rows.into_iter().take(limit).collect(),
                }
            }
            PageQuery::Jobs { before, limit } => {
                let jobs = tables.archive.range(..before).rev().take(limit);
                jobs.map(|(_, job)| Row::Job(job.clone())).collect()
            }
        })
    }
}

impl Tables {
    fn write(&mut self, batch: &Changes, forgotten: &ExpiredRows) {
        let at_hand = &mut self.hot_rows;
        at_hand.agents.extend(batch.agents.clone());
        at_hand.agent_states.extend(batch.agent_states.clone());
        at_hand.inboxes.extend(batch.inboxes.clone());
        at_hand.owners.extend(batch.owners.clone());
        at_hand.keys.extend(batch.keys.clone());
        at_hand.rotations.extend(batch.rotations.clone());
        at_hand.idempotency_entries.extend(batch.idempotency_entries.clone());
        self.idempotency_records.extend(batch.idempotency_records.clone());
        at_hand.aliases.extend(batch.aliases.clone());
        at_hand.next = batch.next.or(at_hand.next);
        for id in &forgotten.answers {
            at_hand.idempotency_entries.remove(id);
            self.idempotency_records.remove(id);
        }
        for (_, id) in &forgotten.keys {
            at_hand.keys.remove(id);
        }
        for (id, push) in &batch.deliveries {
            match push {
                Some(push) => at_hand.deliveries.insert(*id, Some(push.clone())),
                None => at_hand.deliveries.remove(id),
            };
        }
        for (id, job) in &batch.jobs {
            if job.state.is_final() {
                at_hand.jobs.remove(id);
                self.archive.insert(*id, job.clone());
            } else {
                at_hand.jobs.insert(*id, job.clone());
            }
        }
        self.claims.extend(batch.claims.iter().map(|claim| (claim.digest, *claim)));
        self.transfers.extend(batch.transfers.iter().map(|one| (one.id, one.clone())));
        self.entries.extend(batch.entries.iter().map(|one| (one.id, one.clone())));
        self.notices.extend(batch.notices.iter().map(|one| (one.id, one.clone())));
        self.arrivals.extend(batch.completed_deliveries.clone());
        self.outcomes.extend(batch.outcomes.iter().map(|one| (one.id, one.clone())));
        self.lines.extend(batch.history_lines.iter().map(|one| (one.id, one.clone())));
        self.postings.extend(batch.market_records.iter().map(|one| (one.id, one.clone())));
    }

    fn get(&self, key: RowKey) -> Option<Row> {
        match key {
            RowKey::Agent(id) => self.hot_rows.agents.get(&id).cloned().map(Row::Agent),
            RowKey::Claim(digest) => self.claims.get(&digest).copied().map(Row::Claim),
            RowKey::Job(id) => {
                let job = self.archive.get(&id).or_else(|| self.hot_rows.jobs.get(&id));
                job.cloned().map(Row::Job)
            }
            RowKey::Transfer(id) => self.transfers.get(&id).cloned().map(Row::Transfer),
            RowKey::Entry(id) => self.entries.get(&id).cloned().map(Row::Entry),
            RowKey::Notice(id) => self.notices.get(&id).map(|one| Row::Notice(Notice::clone(one))),
            RowKey::Arrival(id) => self.arrivals.get(&id).cloned().map(Row::Arrival),
            RowKey::Outcome(id) => self.outcomes.get(&id).cloned().map(Row::Outcome),
            RowKey::MarketRecord(id) => self.postings.get(&id).cloned().map(Row::Posting),
            RowKey::IdempotencyRecord(id) => {
                self.idempotency_records.get(&id).cloned().map(Row::Memory)
            }
        }
    }
}
