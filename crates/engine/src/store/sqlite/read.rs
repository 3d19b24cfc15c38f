//! Reading: the rows a world is rebuilt from, single rows, and pages of history.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use rialto_core::agent::key::Key as Credential;
use rialto_core::agent::{Agent, Desk};
use rialto_core::alias::Alias;
use rialto_core::changes::{Changes, Counters};
use rialto_core::id::{AgentId, AnswerId};
use rialto_core::job::Job;
use rialto_core::job::select::Turn;
use rialto_core::idempotency::{Memory, Remembered};
use rialto_core::message::inbox::Mailbox;
use rialto_core::notice::Push;
use rialto_core::owner::Owner;
use rusqlite::{Connection, params};
use serde::de::DeserializeOwned;

use super::claims::{self, Tail};
use super::inboxes::{self, Behind};
use super::notices;
use super::row::{all, get, key, read};
use super::trouble;
use super::write::COUNTERS;
use crate::store::{Key, Page, Row, StoreError};

/// Every row that must be in memory, and which inboxes are not written yet.
pub fn rebuild(db: &Connection) -> Result<(Changes, Behind), StoreError> {
    let written: Vec<Mailbox> = every(db, "mailboxes")?;
    let written = written.into_iter().map(|one| (one.agent, one)).collect();
    let (mailboxes, behind) = inboxes::rebuild(db, written)?;
    let turns = db.prepare_cached("SELECT skill, body, crc FROM turns").map_err(trouble)?;
    let turns: Vec<Arc<Turn>> = all("turns", turns, [])?;
    let pushes: Vec<Arc<Push>> = every(db, "pushes")?;
    let at_hand = Changes {
        agents: agents(db)?,
        desks: keyed(db, "desks", |row: &Desk| row.agent)?,
        owners: keyed(db, "owners", |row: &Owner| row.id)?,
        keys: keyed(db, "keys", |row: &Credential| row.id)?,
        jobs: keyed(db, "jobs", |row: &Job| row.id)?,
        remembered: remembered(db)?,
        turns: turns.into_iter().map(|row| (row.skill.clone(), row)).collect(),
        pushes: pushes.into_iter().map(|row| (row.notice, Some(row))).collect(),
        aliases: every::<Alias>(db, "aliases")?,
        mailboxes,
        next: counters(db)?,
        ..Changes::default()
    };
    Ok((at_hand, behind))
}

/// Row by row, so that the full rows of removed agents are never all in memory at once.
fn agents(db: &Connection) -> Result<BTreeMap<AgentId, Arc<Agent>>, StoreError> {
    let sql = "SELECT id, body, crc FROM agents ORDER BY id";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([]).map_err(trouble)?;
    let mut found = BTreeMap::new();
    while let Some(row) = rows.next().map_err(trouble)? {
        let agent: Arc<Agent> = read("agents", row)?;
        found.insert(agent.id, agent.at_hand());
    }
    Ok(found)
}

/// What the world holds of saved answers. Rows are read one at a time: together their bodies may
/// not fit into memory.
fn remembered(db: &Connection) -> Result<BTreeMap<AnswerId, Arc<Remembered>>, StoreError> {
    let sql = "SELECT id, body, crc FROM memories ORDER BY id";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([]).map_err(trouble)?;
    let mut all = BTreeMap::new();
    while let Some(row) = rows.next().map_err(trouble)? {
        let row: Memory = read("memories", row)?;
        all.insert(row.id, Arc::new(Remembered::from(&row)));
    }
    Ok(all)
}

fn keyed<K: Ord, T: DeserializeOwned>(
    db: &Connection,
    table: &'static str,
    key: impl Fn(&T) -> K,
) -> Result<BTreeMap<K, Arc<T>>, StoreError> {
    let rows: Vec<Arc<T>> = every(db, table)?;
    Ok(rows.into_iter().map(|row| (key(&row), row)).collect())
}

fn every<T: DeserializeOwned>(db: &Connection, table: &'static str) -> Result<Vec<T>, StoreError> {
    let sql = format!("SELECT id, body, crc FROM {table} ORDER BY id");
    all(table, db.prepare_cached(&sql).map_err(trouble)?, [])
}

/// The next ids; `None` in a store that was never written to.
pub fn counters(db: &Connection) -> Result<Option<Counters>, StoreError> {
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([COUNTERS]).map_err(trouble)?;
    let found = rows.next().map_err(trouble)?;
    found.map(|row| read("state", row)).transpose()
}

/// One row by its key.
pub fn load(db: &Connection, tail: &RwLock<Tail>, wanted: Key) -> Result<Option<Row>, StoreError> {
    Ok(match wanted {
        Key::Claim(digest) => {
            let tail = tail.read();
            let (newest, indexed) = (tail.get(digest), tail.may_be_indexed(digest));
            drop(tail);
            match newest {
                None if indexed => claims::indexed(db, digest)?,
                newest => newest,
            }
            .map(Row::Claim)
        }
        Key::Agent(id) => get(db, "agents", id.0)?.map(Row::Agent),
        // Live jobs first: a job that ends between the two lookups is found by the second.
        Key::Job(id) => match get(db, "jobs", id.0)? {
            Some(live) => Some(live),
            None => get(db, "archive", id.0)?,
        }
        .map(Row::Job),
        Key::Transfer(id) => get(db, "transfers", id.0)?.map(Row::Transfer),
        Key::Entry(id) => get(db, "entries", id.0)?.map(Row::Entry),
        Key::Notice(id) => notices::get(db, id)?.map(Row::Notice),
        Key::Arrival(id) => get(db, "arrivals", id.0)?.map(Row::Arrival),
        Key::Outcome(id) => get(db, "outcomes", id.0)?.map(Row::Outcome),
        Key::Posting(id) => get(db, "postings", id.0)?.map(Row::Posting),
        Key::Memory(id) => get(db, "memories", id.0)?.map(Row::Memory),
    })
}

/// Rows in the order they were written.
pub fn page(db: &Connection, page: Page) -> Result<Vec<Row>, StoreError> {
    const LINES: &str = "SELECT id, body, crc FROM lines WHERE id > ?1 ORDER BY id LIMIT ?2";
    const ENTRIES: &str =
        "SELECT id, body, crc FROM entries WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
    const JOBS: &str = "SELECT id, body, crc FROM archive WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
    const POSTINGS: &str =
        "SELECT id, body, crc FROM postings WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3";
    const NEWEST: &str =
        "SELECT id, body, crc FROM postings WHERE id > ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";
    let prepared = |sql| db.prepare_cached(sql).map_err(trouble);
    let most = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(match page {
        Page::Lines { after, limit } => {
            let rows = all("lines", prepared(LINES)?, params![key(after.0), most(limit)])?;
            rows.into_iter().map(Row::Line).collect()
        }
        Page::Entries { before, limit } => {
            let rows = all("entries", prepared(ENTRIES)?, params![key(before.0), most(limit)])?;
            rows.into_iter().map(Row::Entry).collect()
        }
        Page::Postings { after, before, newest_first, limit } => {
            let sql = if newest_first { NEWEST } else { POSTINGS };
            let wanted = params![key(after.0), key(before.0), most(limit)];
            let rows = all("postings", prepared(sql)?, wanted)?;
            rows.into_iter().map(Row::Posting).collect()
        }
        Page::Jobs { before, limit } => {
            let rows = all("archive", prepared(JOBS)?, params![key(before.0), most(limit)])?;
            rows.into_iter().map(Row::Job).collect()
        }
    })
}
