//! History: walks back through stored rows, from each row to the previous one.
//!
//! Rows name their predecessor in the same account, inbox or agent's record, so histories need no
//! index. A page is bounded, and its cursor is the row where the next page starts.

use std::sync::Arc;

use rialto_core::id::{EntryId, JobId, OutcomeId, OwnerId};
use rialto_core::job::Job;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::reputation::Outcome;

use super::{Engine, Failure};
use crate::store::{Reader, Row, RowKey, StoreError};

/// Rows read at most for one page, matching or not.
const ROWS_WALKED_MAX: usize = 10_000;
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
            walk_back(reader, from.map(RowKey::Entry), limit, |row| {
                let Row::Entry(entry) = row else { return None };
                // A cursor into another owner's account returns nothing.
                if entry.from.owner != owner && entry.to.owner != owner {
                    return None;
                }
                let before = entry.previous_entry_of(owner).map(|id| (RowKey::Entry(id), id.0));
                Some(WalkStep { found: wanted(&entry).then_some(entry), bytes: 0, before })
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
        self.read_store(move |reader| {
            walk_back(reader, from.map(RowKey::Job), limit, |row| {
                let Row::Job(job) = row else { return None };
                let before = match side {
                    JobRole::Requester => job.links.previous_requested,
                    JobRole::Worker => job.links.previous_worked,
                };
                let shown = job.state != rialto_core::job::State::Withdrawn;
                let (bytes, before) =
                    (job.content_bytes(), before.map(|id| (RowKey::Job(id), id.0)));
                Some(WalkStep { found: shown.then_some(job), bytes, before })
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
            walk_back(reader, from.map(RowKey::Outcome), limit, |row| {
                let Row::Outcome(outcome) = row else { return None };
                let before = outcome.before.map(|id| (RowKey::Outcome(id), id.0));
                Some(WalkStep { found: Some(outcome), bytes: 0, before })
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

/// One row of a walk: whether it matches, how long it is, and the row before it.
struct WalkStep<T> {
    found: Option<T>,
    bytes: usize,
    before: Option<(RowKey, u64)>,
}

fn walk_back<T>(
    reader: &mut dyn Reader,
    from: Option<RowKey>,
    limit: usize,
    step: impl Fn(Row) -> Option<WalkStep<T>>,
) -> Result<HistoryPage<T>, StoreError> {
    let mut page = HistoryPage { rows: Vec::new(), next: None };
    let (mut at, mut bytes) = (from, 0);
    for steps in 0..ROWS_WALKED_MAX {
        let Some(key) = at else { break };
        let Some(WalkStep { found, bytes: more, before }) = reader.load(key)?.and_then(&step)
        else {
            // A cursor comes from a caller and may be invented; a reference between stored rows may
            // not.
            let lost = StoreError::Corrupt(format!("{key:?} is referenced but missing"));
            return if steps == 0 { Ok(page) } else { Err(lost) };
        };
        page.rows.extend(found);
        page.next = before.map(|(_, id)| id);
        at = before.map(|(key, _)| key);
        bytes += more;
        if page.rows.len() >= limit || bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(page)
}
