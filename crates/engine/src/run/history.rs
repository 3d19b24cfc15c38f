//! History: walking back through what is stored, from each thing to the one before it.
//!
//! Rows name their predecessor in the same account, inbox or agent's record, so histories need no
//! index. A page is bounded, and its cursor is the row to go on from.

use std::sync::Arc;

use rialto_core::id::{EntryId, JobId, OutcomeId, OwnerId};
use rialto_core::job::Job;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::reputation::Outcome;

use super::{Engine, Failure};
use crate::store::{Key, Reader, Row, StoreError};

/// Rows walked over at most for one page, matching or not.
const STEPS_MAX: usize = 10_000;
/// Bytes of content after which a page ends, so that long rows are not all held at once.
pub(super) const PAGE_BYTES: usize = 1 << 20;

/// A page of something, and where the next one begins.
#[derive(Clone, Debug)]
pub struct Cursor<T> {
    pub rows: Vec<T>,
    pub next: Option<u64>,
}

/// One side of an agent's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Asked,
    Worked,
}

impl Engine {
    /// Ledger lines of one owner, newest first, beginning with `from`.
    pub async fn entries_of(
        &self,
        owner: OwnerId,
        from: Option<EntryId>,
        limit: usize,
        wanted: impl Fn(&Entry) -> bool + Send + 'static,
    ) -> Result<Cursor<Entry>, Failure> {
        self.read(move |reader| {
            walk(reader, from.map(Key::Entry), limit, |row| {
                let Row::Entry(entry) = row else { return None };
                // A cursor into somebody else's account leads nowhere.
                if entry.from.owner != owner && entry.to.owner != owner {
                    return None;
                }
                let before = entry.before(owner).map(|id| (Key::Entry(id), id.0));
                Some(Step { found: wanted(&entry).then_some(entry), bytes: 0, before })
            })
        })
        .await
    }

    /// Finished jobs of one agent, newest first, beginning with `from`; fewer while they are long.
    pub async fn jobs_of(
        &self,
        side: Side,
        from: Option<JobId>,
        limit: usize,
    ) -> Result<Cursor<Arc<Job>>, Failure> {
        self.read(move |reader| {
            walk(reader, from.map(Key::Job), limit, |row| {
                let Row::Job(job) = row else { return None };
                let before = match side {
                    Side::Asked => job.before_asked,
                    Side::Worked => job.before_worked,
                };
                let shown = job.state != rialto_core::job::State::Withdrawn;
                let (bytes, before) = (job.bytes(), before.map(|id| (Key::Job(id), id.0)));
                Some(Step { found: shown.then_some(job), bytes, before })
            })
        })
        .await
    }

    /// Outcomes of one agent, newest first.
    pub async fn outcomes_of(
        &self,
        from: Option<OutcomeId>,
        limit: usize,
    ) -> Result<Cursor<Outcome>, Failure> {
        self.read(move |reader| {
            walk(reader, from.map(Key::Outcome), limit, |row| {
                let Row::Outcome(outcome) = row else { return None };
                let before = outcome.before.map(|id| (Key::Outcome(id), id.0));
                Some(Step { found: Some(outcome), bytes: 0, before })
            })
        })
        .await
    }

    /// The payment orders behind ledger lines.
    pub async fn transfer(
        &self,
        id: rialto_core::id::TransferId,
    ) -> Result<Option<Arc<Transfer>>, Failure> {
        Ok(match self.row(Key::Transfer(id)).await? {
            Some(Row::Transfer(transfer)) => Some(transfer),
            _ => None,
        })
    }
}

/// One row of a walk: whether it is wanted, how long it is, and the row before it.
struct Step<T> {
    found: Option<T>,
    bytes: usize,
    before: Option<(Key, u64)>,
}

fn walk<T>(
    reader: &mut dyn Reader,
    from: Option<Key>,
    limit: usize,
    step: impl Fn(Row) -> Option<Step<T>>,
) -> Result<Cursor<T>, StoreError> {
    let mut page = Cursor { rows: Vec::new(), next: None };
    let (mut at, mut bytes) = (from, 0);
    for steps in 0..STEPS_MAX {
        let Some(key) = at else { break };
        let Some(Step { found, bytes: more, before }) = reader.load(key)?.and_then(&step) else {
            // A cursor may be anybody's invention; what one row says of another may not.
            let lost = StoreError::Corrupt(format!("{key:?} is named and not there"));
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
