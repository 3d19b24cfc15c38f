//! What a node starts from: the tables and the log, as of one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, pin_mut};
use rialto_core::agent::key::Key;
use rialto_core::agent::{Agent, AgentState};
use rialto_core::alias::Alias;
use rialto_core::changes::{Changes, Counters};
use rialto_core::idempotency::{IdempotencyEntry, IdempotencyRecord};
use rialto_core::job::Job;
use rialto_core::job::select::Rotation;
use rialto_core::message::inbox::Inbox;
use rialto_core::notice::Delivery;
use rialto_core::owner::Owner;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;

use super::records::{LogRow, read_hash};
use super::session::{Connection, store_error};
use super::write::COUNTERS_STATE;
use crate::store::StoreError;
use crate::store::log::{LoggedBatch, Place};
use crate::store::row::{RowId, decode_row, sql_id};
use crate::store::table_loader::{self, Slice};

/// The batches that the tables lack.
pub struct LogTail {
    /// Up to where the tables are complete.
    pub checkpoint: Place,
    pub batches: Vec<LoggedBatch>,
    /// The epoch of the newest batch.
    pub epoch: u64,
    /// The bytes of these batches.
    pub bytes: u64,
    /// The next ids after the last of them.
    pub next: Counters,
    /// The newest claim in the table.
    pub newest_claim: u64,
}

impl LogTail {
    /// The newest batch.
    pub fn head(&self) -> Place {
        self.batches.last().map_or(self.checkpoint, |batch| batch.place)
    }
}

/// Reads the batches that the tables lack.
pub fn load_tail(connection: &mut Connection) -> Result<LogTail, StoreError> {
    in_snapshot(connection, read_tail)
}

/// Reads every row that must be in memory, and the batches that the tables lack.
pub fn load_all(connection: &mut Connection) -> Result<(Changes, LogTail), StoreError> {
    in_snapshot(connection, |connection| {
        let tail = read_tail(connection)?;
        Ok((load_hot_rows(connection)?, tail))
    })
}

/// Reads everything as of one moment.
pub fn in_snapshot<R>(
    connection: &mut Connection,
    read: impl FnOnce(&mut Connection) -> Result<R, StoreError>,
) -> Result<R, StoreError> {
    connection.run_script("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")?;
    let found = read(connection)?;
    connection.run_script("COMMIT")?;
    Ok(found)
}

/// The batches that the tables lack, within a transaction of the caller.
pub fn read_tail(connection: &mut Connection) -> Result<LogTail, StoreError> {
    const CHECKPOINT: &str =
        "SELECT seq, hash, (SELECT max(id) FROM claims) AS newest_claim FROM checkpoint";
    const BATCHES: &str =
        "SELECT seq, epoch, format, CASE WHEN seq = $1 THEN ''::bytea ELSE body END,
        hash FROM log WHERE seq >= $1 ORDER BY seq";
    let row = connection.query_one(CHECKPOINT, &[])?;
    let seq: i64 = row.try_get(0).map_err(store_error)?;
    let checkpoint = Place { number: seq.unsigned_abs(), hash: read_hash(&row, 1)? };
    let newest_claim: Option<i64> = row.try_get(2).map_err(store_error)?;
    let rows = connection.query(BATCHES, &[&sql_id(checkpoint.number)])?;
    let mut rows = rows.iter().map(LogRow::read);
    let mut epoch = 0;
    if checkpoint.number > 0 {
        let own = rows.next().transpose()?.filter(|row| row.place == checkpoint);
        epoch = own.map(|row| row.epoch).ok_or_else(|| {
            StoreError::Corrupt(format!(
                "the tables are complete up to batch {}, and the log does not have that batch; \
                 restore a backup",
                checkpoint.number
            ))
        })?;
    }
    let (mut head, mut bytes, mut batches) = (checkpoint, 0, Vec::new());
    for row in rows {
        let row = row?;
        (epoch, bytes) = (row.epoch, bytes + row.bytes());
        let batch = row.decode(head)?;
        head = batch.place;
        batches.push(batch);
    }
    let in_log = batches.iter().rev().find_map(|logged: &LoggedBatch| logged.batch.changes.next);
    let next = match in_log {
        Some(next) => next,
        None => load_counters(connection)?.unwrap_or_default(),
    };
    let newest_claim = newest_claim.unwrap_or(0).unsigned_abs();
    Ok(LogTail { checkpoint, batches, epoch, bytes, next, newest_claim })
}

/// The next ids; `None` in a store that was never written to.
fn load_counters(connection: &mut Connection) -> Result<Option<Counters>, StoreError> {
    let sql = "SELECT body, crc FROM state WHERE name = $1";
    let rows = connection.query(sql, &[&COUNTERS_STATE])?;
    let key = RowId::Text(COUNTERS_STATE.as_bytes());
    rows.first().map(|row| decode_columns("state", key, row)).transpose()
}

fn load_hot_rows(connection: &mut Connection) -> Result<Changes, StoreError> {
    let db = connection;
    let deliveries = load_table(db, "pushes", |row: Delivery| (row.notice, Some(Arc::new(row))))?;
    Ok(Changes {
        // Of an agent that has left only the small part is kept.
        agents: load_keyed(db, "agents", |row: Agent| (row.id, Arc::new(row).hot_row()))?,
        agent_states: load_keyed(db, "desks", |row: AgentState| (row.agent, Arc::new(row)))?,
        owners: load_keyed(db, "owners", |row: Owner| (row.id, Arc::new(row)))?,
        keys: load_keyed(db, "keys", |row: Key| (row.id, Arc::new(row)))?,
        jobs: load_keyed(db, "jobs", |row: Job| (row.id, Arc::new(row)))?,
        // Only what the world holds of saved answers: together their bodies may not fit into
        // memory.
        idempotency_entries: load_keyed(db, "memories", |row: IdempotencyRecord| {
            (row.id, Arc::new(IdempotencyEntry::from(&row)))
        })?,
        inboxes: load_keyed(db, "mailboxes", |inbox: Inbox| (inbox.agent, inbox))?,
        deliveries: deliveries.into_iter().collect(),
        rotations: load_rotations(db)?,
        aliases: load_table(db, "aliases", |row: Alias| row)?,
        next: load_counters(db)?,
        ..Changes::default()
    })
}

fn load_rotations(
    connection: &mut Connection,
) -> Result<BTreeMap<String, Arc<Rotation>>, StoreError> {
    let rows = connection.query("SELECT body, crc, skill FROM turns", &[])?;
    let read = |row: &Row| {
        let skill: &[u8] = row.try_get(2).map_err(store_error)?;
        let rotation: Arc<Rotation> = decode_columns("turns", RowId::Text(skill), row)?;
        Ok((rotation.skill.clone(), rotation))
    };
    rows.iter().map(read).collect()
}

/// Checks and decodes a row whose first columns are body and checksum.
fn decode_columns<T: DeserializeOwned>(
    table: &str,
    key: RowId<'_>,
    row: &Row,
) -> Result<T, StoreError> {
    let body = row.try_get(0).map_err(store_error)?;
    decode_row(table, key, body, row.try_get(1).map_err(store_error)?)
}

/// The rows of a table as a map. They come in the order of their keys, so it is built at once.
fn load_keyed<R: DeserializeOwned, K: Ord + Send, T: Send>(
    connection: &Connection,
    table: &'static str,
    convert: impl Fn(R) -> (K, T) + Sync,
) -> Result<BTreeMap<K, T>, StoreError> {
    Ok(load_table(connection, table, convert)?.into_iter().collect())
}

/// All rows of a table whose keys are ids, in their order, read here and decoded on other threads.
fn load_table<R: DeserializeOwned, T: Send>(
    connection: &Connection,
    table: &'static str,
    convert: impl Fn(R) -> T + Sync,
) -> Result<Vec<T>, StoreError> {
    let sql = format!("SELECT id, body, crc FROM {table} ORDER BY id");
    let none: [&(dyn tokio_postgres::types::ToSql + Sync); 0] = [];
    let rows = connection.wait(connection.client.query_raw(&sql, none))?;
    pin_mut!(rows);
    table_loader::load_table(table, convert, || {
        connection.wait(async {
            let mut slice = Slice::default();
            while !slice.is_full() {
                let Some(row) = rows.next().await.transpose()? else { return Ok((slice, false)) };
                slice.push(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            }
            Ok((slice, true))
        })
    })
}
