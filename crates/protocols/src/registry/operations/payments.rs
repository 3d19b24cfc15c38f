//! Payments: transfers, accounts and the totals of the economy.

use std::collections::BTreeMap;

use axum::extract::State;
use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::OwnerId;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::money::Credits;
use rialto_core::owner::Owner;
use rialto_core::world::World;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Builder;

use super::HandlerResult;
use crate::adapter::caller::{Caller, KnownCaller};
use crate::adapter::naming;
use crate::adapter::request::{BodyBytes, PathParam};
use crate::kit::budget::ByteBudget;
use crate::kit::fields::{Fields, Malformed};
use crate::kit::raw_json::Number;
use crate::kit::{ijson, rfc3339};
use crate::registry::RegistryContext;
use crate::registry::auth::{identity_mismatch, own_owner, speaks_for};
use crate::registry::errors::{
    ACCOUNT_EXAMPLE, Failure, RequestKind, TRANSFER_EXAMPLE, from_engine, json_response,
    with_body_example,
};
use crate::registry::translate::{self, format_amount};
use crate::registry::wire::{
    DECIMALS, TransferPost, read_ledger_name, read_owner_name, read_path_owner,
};

/// How many balances are shown at once.
const BALANCES_MAX: usize = 10_000;

#[derive(Serialize, JsonSchema)]
pub struct TransferAnswer {
    status: &'static str,
    transfer: TransferBody,
    sender_balance: Number,
    settlement: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_balance: Option<Number>,
}

/// `POST /transfer`: pays, or confirms what a job's hold has paid (§3.5).
pub async fn transfer(
    State(context): State<RegistryContext>,
    known: KnownCaller,
    sent: BodyBytes,
) -> HandlerResult {
    let mut wire = TransferPost::read(&sent.0).map_err(with_body_example(TRANSFER_EXAMPLE))?;
    context.engine.with_world(|world| {
        for name in [&mut wire.from_owner, &mut wire.to_owner] {
            *name = naming::canonical_owner_name(world, std::mem::take(name));
        }
    });
    if !context.engine.with_world(|world| speaks_for(known, world, &wire.from_owner)) {
        return Err(identity_mismatch());
    }
    let open = context.state.settings.is_open();
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

/// A payment, as this protocol lists it.
#[derive(Serialize, JsonSchema)]
pub struct TransferBody {
    transfer_id: String,
    from_owner: String,
    to_owner: String,
    amount: Number,
    job_id: Option<String>,
    timestamp_utc: String,
}

impl TransferBody {
    pub fn of(world: &World, transfer: &Transfer) -> Self {
        Self {
            transfer_id: transfer.foreign_id.clone(),
            from_owner: owner_name(world, transfer.from),
            to_owner: owner_name(world, transfer.to),
            amount: format_amount(transfer.amount),
            job_id: transfer.job.clone(),
            timestamp_utc: rfc3339::format_seconds(transfer.at),
        }
    }

    /// A job's payment by its hold, which was not ordered as a transfer.
    pub fn of_entry(world: &World, entry: &Entry, job_id: Option<String>) -> Self {
        let digest = Digest::of(&[b"registry entry", &entry.id.0.to_be_bytes()]);
        let id = Builder::from_random_bytes(digest.0).into_uuid();
        Self {
            transfer_id: id.to_string(),
            from_owner: owner_name(world, entry.from.owner),
            to_owner: owner_name(world, entry.to.owner),
            amount: format_amount(entry.amount),
            job_id,
            timestamp_utc: rfc3339::format_seconds(entry.at),
        }
    }
}

fn owner_name(world: &World, id: OwnerId) -> String {
    world.owner(id).map(|owner| owner.name.clone()).unwrap_or_default()
}

/// An owner's name as the ledger has it.
fn canonical_owner(context: &RegistryContext, typed: String) -> String {
    context.engine.with_world(|world| naming::canonical_owner_name(world, typed))
}

#[derive(Serialize, JsonSchema)]
pub struct AccountAnswer<'a> {
    owner_id: &'a str,
    balance: Number,
    held: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<Number>,
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
    State(context): State<RegistryContext>,
    known: KnownCaller,
    sent: BodyBytes,
) -> HandlerResult {
    let whole = with_body_example(ACCOUNT_EXAMPLE);
    let body = ijson::read(&sent.0).map_err(Malformed::from).map_err(&whole)?;
    let f = Fields::read(&body, "").map_err(&whole)?;
    let amount = f.credits("initial_balance", DECIMALS)?.unwrap_or(Credits::ZERO);
    let command = if known.0.is_operator() {
        let name = canonical_owner(&context, read_ledger_name(&f, "owner_id")?);
        Command::Grant { name, amount }
    } else {
        let name = canonical_owner(&context, read_owner_name(&f, "owner_id")?);
        if !context.engine.with_world(|world| speaks_for(known, world, &name)) {
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
    State(context): State<RegistryContext>,
    known: KnownCaller,
    PathParam(name): PathParam,
) -> HandlerResult {
    let name = canonical_owner(&context, read_path_owner(&name)?.to_owned());
    let owner = context.engine.with_world(|world| {
        let allowed = known.0.is_operator() || speaks_for(known, world, &name);
        world.owner_by_name(&name).filter(|_| allowed).and_then(|id| world.owner(id).cloned())
    });
    let owner = owner.ok_or_else(Failure::not_found)?;
    Ok(json_response(200, &AccountAnswer::of(&owner, None)))
}

#[derive(Serialize, JsonSchema)]
pub struct EconomyAnswer {
    total_accounts: usize,
    total_volume: Number,
    total_transactions: u64,
    all_balances: BTreeMap<String, Number>,
}

/// `GET /economy`: the totals, and the balances visible to the caller.
pub async fn economy(State(context): State<RegistryContext>, known: KnownCaller) -> HandlerResult {
    let (shown, mut body) = context.engine.with_world(|world| {
        let all = known.0.is_operator() || known.0.caller == Caller::Anonymous;
        let own = own_owner(known, world);
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
