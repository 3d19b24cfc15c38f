//! Reading: the rows a world is rebuilt from, single rows, and pages of history.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use rialto_core::agent::key::Key as Credential;
use rialto_core::agent::{Agent, AgentState};
use rialto_core::alias::Alias;
use rialto_core::changes::{Changes, Counters};
use rialto_core::id::AgentId;
use rialto_core::idempotency::{IdempotencyEntry, IdempotencyRecord};
use rialto_core::job::Job;
use rialto_core::job::select::Rotation;
use rialto_core::message::inbox::Inbox;
use rialto_core::notice::Delivery;
use rialto_core::owner::Owner;
use rusqlite::{Connection, Rows, params};
use serde::de::DeserializeOwned;

use super::claims;
use super::inboxes;
use super::notices;
use super::row::{load_by_id, read_row, read_rows, row_parts, sql_id};
use super::store_error;
use super::write::COUNTERS_STATE;
use crate::store::claims::RecentClaims;
use crate::store::row::RowId;
use crate::store::table_loader::{self, Slice};
use crate::store::{PageQuery, Row, RowKey, StoreError, row};

/// Every row that must be in memory, and the inboxes whose rows lag behind the notices.
pub fn load_hot_rows(db: &Connection) -> Result<(Changes, BTreeMap<AgentId, Inbox>), StoreError> {
    let written = load_table(db, "mailboxes", |inbox: Inbox| (inbox.agent, inbox))?;
    let (inboxes, behind) = inboxes::load_inboxes(db, written.into_iter().collect())?;
    let rotations = db.prepare_cached("SELECT skill, body, crc FROM turns").map_err(store_error)?;
    let rotations: Vec<Arc<Rotation>> = read_rows("turns", rotations, [])?;
    let deliveries = load_table(db, "pushes", |row: Delivery| (row.notice, Some(Arc::new(row))))?;
    let hot = Changes {
        // Of an agent that has left only the small part is kept.
        agents: load_keyed(db, "agents", |row: Agent| (row.id, Arc::new(row).hot_row()))?,
        agent_states: load_keyed(db, "desks", |row: AgentState| (row.agent, Arc::new(row)))?,
        owners: load_keyed(db, "owners", |row: Owner| (row.id, Arc::new(row)))?,
        keys: load_keyed(db, "keys", |row: Credential| (row.id, Arc::new(row)))?,
        jobs: load_keyed(db, "jobs", |row: Job| (row.id, Arc::new(row)))?,
        // Only what the world holds of saved answers: together their bodies may not fit into
        // memory.
        idempotency_entries: load_keyed(db, "memories", |row: IdempotencyRecord| {
            (row.id, Arc::new(IdempotencyEntry::from(&row)))
        })?,
        rotations: rotations.into_iter().map(|row| (row.skill.clone(), row)).collect(),
        deliveries: deliveries.into_iter().collect(),
        aliases: load_table(db, "aliases", |row: Alias| row)?,
        inboxes,
        next: load_counters(db)?,
        ..Changes::default()
    };
    Ok((hot, behind))
}

/// All rows of a table whose keys are ids, in their order.
fn load_table<R: DeserializeOwned, T: Send>(
    db: &Connection,
    table: &'static str,
    convert: impl Fn(R) -> T + Sync,
) -> Result<Vec<T>, StoreError> {
    let sql = format!("SELECT id, body, crc FROM {table} ORDER BY id");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    table_loader::load_table(table, convert, || read_slice(&mut rows, table))
}

/// The next rows, and whether more may follow.
fn read_slice(rows: &mut Rows<'_>, table: &str) -> Result<(Slice, bool), StoreError> {
    let mut slice = Slice::default();
    while !slice.is_full() {
        let Some(row) = rows.next().map_err(store_error)? else { return Ok((slice, false)) };
        let (key, body, crc) = row_parts(table, row)?;
        let RowId::Number(id) = key else {
            return Err(row::corrupt(table, key, "has no number as its key"));
        };
        slice.push(id, body, crc);
    }
    Ok((slice, true))
}

/// The rows of a table as a map. They come in the order of their keys, so it is built at once.
fn load_keyed<R: DeserializeOwned, K: Ord + Send, T: Send>(
    db: &Connection,
    table: &'static str,
    convert: impl Fn(R) -> (K, T) + Sync,
) -> Result<BTreeMap<K, T>, StoreError> {
    Ok(load_table(db, table, convert)?.into_iter().collect())
}

/// The next ids; `None` in a store that was never written to.
pub fn load_counters(db: &Connection) -> Result<Option<Counters>, StoreError> {
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([COUNTERS_STATE]).map_err(store_error)?;
    let found = rows.next().map_err(store_error)?;
    found.map(|row| read_row("state", row)).transpose()
}

/// One row by its key.
pub fn load_row(
    db: &Connection,
    tail: &RwLock<RecentClaims>,
    wanted: RowKey,
) -> Result<Option<Row>, StoreError> {
    Ok(match wanted {
        RowKey::Claim(digest) => {
            let tail = tail.read();
            let (newest, indexed) = (tail.get(digest), tail.may_be_indexed(digest));
            drop(tail);
            match newest {
                None if indexed => claims::find_indexed(db, digest)?,
                newest => newest,
            }
            .map(Row::Claim)
        }
        RowKey::Agent(id) => load_by_id(db, "agents", id.0)?.map(Row::Agent),
        // Live jobs first: a job that ends between the two lookups is found by the second.
        RowKey::Job(id) => match load_by_id(db, "jobs", id.0)? {
            Some(live) => Some(live),
            None => load_by_id(db, "archive", id.0)?,
        }
        .map(Row::Job),
        RowKey::Transfer(id) => load_by_id(db, "transfers", id.0)?.map(Row::Transfer),
        RowKey::Entry(id) => load_by_id(db, "entries", id.0)?.map(Row::Entry),
        RowKey::Notice(id) => notices::load_notice(db, id)?.map(Row::Notice),
        RowKey::Arrival(id) => load_by_id(db, "arrivals", id.0)?.map(Row::Arrival),
        RowKey::Outcome(id) => load_by_id(db, "outcomes", id.0)?.map(Row::Outcome),
        RowKey::MarketRecord(id) => load_by_id(db, "postings", id.0)?.map(Row::Posting),
        RowKey::IdempotencyRecord(id) => load_by_id(db, "memories", id.0)?.map(Row::Memory),
    })
}

/// Rows in the order they were written.
pub fn load_page(db: &Connection, page: PageQuery) -> Result<Vec<Row>, StoreError> {
    const LINES: &str = "SELECT id, body, crc FROM lines WHERE id > ?1 ORDER BY id LIMIT ?2";
    const ENTRIES: &str =
        "SELECT id, body, crc FROM entries WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
    const JOBS: &str = "SELECT id, body, crc FROM archive WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
    const POSTINGS: &str =
        "SELECT id, body, crc FROM postings WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3";
    const NEWEST: &str =
        "SELECT id, body, crc FROM postings WHERE id > ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
    let prepared = |sql| db.prepare_cached(sql).map_err(store_error);
    let most = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(match page {
        PageQuery::Lines { after, limit } => {
            let rows = read_rows("lines", prepared(LINES)?, params![sql_id(after.0), most(limit)])?;
            rows.into_iter().map(Row::Line).collect()
        }
        PageQuery::Entries { before, limit } => {
            let rows =
                read_rows("entries", prepared(ENTRIES)?, params![sql_id(before.0), most(limit)])?;
            rows.into_iter().map(Row::Entry).collect()
        }
        PageQuery::MarketRecords { after, before, newest_first, limit } => {
            let sql = if newest_first { NEWEST } else { POSTINGS };
            let wanted = params![sql_id(after.0), sql_id(before.0), most(limit)];
            let rows = read_rows("postings", prepared(sql)?, wanted)?;
            rows.into_iter().map(Row::Posting).collect()
        }
        PageQuery::Jobs { before, limit } => {
            let rows =
                read_rows("archive", prepared(JOBS)?, params![sql_id(before.0), most(limit)])?;
            rows.into_iter().map(Row::Job).collect()
        }
    })
}
