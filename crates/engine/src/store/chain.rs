//! Chains: rows that each name the one before them in the same inbox, account or record.
//!
//! Stores with the rows at hand follow the links one by one. A store behind a network reads a chain
//! ahead, in one round trip.

use rialto_core::id::OwnerId;
use rialto_core::notice::NoticeKind;

use super::{Row, RowKey, StoreError};

/// Bytes of content after which a part of a chain ends, so that long rows are not all in memory at
/// once.
pub const CHAIN_BYTES: usize = 1 << 20;

/// Which rows to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// The notices of an inbox.
    Inbox,
    /// The log of a job: progress reports and steps.
    Reports,
    /// The ledger entries of an owner.
    Entries(OwnerId),
    /// The jobs of a requester, and those of a worker.
    RequestedJobs,
    WorkedJobs,
    /// The outcomes of an agent.
    Outcomes,
}

impl Chain {
    /// The row before this one; `None` at the end, or if the row is none of this chain.
    pub fn before(self, row: &Row) -> Option<RowKey> {
        match (self, row) {
            (Self::Inbox, Row::Notice(notice)) => notice.before.map(RowKey::Notice),
            (Self::Reports, Row::Notice(notice)) => match &notice.news {
                NoticeKind::Step { step, .. } => step.previous.map(RowKey::Notice),
                news => news.progress_report()?.previous.map(RowKey::Notice),
            },
            (Self::Entries(owner), Row::Entry(entry)) => {
                entry.previous_entry_of(owner).map(RowKey::Entry)
            }
            (Self::RequestedJobs, Row::Job(job)) => job.links.previous_requested.map(RowKey::Job),
            (Self::WorkedJobs, Row::Job(job)) => job.links.previous_worked.map(RowKey::Job),
            (Self::Outcomes, Row::Outcome(outcome)) => outcome.before.map(RowKey::Outcome),
            _ => None,
        }
    }
}

/// Follows a chain from a row on: at most `limit` rows, and fewer if they are long. It ends early
/// also if a row does not exist.
pub fn follow(
    chain: Chain,
    from: RowKey,
    limit: usize,
    mut load: impl FnMut(RowKey) -> Result<Option<Row>, StoreError>,
) -> Result<Vec<Row>, StoreError> {
    let (mut rows, mut bytes, mut next) = (Vec::new(), 0, Some(from));
    while rows.len() < limit
        && bytes < CHAIN_BYTES
        && let Some(key) = next
        && let Some(row) = load(key)?
    {
        bytes += content_bytes(&row);
        next = chain.before(&row);
        rows.push(row);
    }
    Ok(rows)
}

/// The size of what callers put into a row.
fn content_bytes(row: &Row) -> usize {
    match row {
        Row::Notice(notice) => notice.news.content_bytes(),
        Row::Job(job) => job.content_bytes(),
        _ => 0,
    }
}
