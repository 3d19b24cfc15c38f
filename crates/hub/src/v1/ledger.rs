//! The ledger: every movement of credits, newest first.

use axum::extract::{RawQuery, State};
use rialto_core::id::{EntryId, OwnerId};
use rialto_core::ledger::{Entry, SubAccount};
use rialto_core::world::World;
use rialto_engine::store::{PageQuery as StorePage, Row};
use rialto_engine::{Engine, Failure};
use rialto_protocols::adapter::{HubContext, naming};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::accounts::can_view_account;
use super::auth::{AuthenticatedCaller, KeyHolder};
use super::page::{self, Cursor, Page};
use super::problem::Problem;
use super::public_ids::PublicIds;
use super::response::{HandlerResult, format_amount, format_time, ok_response};
use crate::v1::params::{PageCursor, PageLimit};

/// The list's tag in cursors.
const ENTRY_LIST: char = 'g';

rialto_protocols::words! {
    /// What moved credits.
    EntryKindName: "grant" | "burn" | "transfer" | "hold" | "capture" | "release"
}

/// One ledger entry.
#[derive(Serialize, JsonSchema)]
pub struct EntryView {
    id: u64,
    at: Time,
    #[schemars(with = "EntryKindName")]
    kind: &'static str,
    from: PocketView,
    to: PocketView,
    amount: Number,
    job: Option<Uuid>,
    /// The payer's own id for the payment.
    transfer: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct PocketView {
    owner: String,
    held: bool,
}

/// Some entries, and the entry to continue from.
struct EntrySlice {
    entries: Vec<Entry>,
    next: Option<u64>,
}

rialto_protocols::request_members! {
    /// Which ledger entries to list.
    LedgerQuery {
        /// The owner whose entries to list; by default the caller's, and all for the operator.
        owner: Option<String>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

/// `GET /v1/ledger`: the caller's own entries; for the operator all, or those of one owner.
pub async fn list_entries(
    State(context): State<HubContext>,
    known: KeyHolder,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), LedgerQuery::MEMBERS)?;
    let limit = page::parse_limit(&query)?;
    let from = page::parse_cursor(&query, ENTRY_LIST)?.map(|[from]| EntryId(from));
    let whose = context
        .engine
        .with_world(|world| resolve_owner(world, known.key.caller, query.text("owner")))?;
    let slice = match whose {
        Some(owner) => load_entries_of(&context.engine, owner, from, limit).await?,
        None => load_entries(&context.engine, from, limit).await?,
    };
    let EntrySlice { entries, next } = slice;
    let jobs = entries.iter().filter_map(|entry| entry.job);
    let transfers = entries.iter().filter_map(|entry| entry.transfer);
    let refs = PublicIds::load(&context.engine, jobs, transfers).await?;
    let items = context.engine.with_world(|world| {
        entries.iter().map(|entry| EntryView::of(world, &refs, entry)).collect::<Vec<_>>()
    });
    Ok(ok_response(&Page { items, next_cursor: next.map(|next| Cursor::new(ENTRY_LIST, [next])) }))
}

/// The owner whose entries to list; `None` for all. An agent gets a 404 for any owner but its own.
fn resolve_owner(
    world: &World,
    who: AuthenticatedCaller,
    named: Option<&str>,
) -> Result<Option<OwnerId>, Problem> {
    match (named, who) {
        (Some(name), _) => {
            let name = naming::canonical_owner_name(world, name.to_owned());
            let owner = world.owner_by_name(&name).and_then(|id| world.owner(id));
            let owner = owner.filter(|owner| can_view_account(world, who, owner));
            owner.map(|owner| Some(owner.id)).ok_or_else(Problem::not_found)
        }
        (None, AuthenticatedCaller::Operator) => Ok(None),
        (None, AuthenticatedCaller::Agent(id)) => {
            let owner = world.agent(id).map(|agent| agent.owner);
            owner.map(Some).ok_or_else(Problem::not_found)
        }
    }
}

async fn load_entries_of(
    engine: &Engine,
    owner: OwnerId,
    from: Option<EntryId>,
    limit: usize,
) -> Result<EntrySlice, Failure> {
    let newest = engine.with_world(|world| world.owner(owner).and_then(|owner| owner.newest_entry));
    // A forged cursor into another owner's entries gives an empty page.
    let page = engine.entries_of(owner, from.or(newest), limit, |_| true).await?;
    Ok(EntrySlice { entries: page.rows, next: page.next })
}

async fn load_entries(
    engine: &Engine,
    from: Option<EntryId>,
    limit: usize,
) -> Result<EntrySlice, Failure> {
    let before = from.map_or(u64::MAX, |from| from.0.saturating_add(1));
    let rows =
        engine.load_page(StorePage::Entries { before: EntryId(before), limit: limit + 1 }).await?;
    let mut entries: Vec<Entry> = rows
        .into_iter()
        .filter_map(|row| match row {
            Row::Entry(entry) => Some(entry),
            _ => None,
        })
        .collect();
    let next = entries.get(limit).map(|entry| entry.id.0);
    entries.truncate(limit);
    Ok(EntrySlice { entries, next })
}

impl EntryView {
    fn of(world: &World, refs: &PublicIds, entry: &Entry) -> Self {
        Self {
            id: entry.id.0,
            at: format_time(entry.at),
            kind: entry.kind.as_str(),
            from: PocketView::of(world, entry.from),
            to: PocketView::of(world, entry.to),
            amount: format_amount(entry.amount),
            job: entry.job.and_then(|id| refs.job(id)),
            transfer: entry.transfer.and_then(|id| refs.transfer(id)).map(str::to_owned),
        }
    }
}

impl PocketView {
    fn of(world: &World, pocket: SubAccount) -> Self {
        let owner = world.owner(pocket.owner).map(|owner| owner.name.clone());
        Self { owner: owner.unwrap_or_default(), held: pocket.held }
    }
}
