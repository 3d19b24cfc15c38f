//! Rows that are in the log but not in the tables yet.
//!
//! Reading looks here first. Rows are collected in a generation until it is large enough to be
//! written to the tables; meanwhile the next one collects. A generation is dropped only after its
//! transaction is committed, so a row is always found in one of the two places.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rialto_core::changes::{Changes, ExpiredRows};
use rialto_core::event::HistoryLine;
use rialto_core::notice::Notice;

use super::log::Place;
use super::{PageQuery, Row, RowKey};

/// How long a batch stays out of the tables while others follow it.
pub const AGE_MAX: Duration = Duration::from_secs(5);

/// Environment variable by which all limits are divided, so that a short test reaches each of them.
/// Only builds with debug assertions read it.
#[cfg(debug_assertions)]
const DIVISOR: &str = "RIALTO_TEST_LOG_DIVISOR";

/// By how much limits on unwritten rows are divided.
#[cfg(debug_assertions)]
pub fn limit_divisor() -> u32 {
    let text = std::env::var(DIVISOR).ok();
    text.and_then(|text| text.parse().ok()).filter(|divisor| *divisor > 0).unwrap_or(1)
}

#[cfg(not(debug_assertions))]
pub const fn limit_divisor() -> u32 {
    1
}

/// Lets threads that callers wait for run first. Strong enough that a send takes about as long
/// beside a checkpoint as without, and weak enough that the thread keeps up with a busy hub.
#[cfg(target_os = "linux")]
pub fn yield_to_callers() {
    const NICE: i32 = 5;
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), NICE) {
        tracing::debug!(%error, "the priority of the checkpoint thread could not be lowered");
    }
}

#[cfg(not(target_os = "linux"))]
pub fn yield_to_callers() {}

/// The rows of successive batches, each in its newest version.
#[derive(Debug, Default)]
pub struct Generation {
    pub changes: Changes,
    pub expired: ExpiredRows,
    /// The number of its first batch that has a record; `None` if none of them needed one.
    pub first: Option<u64>,
    /// The last of its batches.
    pub place: Place,
    pub bytes: u64,
}

impl Generation {
    /// Adds a batch. One that needed no record has no place.
    pub fn add(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        self.changes.merge(changes.clone());
        for id in &expired.answers {
            self.changes.idempotency_records.remove(id);
            self.changes.idempotency_entries.remove(id);
        }
        for (_, id) in &expired.keys {
            self.changes.keys.remove(id);
        }
        self.expired.answers.extend(&expired.answers);
        self.expired.keys.extend(&expired.keys);
        if let Some(place) = place {
            self.first.get_or_insert(place.number);
            self.place = place;
        }
    }

    pub fn is_empty(&self) -> bool {
        let rows = &self.changes;
        rows.is_empty() && rows.row_count() == 0 && self.expired.is_empty()
    }

    /// The row, or `Some(None)` if it was removed, or `None` if these batches did not touch it.
    fn get(&self, key: RowKey) -> Option<Option<Row>> {
        let rows = &self.changes;
        let row = match key {
            // Used ids have an index of their own.
            RowKey::Claim(_) => None,
            RowKey::Agent(id) => rows.agents.get(&id).cloned().map(Row::Agent),
            RowKey::Job(id) => rows.jobs.get(&id).cloned().map(Row::Job),
            RowKey::Arrival(id) => rows.completed_deliveries.get(&id).cloned().map(Row::Arrival),
            RowKey::IdempotencyRecord(id) => {
                if self.expired.answers.contains(&id) {
                    return Some(None);
                }
                rows.idempotency_records.get(&id).cloned().map(Row::Memory)
            }
            RowKey::Transfer(id) => {
                by_id(&rows.transfers, id.0, |one| one.id.0).cloned().map(Row::Transfer)
            }
            RowKey::Entry(id) => {
                by_id(&rows.entries, id.0, |one| one.id.0).cloned().map(Row::Entry)
            }
            RowKey::Notice(id) => by_id(&rows.notices, id.0, |one| one.id.0)
                .map(|notice| Row::Notice(Notice::clone(notice))),
            RowKey::Outcome(id) => {
                by_id(&rows.outcomes, id.0, |one| one.id.0).cloned().map(Row::Outcome)
            }
            RowKey::MarketRecord(id) => {
                by_id(&rows.market_records, id.0, |one| one.id.0).cloned().map(Row::Posting)
            }
        };
        row.map(Some)
    }

    /// Its rows of a page, with their ids, at most the limit of the query, in its order.
    fn page(&self, page: PageQuery) -> Vec<(u64, Row)> {
        let rows = &self.changes;
        match page {
            PageQuery::Lines { after, limit } => {
                let first = rows.history_lines.partition_point(|line| line.id <= after);
                let lines = rows.history_lines[first..].iter().take(limit);
                lines.map(|line| (line.id.0, Row::Line(HistoryLine::clone(line)))).collect()
            }
            PageQuery::Entries { before, limit } => {
                let end = rows.entries.partition_point(|entry| entry.id < before);
                let entries = rows.entries[..end].iter().rev().take(limit);
                entries.map(|entry| (entry.id.0, Row::Entry(entry.clone()))).collect()
            }
            PageQuery::Jobs { before, limit } => {
                let jobs = rows.jobs.range(..before).rev().filter(|(_, job)| job.state.is_final());
                jobs.take(limit).map(|(id, job)| (id.0, Row::Job(job.clone()))).collect()
            }
            PageQuery::MarketRecords { after, before, newest_first, limit } => {
                let first = rows.market_records.partition_point(|one| one.id <= after);
                let end = rows.market_records.partition_point(|one| one.id < before).max(first);
                let records = rows.market_records[first..end].iter();
                let with_id = |one: &Arc<_>| {
                    let record: &Arc<rialto_core::market::MarketRecord> = one;
                    (record.id.0, Row::Posting(record.clone()))
                };
                match newest_first {
                    true => records.rev().take(limit).map(with_id).collect(),
                    false => records.take(limit).map(with_id).collect(),
                }
            }
        }
    }
}

/// A row of a list whose ids are consecutive.
fn by_id<T>(rows: &[T], id: u64, id_of: impl Fn(&T) -> u64) -> Option<&T> {
    let first = rows.first().map(&id_of)?;
    let row = rows.get(usize::try_from(id.checked_sub(first)?).ok()?)?;
    (id_of(row) == id).then_some(row)
}

/// All rows that are not in the tables yet.
#[derive(Default)]
pub struct UnwrittenRows {
    /// Collects the batches.
    pub active: Generation,
    /// Those that are to be written to the tables, oldest first.
    pub frozen: VecDeque<Arc<Generation>>,
}

impl UnwrittenRows {
    /// The row, or `Some(None)` if it was removed, or `None` if the tables have its newest version.
    pub fn get(&self, key: RowKey) -> Option<Option<Row>> {
        let older = || self.frozen.iter().rev().find_map(|generation| generation.get(key));
        self.active.get(key).or_else(older)
    }

    /// The rows of a page, with their ids.
    pub fn page(&self, page: PageQuery) -> Vec<(u64, Row)> {
        let mut rows = self.active.page(page);
        for older in self.frozen.iter().rev() {
            rows.extend(older.page(page));
        }
        rows
    }

    /// Begins a new generation; the one before is to be written.
    pub fn freeze(&mut self) {
        let place = self.active.place;
        let next = Generation { place, ..Generation::default() };
        self.frozen.push_back(Arc::new(std::mem::replace(&mut self.active, next)));
    }
}

/// Joins the rows of a page that are not in the tables yet with those that are. The tables are read
/// last, so a row that moves in between may come from both.
pub fn join_page(page: PageQuery, unwritten: Vec<(u64, Row)>, table: Vec<Row>) -> Vec<Row> {
    if unwritten.is_empty() {
        return table;
    }
    let (limit, newest_first) = match page {
        PageQuery::Lines { limit, .. } => (limit, false),
        PageQuery::Entries { limit, .. } | PageQuery::Jobs { limit, .. } => (limit, true),
        PageQuery::MarketRecords { limit, newest_first, .. } => (limit, newest_first),
    };
    let mut rows = unwritten;
    rows.extend(table.into_iter().map(|row| (row_id(&row), row)));
    // Stable: of two rows with one id the unwritten one comes first.
    match newest_first {
        true => rows.sort_by_key(|(id, _)| std::cmp::Reverse(*id)),
        false => rows.sort_by_key(|(id, _)| *id),
    }
    rows.dedup_by_key(|(id, _)| *id);
    rows.truncate(limit);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The id of a row that pages contain.
fn row_id(row: &Row) -> u64 {
    match row {
        Row::Line(line) => line.id.0,
        Row::Entry(entry) => entry.id.0,
        Row::Job(job) => job.id.0,
        Row::Posting(record) => record.id.0,
        _ => 0,
    }
}
