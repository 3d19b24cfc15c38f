//! Writing a batch, reading it all back, and pages of history.

use std::collections::BTreeMap;
use std::sync::Arc;

use rialto_core::agent::key::Key;
use rialto_core::agent::{Agent, Desk};
use rialto_core::alias::Alias;
use rialto_core::changes::Changes;
use rialto_core::id::AnswerId;
use rialto_core::job::Job;
use rialto_core::job::select::Turn;
use rialto_core::memory::Memory;
use rialto_core::notice::Push;
use rialto_core::owner::Owner;
use rusqlite::{Connection, params};
use serde::de::DeserializeOwned;

use super::row::{all, decode, encode};
use super::trouble;
use crate::store::{Page, Row, StoreError};

/// Writes every changed row once, in key order within each table.
pub fn batch(db: &Connection, batch: &Changes, forgotten: &[AnswerId]) -> Result<(), StoreError> {
    let put = |table, rows: &mut dyn Iterator<Item = (u64, Result<(String, u32), StoreError>)>| {
        upsert(db, table, rows)
    };
    put("agents", &mut batch.agents.values().map(|row| (row.id.0, encode(row))))?;
    put("desks", &mut batch.desks.values().map(|row| (row.agent.0, encode(row))))?;
    put("keys", &mut batch.keys.values().map(|row| (row.id.0, encode(row))))?;
    put("aliases", &mut batch.aliases.iter().map(|row| (row.id.0, encode(row))))?;
    put("memories", &mut batch.memories.values().map(|row| (row.id.0, encode(row))))?;
    put("transfers", &mut batch.transfers.iter().map(|row| (row.id.0, encode(row))))?;
    put("notices", &mut batch.notices.iter().map(|row| (row.id.0, encode(row))))?;
    put("outcomes", &mut batch.outcomes.iter().map(|row| (row.id.0, encode(row))))?;
    put("lines", &mut batch.lines.iter().map(|row| (row.id.0, encode(row))))?;
    let (done, live) = batch.jobs.values().partition::<Vec<_>, _>(|job| job.state.is_final());
    put("jobs", &mut live.iter().map(|row| (row.id.0, encode(row))))?;
    put("archive", &mut done.iter().map(|row| (row.id.0, encode(row))))?;
    delete(db, "jobs", done.iter().map(|row| row.id.0))?;
    let under_way = batch.pushes.values().flatten();
    put("pushes", &mut under_way.map(|row| (row.notice.0, encode(row))))?;
    let arrived = batch.pushes.iter().filter(|(_, push)| push.is_none());
    delete(db, "pushes", arrived.map(|(id, _)| id.0))?;
    delete(db, "memories", forgotten.iter().map(|id| id.0))?;
    owners(db, batch)?;
    entries(db, batch)?;
    turns(db, batch)?;
    if let Some(next) = &batch.next {
        let (body, crc) = encode(next)?;
        let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES ('counters', ?1, ?2)";
        let mut statement = db.prepare_cached(sql).map_err(trouble)?;
        statement.execute(params![body, crc]).map_err(trouble)?;
    }
    Ok(())
}

fn upsert(
    db: &Connection,
    table: &str,
    rows: &mut dyn Iterator<Item = (u64, Result<(String, u32), StoreError>)>,
) -> Result<(), StoreError> {
    let sql = format!("INSERT OR REPLACE INTO {table} (id, body, crc) VALUES (?1, ?2, ?3)");
    let mut statement = db.prepare_cached(&sql).map_err(trouble)?;
    for (id, row) in rows {
        let (body, crc) = row?;
        statement.execute(params![id as i64, body, crc]).map_err(trouble)?;
    }
    Ok(())
}

fn delete(
    db: &Connection,
    table: &str,
    ids: impl Iterator<Item = u64>,
) -> Result<(), StoreError> {
    let sql = format!("DELETE FROM {table} WHERE id = ?1");
    let mut statement = db.prepare_cached(&sql).map_err(trouble)?;
    for id in ids {
        statement.execute([id as i64]).map_err(trouble)?;
    }
    Ok(())
}

/// Balances stand in columns of their own, where the database checks them once more.
fn owners(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO owners (id, body, crc, available, held)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    for owner in batch.owners.values() {
        let (body, crc) = encode(owner)?;
        let (available, held) = (owner.available.micros(), owner.held.micros());
        statement
            .execute(params![owner.id.0 as i64, body, crc, available, held])
            .map_err(trouble)?;
    }
    Ok(())
}

fn entries(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    // No REPLACE: a line of the ledger is written once, and writing it twice is a fault.
    let sql = "INSERT INTO entries (id, body, crc, kind, payer, payee, amount)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    for entry in &batch.entries {
        let (body, crc) = encode(entry)?;
        let (payer, payee) = (entry.from.owner.0 as i64, entry.to.owner.0 as i64);
        let (kind, amount) = (entry.kind.as_str(), entry.amount.micros());
        statement
            .execute(params![entry.id.0 as i64, body, crc, kind, payer, payee, amount])
            .map_err(trouble)?;
    }
    Ok(())
}

fn turns(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO turns (skill, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    for turn in batch.turns.values() {
        let (body, crc) = encode(turn)?;
        statement.execute(params![turn.skill, body, crc]).map_err(trouble)?;
    }
    Ok(())
}

/// Everything that must be at hand.
pub fn rebuild(db: &Connection) -> Result<Changes, StoreError> {
    let turns = db.prepare_cached("SELECT body, crc FROM turns").map_err(trouble)?;
    let turns: Vec<Arc<Turn>> = all("turns", turns, [])?;
    let pushes: Vec<Arc<Push>> = every(db, "pushes")?;
    Ok(Changes {
        agents: keyed(db, "agents", |row: &Agent| row.id)?,
        desks: keyed(db, "desks", |row: &Desk| row.agent)?,
        owners: keyed(db, "owners", |row: &Owner| row.id)?,
        keys: keyed(db, "keys", |row: &Key| row.id)?,
        jobs: keyed(db, "jobs", |row: &Job| row.id)?,
        memories: keyed(db, "memories", |row: &Memory| row.id)?,
        turns: turns.into_iter().map(|row| (row.skill.clone(), row)).collect(),
        pushes: pushes.into_iter().map(|row| (row.notice, Some(row))).collect(),
        aliases: every::<Alias>(db, "aliases")?,
        next: counters(db)?,
        ..Changes::default()
    })
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
    let sql = format!("SELECT body, crc FROM {table} ORDER BY rowid");
    all(table, db.prepare_cached(&sql).map_err(trouble)?, [])
}

fn counters<T: DeserializeOwned>(db: &Connection) -> Result<Option<T>, StoreError> {
    let mut statement = db
        .prepare_cached("SELECT body, crc FROM state WHERE name = 'counters'")
        .map_err(trouble)?;
    let mut rows = statement.query([]).map_err(trouble)?;
    let Some(row) = rows.next().map_err(trouble)? else { return Ok(None) };
    let body: String = row.get(0).map_err(trouble)?;
    decode("state", &body, row.get(1).map_err(trouble)?).map(Some)
}

/// Rows in the order they were written.
pub fn page(db: &Connection, page: Page) -> Result<Vec<Row>, StoreError> {
    let prepared = |sql| db.prepare_cached(sql).map_err(trouble);
    Ok(match page {
        Page::Lines { after, limit } => {
            let sql = prepared("SELECT body, crc FROM lines WHERE id > ?1 ORDER BY id LIMIT ?2")?;
            let rows = all("lines", sql, params![after.0 as i64, limit as i64])?;
            rows.into_iter().map(Row::Line).collect()
        }
        Page::Entries { before, limit } => {
            let sql =
                prepared("SELECT body, crc FROM entries WHERE id < ?1 ORDER BY id DESC LIMIT ?2")?;
            let before = i64::try_from(before.0).unwrap_or(i64::MAX);
            let rows = all("entries", sql, params![before, limit as i64])?;
            rows.into_iter().map(Row::Entry).collect()
        }
        Page::Jobs { before, limit } => {
            let sql =
                prepared("SELECT body, crc FROM archive WHERE id < ?1 ORDER BY id DESC LIMIT ?2")?;
            let before = i64::try_from(before.0).unwrap_or(i64::MAX);
            let rows = all("archive", sql, params![before, limit as i64])?;
            rows.into_iter().map(Row::Job).collect()
        }
    })
}
