//! Writing a batch: every changed row once, in key order within each table.

use rialto_core::changes::{Changes, Forgotten};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use serde::Serialize;

use super::row::{Page, key};
use super::{notices, trouble};
use crate::store::StoreError;

/// State row with the counters.
pub const COUNTERS: &str = "counters";

/// What happens if the row exists already.
#[derive(Clone, Copy)]
enum How {
    /// The new row replaces it.
    Replace,
    /// It is history, and writing it twice is an error.
    Append,
}

/// Writes a batch, within a transaction of the caller.
pub fn batch(db: &Connection, batch: &Changes, forgotten: &Forgotten) -> Result<(), StoreError> {
    use How::{Append, Replace};
    put(db, "agents", Replace, batch.agents.values().map(|row| (row.id.0, row)))?;
    put(db, "desks", Replace, batch.desks.values().map(|row| (row.agent.0, row)))?;
    put(db, "keys", Replace, batch.keys.values().map(|row| (row.id.0, row)))?;
    put(db, "aliases", Append, batch.aliases.iter().map(|row| (row.id.0, row)))?;
    put(db, "memories", Replace, batch.memories.values().map(|row| (row.id.0, row)))?;
    put(db, "transfers", Append, batch.transfers.iter().map(|row| (row.id.0, row)))?;
    notices::append(db, &batch.notices)?;
    put(db, "arrivals", Replace, batch.arrivals.iter().map(|row| (row.notice.0, row)))?;
    put(db, "outcomes", Append, batch.outcomes.iter().map(|row| (row.id.0, row)))?;
    put(db, "lines", Append, batch.lines.iter().map(|row| (row.id.0, row)))?;
    put(db, "postings", Append, batch.postings.iter().map(|row| (row.id.0, row)))?;
    // A finished job never changes again, so it is history too.
    let (done, live) = batch.jobs.values().partition::<Vec<_>, _>(|job| job.state.is_final());
    put(db, "jobs", Replace, live.iter().map(|row| (row.id.0, row)))?;
    put(db, "archive", Append, done.iter().map(|row| (row.id.0, row)))?;
    delete(db, "jobs", done.iter().map(|row| row.id.0))?;
    let under_way = batch.pushes.values().flatten();
    put(db, "pushes", Replace, under_way.map(|row| (row.notice.0, row)))?;
    let arrived = batch.pushes.iter().filter(|(_, push)| push.is_none());
    delete(db, "pushes", arrived.map(|(id, _)| id.0))?;
    delete(db, "memories", forgotten.answers.iter().map(|id| id.0))?;
    delete(db, "keys", forgotten.keys.iter().map(|(_, id)| id.0))?;
    owners(db, batch)?;
    entries(db, batch)?;
    turns(db, batch)?;
    if let Some(next) = &batch.next {
        let mut page = Page::default();
        let (body, crc) = page.encode(ValueRef::Text(COUNTERS.as_bytes()), next)?;
        let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
        let mut statement = db.prepare_cached(sql).map_err(trouble)?;
        statement.execute(params![COUNTERS, body, crc]).map_err(trouble)?;
    }
    Ok(())
}

fn put<T: Serialize>(
    db: &Connection,
    table: &str,
    how: How,
    rows: impl Iterator<Item = (u64, T)>,
) -> Result<(), StoreError> {
    // Most batches change few tables, and preparing a statement costs as much as a row.
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let verb = match how {
        How::Replace => "INSERT OR REPLACE",
        How::Append => "INSERT",
    };
    let sql = format!("{verb} INTO {table} (id, body, crc) VALUES (?1, ?2, ?3)");
    let mut statement = db.prepare_cached(&sql).map_err(trouble)?;
    let mut page = Page::default();
    for (id, row) in rows {
        let (body, crc) = page.encode(ValueRef::Integer(key(id)), &row)?;
        statement.execute(params![key(id), body, crc]).map_err(trouble)?;
    }
    Ok(())
}

fn delete(db: &Connection, table: &str, ids: impl Iterator<Item = u64>) -> Result<(), StoreError> {
    let mut ids = ids.peekable();
    if ids.peek().is_none() {
        return Ok(());
    }
    let sql = format!("DELETE FROM {table} WHERE id = ?1");
    let mut statement = db.prepare_cached(&sql).map_err(trouble)?;
    for id in ids {
        statement.execute([key(id)]).map_err(trouble)?;
    }
    Ok(())
}

/// Balances have their own columns, where the database checks them again.
fn owners(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    if batch.owners.is_empty() {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO owners (id, body, crc, available, held)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut page = Page::default();
    for owner in batch.owners.values() {
        let id = key(owner.id.0);
        let (body, crc) = page.encode(ValueRef::Integer(id), owner)?;
        let (available, held) = (owner.available.micros(), owner.held.micros());
        statement.execute(params![id, body, crc, available, held]).map_err(trouble)?;
    }
    Ok(())
}

/// What moved has its own columns, for operators who inspect the file.
fn entries(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    if batch.entries.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO entries (id, body, crc, kind, payer, payee, amount)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut page = Page::default();
    for entry in &batch.entries {
        let id = key(entry.id.0);
        let (body, crc) = page.encode(ValueRef::Integer(id), entry)?;
        let (payer, payee) = (key(entry.from.owner.0), key(entry.to.owner.0));
        let (kind, amount) = (entry.kind.as_str(), entry.amount.micros());
        let row = params![id, body, crc, kind, payer, payee, amount];
        statement.execute(row).map_err(trouble)?;
    }
    Ok(())
}

fn turns(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    if batch.turns.is_empty() {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO turns (skill, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut page = Page::default();
    for turn in batch.turns.values() {
        let (body, crc) = page.encode(ValueRef::Text(turn.skill.as_bytes()), turn)?;
        statement.execute(params![turn.skill, body, crc]).map_err(trouble)?;
    }
    Ok(())
}
