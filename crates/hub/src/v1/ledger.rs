//! The ledger: every movement of credits, newest first.

use axum::extract::{RawQuery, State};
use rialto_core::id::{EntryId, OwnerId};
use rialto_core::ledger::{Entry, Pocket};
use rialto_core::world::World;
use rialto_engine::store::{Page as StorePage, Row};
use rialto_engine::{Engine, Failure};
use rialto_protocols::adapter::{Floor, naming};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::accounts::may_see;
use super::response::{Answered, money, ok, time};
use super::page::{self, Cursor, Page};
use super::problem::Problem;
use super::auth::{Known, Who};
use super::public_ids::Refs;

/// The list's tag in cursors.
const ENTRIES: char = 'g';

/// One ledger entry.
#[derive(Serialize)]
struct EntryView {
    id: u64,
    at: String,
    kind: &'static str,
    from: PocketView,
    to: PocketView,
    amount: Box<RawValue>,
    job: Option<Uuid>,
    /// The payer's own id for the payment.
    transfer: Option<String>,
}

#[derive(Serialize)]
struct PocketView {
    owner: String,
    held: bool,
}

/// Some entries, and the entry to continue from.
struct Slice {
    entries: Vec<Entry>,
    next: Option<u64>,
}

/// `GET /v1/ledger`: the caller's own entries; for the operator all, or those of one owner.
pub async fn list(State(floor): State<Floor>, known: Known, RawQuery(raw): RawQuery) -> Answered {
    let query = page::query(raw.as_deref(), &["owner", "limit", "cursor"])?;
    let limit = page::limit(&query)?;
    let from = page::place(&query, ENTRIES)?.map(|[from]| EntryId(from));
    let whose = floor.engine.look(|world| whose(world, known.proven.who, query.text("owner")))?;
    let slice = match whose {
        Some(owner) => of_owner(&floor.engine, owner, from, limit).await?,
        None => of_all(&floor.engine, from, limit).await?,
    };
    let Slice { entries, next } = slice;
    let jobs = entries.iter().filter_map(|entry| entry.job);
    let transfers = entries.iter().filter_map(|entry| entry.transfer);
    let refs = Refs::look_up(&floor.engine, jobs, transfers).await?;
    let items = floor.engine.look(|world| {
        entries.iter().map(|entry| EntryView::of(world, &refs, entry)).collect::<Vec<_>>()
    });
    Ok(ok(&Page { items, next_cursor: next.map(|next| Cursor::new(ENTRIES, [next])) }))
}

/// The owner whose entries to list; `None` for all. An agent gets a 404 for any owner but its own.
fn whose(world: &World, who: Who, named: Option<&str>) -> Result<Option<OwnerId>, Problem> {
    match (named, who) {
        (Some(name), _) => {
            let name = naming::owner(world, name.to_owned());
            let owner = world.owner_named(&name).and_then(|id| world.owner(id));
            let owner = owner.filter(|owner| may_see(world, who, owner));
            owner.map(|owner| Some(owner.id)).ok_or_else(Problem::not_found)
        }
        (None, Who::Operator) => Ok(None),
        (None, Who::Agent(id)) => {
            let owner = world.agent(id).map(|agent| agent.owner);
            owner.map(Some).ok_or_else(Problem::not_found)
        }
    }
}

async fn of_owner(
    engine: &Engine,
    owner: OwnerId,
    from: Option<EntryId>,
    limit: usize,
) -> Result<Slice, Failure> {
    let newest = engine.look(|world| world.owner(owner).and_then(|owner| owner.newest));
    // A forged cursor into another owner's entries gives an empty page.
    let page = engine.entries_of(owner, from.or(newest), limit, |_| true).await?;
    Ok(Slice { entries: page.rows, next: page.next })
}

async fn of_all(engine: &Engine, from: Option<EntryId>, limit: usize) -> Result<Slice, Failure> {
    let before = from.map_or(u64::MAX, |from| from.0.saturating_add(1));
    let rows =
        engine.page(StorePage::Entries { before: EntryId(before), limit: limit + 1 }).await?;
    let mut entries: Vec<Entry> = rows
        .into_iter()
        .filter_map(|row| match row {
            Row::Entry(entry) => Some(entry),
            _ => None,
        })
        .collect();
    let next = entries.get(limit).map(|entry| entry.id.0);
    entries.truncate(limit);
    Ok(Slice { entries, next })
}

impl EntryView {
    fn of(world: &World, refs: &Refs, entry: &Entry) -> Self {
        Self {
            id: entry.id.0,
            at: time(entry.at),
            kind: entry.kind.as_str(),
            from: PocketView::of(world, entry.from),
            to: PocketView::of(world, entry.to),
            amount: money(entry.amount),
            job: entry.job.and_then(|id| refs.job(id)),
            transfer: entry.transfer.and_then(|id| refs.transfer(id)).map(str::to_owned),
        }
    }
}

impl PocketView {
    fn of(world: &World, pocket: Pocket) -> Self {
        let owner = world.owner(pocket.owner).map(|owner| owner.name.clone());
        Self { owner: owner.unwrap_or_default(), held: pocket.held }
    }
}
