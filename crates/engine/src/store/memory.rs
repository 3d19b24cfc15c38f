//! The in-memory store: maps, for tests, simulation and benchmarks. Nothing is persisted.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;
use rialto_core::alias::{Claim, Digest};
use rialto_core::changes::{Changes, Forgotten};
use rialto_core::event::Line;
use rialto_core::id::{
    AnswerId, EntryId, EventId, JobId, NoticeId, OutcomeId, PostingId, TransferId,
};
use rialto_core::job::Job;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::market::Posting;
use rialto_core::idempotency::Memory;
use rialto_core::notice::{Arrival, Notice};
use rialto_core::reputation::Outcome;

use super::{Key, Page, Reader, Row, Store, StoreError};

#[derive(Default)]
struct Tables {
    /// Every row that a running world has in memory, as one big change.
    at_hand: Changes,
    claims: HashMap<Digest, Claim>,
    archive: BTreeMap<JobId, Arc<Job>>,
    transfers: BTreeMap<TransferId, Arc<Transfer>>,
    entries: BTreeMap<EntryId, Entry>,
    notices: BTreeMap<NoticeId, Arc<Notice>>,
    arrivals: BTreeMap<NoticeId, Arrival>,
    outcomes: BTreeMap<OutcomeId, Outcome>,
    lines: BTreeMap<EventId, Arc<Line>>,
    postings: BTreeMap<PostingId, Arc<Posting>>,
    memories: BTreeMap<AnswerId, Arc<Memory>>,
}

/// Rows in memory, shared between the lane and its readers.
#[derive(Clone, Default)]
pub struct MemoryStore {
    tables: Arc<Mutex<Tables>>,
}

impl Store for MemoryStore {
    fn rebuild(&mut self) -> Result<Changes, StoreError> {
        Ok(self.tables.lock().at_hand.clone())
    }

    fn commit(&mut self, batch: &Changes, forgotten: &Forgotten) -> Result<(), StoreError> {
        self.tables.lock().write(batch, forgotten);
        Ok(())
    }

    fn load(&mut self, key: Key) -> Result<Option<Row>, StoreError> {
        Ok(self.tables.lock().get(key))
    }

    fn tend(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

impl Reader for MemoryStore {
    fn load(&mut self, key: Key) -> Result<Option<Row>, StoreError> {
        Ok(self.tables.lock().get(key))
    }

    fn page(&mut self, page: Page) -> Result<Vec<Row>, StoreError> {
        let tables = self.tables.lock();
        Ok(match page {
            Page::Lines { after, limit } => {
                let later = (Bound::Excluded(after), Bound::Unbounded);
                let lines = tables.lines.range(later).take(limit);
                lines.map(|(_, line)| Row::Line(Line::clone(line))).collect()
            }
            Page::Entries { before, limit } => {
                let entries = tables.entries.range(..before).rev().take(limit);
                entries.map(|(_, entry)| Row::Entry(entry.clone())).collect()
            }
            Page::Postings { after, before, newest_first, limit } => {
                let between = tables.postings.values();
                let between = between.filter(|one| one.id > after && one.id < before);
                let rows: Vec<_> = between.cloned().map(Row::Posting).collect();
                match newest_first {
                    true => rows.into_iter().rev().take(limit).collect(),
                    false => rows.into_iter().take(limit).collect(),
                }
            }
            Page::Jobs { before, limit } => {
                let jobs = tables.archive.range(..before).rev().take(limit);
                jobs.map(|(_, job)| Row::Job(job.clone())).collect()
            }
        })
    }
}

impl Tables {
    fn write(&mut self, batch: &Changes, forgotten: &Forgotten) {
        let at_hand = &mut self.at_hand;
        at_hand.agents.extend(batch.agents.clone());
        at_hand.desks.extend(batch.desks.clone());
        at_hand.mailboxes.extend(batch.mailboxes.clone());
        at_hand.owners.extend(batch.owners.clone());
        at_hand.keys.extend(batch.keys.clone());
        at_hand.turns.extend(batch.turns.clone());
        at_hand.remembered.extend(batch.remembered.clone());
        self.memories.extend(batch.memories.clone());
        at_hand.aliases.extend(batch.aliases.clone());
        at_hand.next = batch.next.or(at_hand.next);
        for id in &forgotten.answers {
            at_hand.remembered.remove(id);
            self.memories.remove(id);
        }
        for (_, id) in &forgotten.keys {
            at_hand.keys.remove(id);
        }
        for (id, push) in &batch.pushes {
            match push {
                Some(push) => at_hand.pushes.insert(*id, Some(push.clone())),
                None => at_hand.pushes.remove(id),
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
        self.arrivals.extend(batch.arrivals.iter().map(|one| (one.notice, one.clone())));
        self.outcomes.extend(batch.outcomes.iter().map(|one| (one.id, one.clone())));
        self.lines.extend(batch.lines.iter().map(|one| (one.id, one.clone())));
        self.postings.extend(batch.postings.iter().map(|one| (one.id, one.clone())));
    }

    fn get(&self, key: Key) -> Option<Row> {
        match key {
            Key::Agent(id) => self.at_hand.agents.get(&id).cloned().map(Row::Agent),
            Key::Claim(digest) => self.claims.get(&digest).copied().map(Row::Claim),
            Key::Job(id) => {
                let job = self.archive.get(&id).or_else(|| self.at_hand.jobs.get(&id));
                job.cloned().map(Row::Job)
            }
            Key::Transfer(id) => self.transfers.get(&id).cloned().map(Row::Transfer),
            Key::Entry(id) => self.entries.get(&id).cloned().map(Row::Entry),
            Key::Notice(id) => self.notices.get(&id).map(|one| Row::Notice(Notice::clone(one))),
            Key::Arrival(id) => self.arrivals.get(&id).cloned().map(Row::Arrival),
            Key::Outcome(id) => self.outcomes.get(&id).cloned().map(Row::Outcome),
            Key::Posting(id) => self.postings.get(&id).cloned().map(Row::Posting),
            Key::Memory(id) => self.memories.get(&id).cloned().map(Row::Memory),
        }
    }
}
