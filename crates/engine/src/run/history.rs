//! History: walks back through stored rows, from each row to the previous one.
//!
//! Rows name their predecessor in the same account, inbox or agent's record, so histories need no
//! index. A page is bounded, and its cursor is the row where the next page starts.

use std::sync::Arc;

use rialto_core::id::{EntryId, JobId, NoticeId, OutcomeId, OwnerId};
use rialto_core::job::Job;
use rialto_core::job::log::LogContent;
use rialto_core::job::progress::ProgressReport;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::reputation::Outcome;
use rialto_core::time::Timestamp;

use super::{Engine, Failure};
use crate::store::chain::Chain;
use crate::store::{Reader, Row, RowKey, StoreError};

/// Rows read at most for one page, matching or not.
const ROWS_WALKED_MAX: usize = 10_000;
/// Rows read at once.
const PART_MAX: usize = 256;
/// Bytes of content after which a page ends, so that long rows are not all in memory at once.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// A page of rows, and where the next one starts.
#[derive(Clone, Debug)]
pub struct HistoryPage<T> {
    pub rows: Vec<T>,
    pub next: Option<u64>,
}

/// Whether an agent requested or did the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRole {
    Requester,
    Worker,
}

/// A report about a job, and when it was made.
#[derive(Clone, Debug)]
pub struct LoggedReport {
    pub at: Timestamp,
    pub report: ProgressReport,
}

/// An entry of a job's log, and when it was made.
#[derive(Clone, Debug)]
pub struct LogEntry {
    pub at: Timestamp,
    pub number: u32,
    /// The assignment it is about.
    pub epoch: u32,
    pub content: LogContent,
}

impl Engine {
    /// Ledger entries of one owner, newest first, starting with `from`.
    pub async fn entries_of(
        &self,
        owner: OwnerId,
        from: Option<EntryId>,
        limit: usize,
        wanted: impl Fn(&Entry) -> bool + Send + 'static,
    ) -> Result<HistoryPage<Entry>, Failure> {
        self.read_store(move |reader| {
            walk_back(reader, Chain::Entries(owner), from.map(RowKey::Entry), limit, |row| {
                let Row::Entry(entry) = row else { return None };
                // A cursor into another owner's account returns nothing.
                if entry.from.owner != owner && entry.to.owner != owner {
                    return None;
                }
                Some(WalkStep { found: wanted(&entry).then_some(entry), bytes: 0 })
            })
        })
        .await
    }

    /// Finished jobs of one agent, newest first, starting with `from`; fewer if they are long.
    pub async fn jobs_of(
        &self,
        side: JobRole,
        from: Option<JobId>,
        limit: usize,
    ) -> Result<HistoryPage<Arc<Job>>, Failure> {
        let chain = match side {
            JobRole::Requester => Chain::RequestedJobs,
            JobRole::Worker => Chain::WorkedJobs,
        };
        self.read_store(move |reader| {
            walk_back(reader, chain, from.map(RowKey::Job), limit, |row| {
                let Row::Job(job) = row else { return None };
                let shown = job.state != rialto_core::job::State::Withdrawn;
                let bytes = job.content_bytes();
                Some(WalkStep { found: shown.then_some(job), bytes })
            })
        })
        .await
    }

    /// Reports about one job, newest first, starting with the notice `from`; fewer if they are long.
    pub async fn reports_of(
        &self,
        from: Option<NoticeId>,
        limit: usize,
    ) -> Result<HistoryPage<LoggedReport>, Failure> {
        self.read_store(move |reader| {
            walk_back(reader, Chain::Reports, from.map(RowKey::Notice), limit, |row| match row {
                Row::Notice(Notice { news: NoticeKind::Step { .. }, .. }) => {
                    Some(WalkStep { found: None, bytes: 0 })
                }
                Row::Notice(Notice { at, news, .. }) => {
                    let bytes = news.content_bytes();
                    let report = news.progress_report()?.clone();
                    Some(WalkStep { found: Some(LoggedReport { at, report }), bytes })
                }
                _ => None,
            })
        })
        .await
    }

    /// Entries of the log of one job, newest first, starting with the notice `from`; fewer if they
    /// are long.
    pub async fn log_of(
        &self,
        from: Option<NoticeId>,
        limit: usize,
    ) -> Result<HistoryPage<LogEntry>, Failure> {
        self.read_store(move |reader| {
            walk_back(reader, Chain::Reports, from.map(RowKey::Notice), limit, |row| {
                let Row::Notice(Notice { at, news, .. }) = row else { return None };
                let (number, epoch, content) = match news {
                    NoticeKind::Progress { report, .. } => {
                        (report.number, report.epoch, LogContent::Report(report.update))
                    }
                    NoticeKind::OriginalProgress { report, original, .. } => {
                        let update = report.update;
                        (report.number, report.epoch, LogContent::Original { update, original })
                    }
                    NoticeKind::Step { step, .. } => {
                        (step.number, step.epoch, LogContent::Step(step.step))
                    }
                    _ => return None,
                };
                let bytes = content.content_bytes();
                Some(WalkStep { found: Some(LogEntry { at, number, epoch, content }), bytes })
            })
        })
        .await
    }

    /// Outcomes of one agent, newest first.
    pub async fn outcomes_of(
        &self,
        from: Option<OutcomeId>,
        limit: usize,
    ) -> Result<HistoryPage<Outcome>, Failure> {
        self.read_store(move |reader| {
            walk_back(reader, Chain::Outcomes, from.map(RowKey::Outcome), limit, |row| {
                let Row::Outcome(outcome) = row else { return None };
                Some(WalkStep { found: Some(outcome), bytes: 0 })
            })
        })
        .await
    }

    /// The transfers behind ledger entries.
    pub async fn load_transfer(
        &self,
        id: rialto_core::id::TransferId,
    ) -> Result<Option<Arc<Transfer>>, Failure> {
        Ok(match self.load_row(RowKey::Transfer(id)).await? {
            Some(Row::Transfer(transfer)) => Some(transfer),
            _ => None,
        })
    }
}

/// One row of a walk: whether it matches, and how long it is.
struct WalkStep<T> {
    found: Option<T>,
    bytes: usize,
}

fn walk_back<T>(
    reader: &mut dyn Reader,
    chain: Chain,
    from: Option<RowKey>,
    limit: usize,
    step: impl Fn(Row) -> Option<WalkStep<T>>,
) -> Result<HistoryPage<T>, StoreError> {
    let mut page = HistoryPage { rows: Vec::new(), next: None };
    let (mut at, mut bytes, mut steps, mut part) = (from, 0, 0, limit);
    while let Some(key) = at {
        let rows = reader.load_chain(chain, key, part.clamp(1, PART_MAX))?;
        if rows.is_empty() {
            return missing_row(key, steps, page);
        }
        // The rest of a page with few matches is read in larger parts.
        part = 2 * part.clamp(1, PART_MAX);
        for row in rows {
            let before = chain.before(&row);
            let current = at.unwrap_or(key);
            let Some(WalkStep { found, bytes: more }) = step(row) else {
                return missing_row(current, steps, page);
            };
            page.rows.extend(found);
            page.next = before.and_then(RowKey::number);
            (at, bytes, steps) = (before, bytes + more, steps + 1);
            if page.rows.len() >= limit || bytes >= PAGE_BYTES || steps >= ROWS_WALKED_MAX {
                return Ok(page);
            }
        }
    }
    Ok(page)
}

/// The result of a walk that came to a row that does not exist. A cursor comes from a caller and may
/// be invented; a reference between stored rows may not.
fn missing_row<T>(
    key: RowKey,
    steps: usize,
    page: HistoryPage<T>,
) -> Result<HistoryPage<T>, StoreError> {
    match steps {
        0 => Ok(page),
        _ => Err(StoreError::Corrupt(format!("{key:?} is referenced but missing"))),
    }
}
