//! Writing a batch: every changed row once, in key order within each table.

use rialto_core::changes::{Changes, ExpiredRows};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use serde::Serialize;

use super::row::{RowBuffer, sql_id};
use super::{notices, store_error};
use crate::store::StoreError;

/// State row with the counters.
pub const COUNTERS_STATE: &str = "counters";

/// What happens if the row exists already.
#[derive(Clone, Copy)]
enum WriteMode {
    /// The new row replaces it.
    Replace,
    /// It is history, and writing it twice is an error.
    Append,
}

/// Writes a batch, within a transaction of the caller.
pub fn write_batch(
    db: &Connection,
    batch: &Changes,
    forgotten: &ExpiredRows,
) -> Result<(), StoreError> {
    use WriteMode::{Append, Replace};
    write_rows(db, "agents", Replace, batch.agents.values().map(|row| (row.id.0, row)))?;
    write_rows(db, "desks", Replace, batch.agent_states.values().map(|row| (row.agent.0, row)))?;
    write_rows(db, "keys", Replace, batch.keys.values().map(|row| (row.id.0, row)))?;
    write_rows(db, "aliases", Append, batch.aliases.iter().map(|row| (row.id.0, row)))?;
    write_rows(
        db,
        "memories",
        Replace,
        batch.idempotency_records.values().map(|row| (row.id.0, row)),
    )?;
    write_rows(db, "transfers", Append, batch.transfers.iter().map(|row| (row.id.0, row)))?;
    notices::append_notices(db, &batch.notices)?;
    write_rows(
        db,
        "arrivals",
        Replace,
        batch.completed_deliveries.values().map(|row| (row.notice.0, row)),
    )?;
    write_rows(db, "outcomes", Append, batch.outcomes.iter().map(|row| (row.id.0, row)))?;
    write_rows(db, "lines", Append, batch.history_lines.iter().map(|row| (row.id.0, row)))?;
    write_rows(db, "postings", Append, batch.market_records.iter().map(|row| (row.id.0, row)))?;
    // A finished job is history. Only its webhooks may still change.
    let (done, live) = batch.jobs.values().partition::<Vec<_>, _>(|job| job.state.is_final());
    write_rows(db, "jobs", Replace, live.iter().map(|row| (row.id.0, row)))?;
    write_rows(db, "archive", Replace, done.iter().map(|row| (row.id.0, row)))?;
    delete_rows(db, "jobs", done.iter().map(|row| row.id.0))?;
    let under_way = batch.deliveries.values().flatten();
    write_rows(db, "pushes", Replace, under_way.map(|row| (row.notice.0, row)))?;
    let arrived = batch.deliveries.iter().filter(|(_, push)| push.is_none());
    delete_rows(db, "pushes", arrived.map(|(id, _)| id.0))?;
    delete_rows(db, "memories", forgotten.answers.iter().map(|id| id.0))?;
    delete_rows(db, "keys", forgotten.keys.iter().map(|(_, id)| id.0))?;
    owners(db, batch)?;
    entries(db, batch)?;
    turns(db, batch)?;
    if let Some(next) = &batch.next {
        let mut page = RowBuffer::default();
        let (body, crc) = page.encode(ValueRef::Text(COUNTERS_STATE.as_bytes()), next)?;
        let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
        let mut statement = db.prepare_cached(sql).map_err(store_error)?;
        statement.execute(params![COUNTERS_STATE, body, crc]).map_err(store_error)?;
    }
    Ok(())
}

fn write_rows<T: Serialize>(
    db: &Connection,
    table: &str,
    how: WriteMode,
    rows: impl Iterator<Item = (u64, T)>,
) -> Result<(), StoreError> {
    // Most batches change few tables, and preparing a statement costs as much as a row.
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let verb = match how {
        WriteMode::Replace => "INSERT OR REPLACE",
        WriteMode::Append => "INSERT",
    };
    let sql = format!("{verb} INTO {table} (id, body, crc) VALUES (?1, ?2, ?3)");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let mut page = RowBuffer::default();
    for (id, row) in rows {
        let (body, crc) = page.encode(ValueRef::Integer(sql_id(id)), &row)?;
        statement.execute(params![sql_id(id), body, crc]).map_err(store_error)?;
    }
    Ok(())
}

fn delete_rows(
    db: &Connection,
    table: &str,
    ids: impl Iterator<Item = u64>,
) -> Result<(), StoreError> {
    let mut ids = ids.peekable();
    if ids.peek().is_none() {
        return Ok(());
    }
    let sql = format!("DELETE FROM {table} WHERE id = ?1");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    for id in ids {
        statement.execute([sql_id(id)]).map_err(store_error)?;
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
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut page = RowBuffer::default();
    for owner in batch.owners.values() {
        let id = sql_id(owner.id.0);
        let (body, crc) = page.encode(ValueRef::Integer(id), owner)?;
        let (available, held) = (owner.available.micros(), owner.held.micros());
        statement.execute(params![id, body, crc, available, held]).map_err(store_error)?;
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
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut page = RowBuffer::default();
    for entry in &batch.entries {
        let id = sql_id(entry.id.0);
        let (body, crc) = page.encode(ValueRef::Integer(id), entry)?;
        let (payer, payee) = (sql_id(entry.from.owner.0), sql_id(entry.to.owner.0));
        let (kind, amount) = (entry.kind.as_str(), entry.amount.micros());
        let row = params![id, body, crc, kind, payer, payee, amount];
        statement.execute(row).map_err(store_error)?;
    }
    Ok(())
}

fn turns(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    if batch.rotations.is_empty() {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO turns (skill, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut page = RowBuffer::default();
    for turn in batch.rotations.values() {
        let (body, crc) = page.encode(ValueRef::Text(turn.skill.as_bytes()), turn)?;
        statement.execute(params![turn.skill, body, crc]).map_err(store_error)?;
    }
    Ok(())
}
