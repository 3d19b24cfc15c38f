//! Money: transfers, accounts, the audit list, totals of the economy.

use std::collections::BTreeMap;

use axum::extract::{RawQuery, State};
use rialto_core::answer::Answer;
use rialto_core::command::{Command, JobRef};
use rialto_core::id::{EntryId, JobId, OwnerId};
use rialto_core::ledger::{Entry, EntryKind};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_engine::Failure as EngineFailure;
use rialto_engine::store::{Reader, Row, RowKey, StoreError};
use serde::Serialize;
use serde_json::value::RawValue;

use super::HandlerResult;
use crate::adapter::caller::Caller;
use crate::adapter::{HubContext, RowsRead, naming};
use crate::kit::budget::ByteBudget;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson;
use crate::kit::query::Query;
use crate::registry::errors::{Failure, RequestKind, from_engine, json_response, with_body_example};
use crate::registry::auth::{BodyBytes, KnownCaller, PathParam, identity_mismatch};
use crate::registry::shape::{TransferBody, format_amount};
use crate::registry::wire::{
    DECIMALS, TransferPost, read_ledger_name, read_owner_name, read_path_owner, read_path_uuid,
};
use crate::registry::{examples, translate};

/// The maximum and the default number of transactions per page.
const AUDIT_MAX: i64 = 500;
const AUDIT: i64 = 100;
/// How many ledger entries are read for one answer.
const LINES_MAX: usize = 2_000;
/// How many balances are shown at once.
const BALANCES_MAX: usize = 10_000;

#[derive(Serialize)]
struct TransferAnswer {
    status: &'static str,
    transfer: TransferBody,
    sender_balance: Box<RawValue>,
    settlement: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_balance: Option<Box<RawValue>>,
}

/// `POST /transfer`: pays, or confirms what a job's hold has paid (§3.5).
pub async fn transfer(
    State(context): State<HubContext>,
    known: KnownCaller,
    sent: BodyBytes,
) -> HandlerResult {
    let mut wire = TransferPost::read(&sent.0).map_err(with_body_example(examples::TRANSFER))?;
    context.engine.with_world(|world| {
        for name in [&mut wire.from_owner, &mut wire.to_owner] {
            *name = naming::canonical_owner_name(world, std::mem::take(name));
        }
    });
    if !context.engine.with_world(|world| known.speaks_for(world, &wire.from_owner)) {
        return Err(identity_mismatch());
    }
    let open = context.settings.registry.open;
    let command = translate::transfer_credits(wire, context.engine.random().new_uuid(), open);
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    let Answer::Transfer { transfer, .. } =
        ran.map_err(|failure| from_engine(failure, RequestKind::Transfer))?.answer
    else {
        return Err(Failure::not_found());
    };
    let settled = transfer.settled_by_hold;
    let body = TransferAnswer {
        status: "completed",
        transfer: context.engine.with_world(|world| TransferBody::of(world, &transfer)),
        sender_balance: format_amount(transfer.payer_balance),
        settlement: if settled { "escrow" } else { "transfer" },
        receiver_balance: open.then(|| format_amount(transfer.payee_balance)),
    };
    Ok(json_response(200, &body))
}

/// An owner's name as the ledger has it.
fn owner_called(context: &HubContext, typed: String) -> String {
    context.engine.with_world(|world| naming::canonical_owner_name(world, typed))
}

#[derive(Serialize)]
struct AccountAnswer<'a> {
    owner_id: &'a str,
    balance: Box<RawValue>,
    held: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<Box<RawValue>>,
}

impl<'a> AccountAnswer<'a> {
    fn of(owner: &'a Owner, granted: Option<Credits>) -> Self {
        Self {
            owner_id: &owner.name,
            balance: format_amount(owner.available),
            held: format_amount(owner.held),
            granted: granted.map(format_amount),
        }
    }
}

/// `POST /accounts`: opens an account, or grants credits for the operator.
pub async fn open_account(
    State(context): State<HubContext>,
    known: KnownCaller,
    sent: BodyBytes,
) -> HandlerResult {
    let whole = with_body_example(examples::ACCOUNT);
    let body = ijson::read(&sent.0).map_err(Malformed::from).map_err(&whole)?;
    let f = Fields::read(&body, "").map_err(&whole)?;
    let amount = f.credits("initial_balance", DECIMALS)?.unwrap_or(Credits::ZERO);
    let command = if known.0.is_operator() {
        Command::Grant { name: owner_called(&context, read_ledger_name(&f, "owner_id")?), amount }
    } else {
        let name = owner_called(&context, read_owner_name(&f, "owner_id")?);
        if !context.engine.with_world(|world| known.speaks_for(world, &name)) {
            return Err(identity_mismatch());
        }
        // A caller cannot grant credits to itself: the amount is read and ignored.
        Command::OpenAccount { name }
    };
    let ran = context.engine.run_once(command, known.0.idempotency).await;
    match ran.map_err(|failure| from_engine(failure, RequestKind::Other))?.answer {
        Answer::Account { owner, granted } => {
            Ok(json_response(201, &AccountAnswer::of(&owner, Some(granted))))
        }
        _ => Err(Failure::not_found()),
    }
}

/// `GET /accounts/{owner_id}`: for its owner and the operator; for others it does not exist.
pub async fn account(
    State(context): State<HubContext>,
    known: KnownCaller,
    PathParam(name): PathParam,
) -> HandlerResult {
    let name = owner_called(&context, read_path_owner(&name)?.to_owned());
    let owner = context.engine.with_world(|world| {
        let allowed = known.0.is_operator() || known.speaks_for(world, &name);
        world.owner_by_name(&name).filter(|_| allowed).and_then(|id| world.owner(id).cloned())
    });
    let owner = owner.ok_or_else(Failure::not_found)?;
    Ok(json_response(200, &AccountAnswer::of(&owner, None)))
}

#[derive(Serialize)]
struct AuditAnswer {
    transactions: Vec<TransferBody>,
    total: u64,
    /// The entry to continue from, if there are more: `?from=` with it lists those.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_from: Option<u64>,
}

/// `GET /audit`: payments, newest or oldest first; the caller's own, or all for the operator.
pub async fn audit(
    State(context): State<HubContext>,
    known: KnownCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = Query::read(raw.as_deref().unwrap_or_default())?;
    let limit = query.integer("limit", 1..=AUDIT_MAX)?.unwrap_or(AUDIT) as usize;
    let job = query.text("job_id").map(|id| read_path_uuid(id, "?job_id")).transpose()?;
    let from = query.integer("from", 1..=i64::MAX)?.map(|id| EntryId(id.unsigned_abs()));
    let oldest_first = match query.text("order") {
        None | Some("newest") => false,
        Some("oldest") => true,
        Some(_) => {
            let message = "order must be \"newest\" or \"oldest\"".to_owned();
            return Err(Malformed { field: "?order".to_owned(), message }.into());
        }
    };
    let whose = whose(&context, &known, query.text("owner_id"))?;
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
    let read = move |reader: &mut dyn Reader| match oldest_first {
        true => walk.oldest_first(reader),
        false => walk.newest_first(reader),
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
    async fn named(context: &HubContext, name: String) -> Result<Self, EngineFailure> {
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
fn whose(
    context: &HubContext,
    known: &KnownCaller,
    named: Option<&str>,
) -> Result<Option<OwnerId>, Failure> {
    context.engine.with_world(|world| {
        let all = known.0.is_operator() || known.0.is_open();
        match named {
            Some(name) => {
                let name = naming::canonical_owner_name(world, name.to_owned());
                let allowed = known.0.is_operator() || known.speaks_for(world, &name);
                let found = world.owner_by_name(&name).filter(|_| allowed);
                found.map(Some).ok_or_else(Failure::not_found)
            }
            None if all => Ok(None),
            None => known.own_owner(world).map(Some).ok_or_else(Failure::not_found),
        }
    })
}

/// A payment in this protocol's shape.
async fn describe(context: &HubContext, entry: &Entry) -> Result<TransferBody, Failure> {
    let wrong = |failure| from_engine(failure, RequestKind::Other);
    if entry.kind == EntryKind::Transfer
        && let Some(id) = entry.transfer
        && let Some(transfer) = context.engine.load_transfer(id).await.map_err(wrong)?
    {
        return Ok(context.engine.with_world(|world| TransferBody::of(world, &transfer)));
    }
    let job = match entry.job {
        Some(id) => {
            context.engine.load_job(id).await.map_err(wrong)?.map(|job| job.foreign_id.clone())
        }
        None => None,
    };
    Ok(context.engine.with_world(|world| TransferBody::of_entry(world, entry, job)))
}

#[derive(Serialize)]
struct EconomyAnswer {
    total_accounts: usize,
    total_volume: Box<RawValue>,
    total_transactions: u64,
    all_balances: BTreeMap<String, Box<RawValue>>,
}

/// `GET /economy`: the totals, and the balances visible to the caller.
pub async fn economy(State(context): State<HubContext>, known: KnownCaller) -> HandlerResult {
    let (shown, mut body) = context.engine.with_world(|world| {
        let all = known.0.is_operator() || known.0.caller == Caller::Anonymous;
        let own = known.own_owner(world);
        let shown = world
            .owners()
            .filter(|owner| owner.id != Owner::ISSUANCE && (all || Some(owner.id) == own));
        let body = EconomyAnswer {
            total_accounts: world.owners().count() - 1,
            total_volume: format_amount(world.next.volume),
            total_transactions: world.next.payments,
            all_balances: BTreeMap::new(),
        };
        (shown.take(BALANCES_MAX).cloned().collect::<Vec<_>>(), body)
    });
    // `total_accounts` shows how many were left out.
    let mut budget = ByteBudget::default();
    for owner in shown {
        let balance = format_amount(owner.available);
        if !budget.take(owner.name.len() * 6 + balance.get().len() + 3) {
            break;
        }
        body.all_balances.insert(owner.name.clone(), balance);
    }
    Ok(json_response(200, &body))
}
