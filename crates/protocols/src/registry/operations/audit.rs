//! The audit list: payments of an owner or of all, found by a scan of the ledger.

use axum::extract::{RawQuery, State};
use rialto_core::command::JobRef;
use rialto_core::id::{EntryId, JobId, OwnerId};
use rialto_core::ledger::{Entry, EntryKind};
use rialto_engine::Failure as EngineFailure;
use rialto_engine::store::{Reader, Row, RowKey, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use super::payments::TransferBody;
use super::{HandlerResult, read_query};
use crate::adapter::caller::KnownCaller;
use crate::adapter::{RowsRead, naming};
use crate::registry::RegistryContext;
use crate::registry::auth::{own_owner, speaks_for};
use crate::registry::errors::{Failure, RequestKind, from_engine, json_response};
use crate::registry::wire::read_path_uuid;

/// The maximum and the default number of transactions per page.
const AUDIT_MAX: i64 = 500;
const AUDIT: i64 = 100;
/// How many ledger entries are read for one answer.
const LINES_MAX: usize = 2_000;

#[derive(Serialize, JsonSchema)]
pub struct AuditAnswer {
    transactions: Vec<TransferBody>,
    total: u64,
    /// The entry to continue from, if there are more: `?from=` with it lists those.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
}

/// `GET /audit`: payments, newest or oldest first; the caller's own, or all for the operator.
pub async fn audit(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = read_query(raw)?;
    let limit = query.integer("limit", 1..=AUDIT_MAX)?.unwrap_or(AUDIT) as usize;
    let job = query.text("job_id").map(|id| read_path_uuid(id, "?job_id")).transpose()?;
    let from = query.integer("from", 1..=i64::MAX)?.map(|id| EntryId(id.unsigned_abs()));
    let oldest_first = match query.text("order") {
        None | Some("newest") => false,
        Some("oldest") => true,
        Some(_) => {
            return Err(Failure::field("?order", "order must be \"newest\" or \"oldest\""));
        }
    };
    let whose = listed_owner(&context, known, query.text("owner_id"))?;
    let wrong = |failure| from_engine(failure, RequestKind::Other);
    let (newest, all) =
        context.engine.with_world(|world| match whose.and_then(|id| world.owner(id)) {
            Some(owner) => (owner.newest_entry, owner.payment_count),
            None => (Some(EntryId(world.next.entry.0)), world.next.payments),
        });
    let sought = match job {
        Some(id) => Some(AuditedJob::named(&context, id.to_string()).await.map_err(wrong)?),
        None => None,
    };
    let of_job = sought.is_some();
    let walk = LedgerScan { whose, newest, from, limit, sought };
    let read = move |reader: &mut dyn Reader| {
        if oldest_first { walk.oldest_first(reader) } else { walk.newest_first(reader) }
    };
    let found = context.engine.read_store(read).await.map_err(wrong)?;
    let mut transactions = Vec::with_capacity(found.entries.len());
    for entry in &found.entries {
        transactions.push(describe(&context, entry).await?);
    }
    let total = if of_job { transactions.len() as u64 } else { all };
    let next_from = found.next.map(|next| next.0);
    let mut answer = json_response(200, &AuditAnswer { transactions, total, next_from });
    answer.extensions_mut().insert(RowsRead(found.looked_at));
    Ok(answer)
}

/// The job whose payments are wanted: by the requester's id, and by the hub's.
struct AuditedJob {
    name: String,
    ids: Vec<JobId>,
}

impl AuditedJob {
    async fn named(context: &RegistryContext, name: String) -> Result<Self, EngineFailure> {
        let mut ids = Vec::new();
        for adapter in crate::ALL {
            let wanted = JobRef::Foreign { origin: adapter.id(), id: name.clone() };
            ids.extend(context.engine.find_job(&wanted).await?.map(|job| job.id));
        }
        Ok(Self { name, ids })
    }

    /// Whether a payment was made by the job's hold, or by a transfer that names the job.
    fn is_for(&self, reader: &mut dyn Reader, entry: &Entry) -> Result<bool, StoreError> {
        if let Some(job) = entry.job {
            return Ok(self.ids.contains(&job));
        }
        let Some(id) = entry.transfer else { return Ok(false) };
        Ok(match reader.load(RowKey::Transfer(id))? {
            Some(Row::Transfer(transfer)) => transfer.job.as_deref() == Some(&*self.name),
            _ => false,
        })
    }
}

/// A scan of the ledger, from an entry on.
struct LedgerScan {
    whose: Option<OwnerId>,
    newest: Option<EntryId>,
    from: Option<EntryId>,
    limit: usize,
    sought: Option<AuditedJob>,
}

/// Payments, and the entry to continue from if there are more.
struct LedgerScanResult {
    entries: Vec<Entry>,
    next: Option<EntryId>,
    looked_at: usize,
}

impl LedgerScan {
    /// The next payments, newest first. Reads at most [`LINES_MAX`] entries, whatever it finds.
    fn newest_first(self, reader: &mut dyn Reader) -> Result<LedgerScanResult, StoreError> {
        // Nothing follows the newest entry, whatever position the caller sends.
        let at = self.from.map_or(self.newest, |from| self.newest.map(|newest| from.min(newest)));
        let (mut entries, mut at, mut looked_at) = (Vec::new(), at, 0);
        while let Some(id) = at.filter(|_| entries.len() < self.limit && looked_at < LINES_MAX) {
            looked_at += 1;
            // The caller may send a position that does not exist.
            let Some(Row::Entry(entry)) = reader.load(RowKey::Entry(id))? else {
                at = self.before(id, None);
                continue;
            };
            if !self.concerns(&entry) {
                at = None;
                break;
            }
            at = self.before(id, Some(&entry));
            if self.wants(reader, &entry)? {
                entries.push(entry);
            }
        }
        Ok(LedgerScanResult { entries, next: at, looked_at })
    }

    /// The next payments, oldest first. Each entry links only to the one before it, so an owner's
    /// entries are collected from the newest back. For an owner with very many, the whole ledger is
    /// scanned instead.
    fn oldest_first(self, reader: &mut dyn Reader) -> Result<LedgerScanResult, StoreError> {
        let from = self.from.unwrap_or(EntryId(1));
        let (mut own, mut at, mut looked_at) = (Vec::new(), self.newest, 0);
        if self.whose.is_some() {
            while let Some(id) = at.filter(|id| *id >= from && looked_at < LINES_MAX) {
                looked_at += 1;
                let Some(Row::Entry(entry)) = reader.load(RowKey::Entry(id))? else { break };
                at = self.before(id, Some(&entry));
                own.push(entry);
            }
            if at.is_none_or(|id| id < from) {
                return self.first_of(reader, own.into_iter().rev(), looked_at);
            }
        }
        let (mut entries, mut next, mut seen) = (Vec::new(), None, 0);
        for id in (from.0..=self.newest.map_or(0, |newest| newest.0)).map(EntryId) {
            if entries.len() == self.limit || seen == LINES_MAX {
                next = Some(id);
                break;
            }
            seen += 1;
            let Some(Row::Entry(entry)) = reader.load(RowKey::Entry(id))? else { continue };
            if self.concerns(&entry) && self.wants(reader, &entry)? {
                entries.push(entry);
            }
        }
        Ok(LedgerScanResult { entries, next, looked_at: looked_at + seen })
    }

    /// The first payments among these entries, and the entry after them.
    fn first_of(
        &self,
        reader: &mut dyn Reader,
        lines: impl Iterator<Item = Entry>,
        looked_at: usize,
    ) -> Result<LedgerScanResult, StoreError> {
        let (mut entries, mut next) = (Vec::new(), None);
        for entry in lines {
            if entries.len() == self.limit {
                next = Some(entry.id);
                break;
            }
            if self.wants(reader, &entry)? {
                entries.push(entry);
            }
        }
        Ok(LedgerScanResult { entries, next, looked_at })
    }

    /// Whether an entry may be shown.
    fn concerns(&self, entry: &Entry) -> bool {
        self.whose.is_none_or(|own| entry.from.owner == own || entry.to.owner == own)
    }

    /// Whether an entry is a payment, and one for the wanted job.
    fn wants(&self, reader: &mut dyn Reader, entry: &Entry) -> Result<bool, StoreError> {
        match &self.sought {
            _ if !entry.kind.is_payment() => Ok(false),
            Some(sought) => sought.is_for(reader, entry),
            None => Ok(true),
        }
    }

    /// The previous entry: of the owner, or of the whole ledger.
    fn before(&self, id: EntryId, entry: Option<&Entry>) -> Option<EntryId> {
        match self.whose {
            Some(owner) => entry.and_then(|entry| entry.previous_entry_of(owner)),
            None => id.0.checked_sub(1).filter(|before| *before > 0).map(EntryId),
        }
    }
}

/// The owner whose payments are listed: all owners for the operator and on an open hub.
fn listed_owner(
    context: &RegistryContext,
    known: KnownCaller,
    named: Option<&str>,
) -> Result<Option<OwnerId>, Failure> {
    context.engine.with_world(|world| {
        let all = known.0.is_operator() || known.0.is_open();
        match named {
            Some(name) => {
                let name = naming::canonical_owner_name(world, name.to_owned());
                let allowed = known.0.is_operator() || speaks_for(known, world, &name);
                let found = world.owner_by_name(&name).filter(|_| allowed);
                found.map(Some).ok_or_else(Failure::not_found)
            }
            None if all => Ok(None),
            None => own_owner(known, world).map(Some).ok_or_else(Failure::not_found),
        }
    })
}

/// A payment in this protocol's shape.
async fn describe(context: &RegistryContext, entry: &Entry) -> Result<TransferBody, Failure> {
    let wrong = |failure| from_engine(failure, RequestKind::Other);
    if entry.kind == EntryKind::Transfer
        && let Some(id) = entry.transfer
        && let Some(transfer) = context.engine.load_transfer(id).await.map_err(wrong)?
    {
        return Ok(context.engine.with_world(|world| TransferBody::of(world, &transfer)));
    }
    let job = match entry.job {
        Some(id) => context
            .engine
            .load_job(id)
            .await
            .map_err(wrong)?
            .map(|job| job.request.foreign_id.clone()),
        None => None,
    };
    Ok(context.engine.with_world(|world| TransferBody::of_entry(world, entry, job)))
}
