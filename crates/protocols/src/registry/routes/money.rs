//! Money: transfers, accounts, the audit list, the economy at large.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::{EntryId, OwnerId};
use rialto_core::ledger::{Entry, Kind};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_engine::store::{Page, Row};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Answered;
use crate::face::caller::Caller;
use crate::face::{Floor, naming};
use crate::kit::fields::{Fields, Malformed};
use crate::kit::ijson;
use crate::kit::query::Query;
use crate::registry::codes::{Context, Failure, failed, json, unread};
use crate::registry::proof::{Known, Named, Sent, differs};
use crate::registry::shape::{TransferBody, money};
use crate::registry::wire::{
    DECIMALS, TransferPost, ledger_name, owner_name, path_owner, path_uuid,
};
use crate::registry::{examples, translate};

/// Transactions listed at once, at most and when nothing is said.
const AUDIT_MAX: i64 = 500;
const AUDIT: i64 = 100;
/// Balances shown at once.
const BALANCES_MAX: usize = 10_000;

#[derive(Serialize)]
struct Transferred {
    status: &'static str,
    transfer: TransferBody,
    sender_balance: Box<RawValue>,
    settlement: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_balance: Option<Box<RawValue>>,
}

/// `POST /transfer`: pay, or confirm what a job's hold has paid (§3.5).
pub async fn transfer(State(floor): State<Floor>, known: Known, sent: Sent) -> Answered {
    let mut wire = TransferPost::read(&sent.0).map_err(unread(examples::TRANSFER))?;
    floor.engine.look(|world| {
        for name in [&mut wire.from_owner, &mut wire.to_owner] {
            *name = naming::owner(world, std::mem::take(name));
        }
    });
    if !floor.engine.look(|world| known.speaks_for(world, &wire.from_owner)) {
        return Err(differs());
    }
    let open = floor.settings.registry.open;
    let command = translate::pay(wire, floor.engine.ids().uuid(), open);
    let ran = floor.engine.run_once(command, known.0.once).await;
    let Answer::Paid { transfer, .. } =
        ran.map_err(|failure| failed(failure, Context::Transfer))?.answer
    else {
        return Err(Failure::not_found());
    };
    let settled = transfer.settled_by_hold;
    let body = Transferred {
        status: "completed",
        transfer: floor.engine.look(|world| TransferBody::of(world, &transfer)),
        sender_balance: money(transfer.payer_left),
        settlement: if settled { "escrow" } else { "transfer" },
        receiver_balance: open.then(|| money(transfer.payee_left)),
    };
    Ok(json(200, &body))
}

/// An owner's name as the ledger has it.
fn owner_called(floor: &Floor, typed: String) -> String {
    floor.engine.look(|world| naming::owner(world, typed))
}

#[derive(Serialize)]
struct Account<'a> {
    owner_id: &'a str,
    balance: Box<RawValue>,
    held: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<Box<RawValue>>,
}

impl<'a> Account<'a> {
    fn of(owner: &'a Owner, granted: Option<Credits>) -> Self {
        Self {
            owner_id: &owner.name,
            balance: money(owner.available),
            held: money(owner.held),
            granted: granted.map(money),
        }
    }
}

/// `POST /accounts`: an account, and for the operator a grant.
pub async fn open_account(State(floor): State<Floor>, known: Known, sent: Sent) -> Answered {
    let whole = unread(examples::ACCOUNT);
    let body = ijson::read(&sent.0).map_err(Malformed::from).map_err(&whole)?;
    let f = Fields::of(&body, "").map_err(&whole)?;
    let amount = f.credits("initial_balance", DECIMALS)?.unwrap_or(Credits::ZERO);
    let command = if known.0.is_operator() {
        Command::Grant { name: owner_called(&floor, ledger_name(&f, "owner_id")?), amount }
    } else {
        let name = owner_called(&floor, owner_name(&f, "owner_id")?);
        if !floor.engine.look(|world| known.speaks_for(world, &name)) {
            return Err(differs());
        }
        // Nobody makes its own money: the amount is read and ignored.
        Command::OpenAccount { name }
    };
    let ran = floor.engine.run_once(command, known.0.once).await;
    match ran.map_err(|failure| failed(failure, Context::Other))?.answer {
        Answer::Account { owner, granted } => Ok(json(201, &Account::of(&owner, Some(granted)))),
        _ => Err(Failure::not_found()),
    }
}

/// `GET /accounts/{owner_id}`: for its owner and the operator; to others it does not exist.
pub async fn account(State(floor): State<Floor>, known: Known, Named(name): Named) -> Answered {
    let name = owner_called(&floor, path_owner(&name)?.to_owned());
    let owner = floor.engine.look(|world| {
        let allowed = known.0.is_operator() || known.speaks_for(world, &name);
        world.owner_named(&name).filter(|_| allowed).and_then(|id| world.owner(id).cloned())
    });
    let owner = owner.ok_or_else(Failure::not_found)?;
    Ok(json(200, &Account::of(&owner, None)))
}

#[derive(Serialize)]
struct Audit {
    transactions: Vec<TransferBody>,
    total: u64,
}

/// `GET /audit`: payments, newest first; one's own, or all for the operator.
pub async fn audit(State(floor): State<Floor>, known: Known, RawQuery(raw): RawQuery) -> Answered {
    let query = Query::read(raw.as_deref().unwrap_or_default())?;
    let limit = query.integer("limit", 1..=AUDIT_MAX)?.unwrap_or(AUDIT) as usize;
    let job = query.text("job_id").map(|id| path_uuid(id, "?job_id")).transpose()?;
    let whose = whose(&floor, &known, query.text("owner_id"))?;
    let (entries, total) =
        entries(&floor, whose, if job.is_some() { usize::MAX } else { limit }).await?;
    let mut transactions = Vec::new();
    let mut matching = 0;
    for entry in entries {
        let body = describe(&floor, &entry).await?;
        let fits = |id: &uuid::Uuid| body.1.as_deref() == Some(id.to_string().as_str());
        if job.as_ref().is_none_or(fits) {
            matching += 1;
            if transactions.len() < limit {
                transactions.push(body.0);
            }
        }
    }
    let total = if job.is_some() { matching } else { total };
    Ok(json(200, &Audit { transactions, total }))
}

/// Whose payments are listed: everybody's for the operator and on an open hub.
fn whose(floor: &Floor, known: &Known, named: Option<&str>) -> Result<Option<OwnerId>, Failure> {
    floor.engine.look(|world| {
        let all = known.0.is_operator() || known.0.is_open();
        match named {
            Some(name) => {
                let name = naming::owner(world, name.to_owned());
                let allowed = known.0.is_operator() || known.speaks_for(world, &name);
                let found = world.owner_named(&name).filter(|_| allowed);
                found.map(Some).ok_or_else(Failure::not_found)
            }
            None if all => Ok(None),
            None => known.own(world).map(Some).ok_or_else(Failure::not_found),
        }
    })
}

/// Payments between owners, newest first, and how many there are.
async fn entries(
    floor: &Floor,
    whose: Option<OwnerId>,
    limit: usize,
) -> Result<(Vec<Entry>, u64), Failure> {
    let wrong = |failure| failed(failure, Context::Other);
    let payment = |entry: &Entry| entry.kind.is_payment();
    if let Some(id) = whose {
        let owner: Option<Arc<Owner>> = floor.engine.look(|world| world.owner(id).cloned());
        let owner = owner.ok_or_else(Failure::not_found)?;
        let page = floor.engine.entries_of(id, owner.newest, limit, payment).await;
        return Ok((page.map_err(wrong)?.rows, owner.movements));
    }
    let total = floor.engine.look(|world| world.next.payments);
    let mut found = Vec::new();
    let mut before = EntryId(u64::MAX);
    while found.len() < limit {
        let page =
            floor.engine.page(Page::Entries { before, limit: 1_000 }).await.map_err(wrong)?;
        if page.is_empty() {
            break;
        }
        for row in page {
            let Row::Entry(entry) = row else { continue };
            before = entry.id;
            if payment(&entry) && found.len() < limit {
                found.push(entry);
            }
        }
    }
    Ok((found, total))
}

/// A payment in this protocol's shape, and the job it was for.
async fn describe(floor: &Floor, entry: &Entry) -> Result<(TransferBody, Option<String>), Failure> {
    let wrong = |failure| failed(failure, Context::Other);
    if entry.kind == Kind::Transfer
        && let Some(id) = entry.transfer
        && let Some(transfer) = floor.engine.transfer(id).await.map_err(wrong)?
    {
        let body = floor.engine.look(|world| TransferBody::of(world, &transfer));
        return Ok((body, transfer.job.clone()));
    }
    let job = match entry.job {
        Some(id) => floor.engine.job(id).await.map_err(wrong)?.map(|job| job.foreign.clone()),
        None => None,
    };
    let body = floor.engine.look(|world| TransferBody::of_entry(world, entry, job.clone()));
    Ok((body, job))
}

#[derive(Serialize)]
struct Economy {
    total_accounts: usize,
    total_volume: Box<RawValue>,
    total_transactions: u64,
    all_balances: BTreeMap<String, Box<RawValue>>,
}

/// `GET /economy`: the sums, and the balances the caller may see.
pub async fn economy(State(floor): State<Floor>, known: Known) -> Answered {
    let body = floor.engine.look(|world| {
        let all = known.0.is_operator() || known.0.caller == Caller::Nobody;
        let own = known.own(world);
        let shown = world
            .owners()
            .filter(|owner| owner.id != Owner::ISSUANCE && (all || Some(owner.id) == own));
        let balances = shown.take(BALANCES_MAX).map(|o| (o.name.clone(), money(o.available)));
        Economy {
            total_accounts: world.owners().count() - 1,
            total_volume: money(world.next.volume),
            total_transactions: world.next.payments,
            all_balances: balances.collect(),
        }
    });
    Ok(json(200, &body))
}
