//! Writing a generation to the tables: one transaction, one statement per table.
//!
//! Every node has the same batches, so any node may write them, and two may even do so at the same
//! time. Why the tables are right whichever node writes: say they are complete up to batch c, and a
//! generation has, of every row that the batches first…last changed, the version after batch last.
//! It is written only if first - 1 ≤ c < last. Rows that none of its batches changed are as they
//! were after batch c, and so after batch last. All others get their version after batch last,
//! also those that another node has written up to batch c: history never changes, and other rows
//! are replaced. What was removed is removed again. So the tables are complete up to batch last,
//! which the same transaction says. The row of the checkpoint is changed first, so of two nodes one
//! waits until the other has committed, and then finds c as it is by then.

use std::sync::Arc;

use futures_util::future::try_join_all;
use rialto_core::alias::Claim;
use rialto_core::changes::{Changes, ExpiredRows};
use rialto_core::notice::Notice;
use serde::Serialize;
use tokio_postgres::types::ToSql;

use super::session::{Connection, store_error};
use crate::store::StoreError;
use crate::store::claims;
use crate::store::log::Place;
use crate::store::notices::NoticeColumns;
use crate::store::row::{RowId, checksum, sql_id};
use crate::store::unwritten::Generation;

/// State row with the counters.
pub const COUNTERS_STATE: &str = "counters";

const MOVE_CHECKPOINT: &str =
    "UPDATE checkpoint SET seq = $3, hash = $4 WHERE seq >= $1 AND seq <= $2";
const CHECKPOINT: &str = "SELECT seq FROM checkpoint";

/// A statement with its arguments.
type Write = (&'static str, Vec<Box<dyn ToSql + Sync>>);

/// Writes a generation, unless the tables have it already, and returns the number of the batch up to
/// which they are complete.
pub fn write_generation(
    connection: &mut Connection,
    generation: &Generation,
) -> Result<u64, StoreError> {
    let writes = writes_of(generation)?;
    connection.run_script("BEGIN")?;
    let written = write_in_transaction(connection, generation, &writes);
    if written.is_err() && !connection.client.is_closed() {
        connection.run_script("ROLLBACK")?;
    }
    written
}

fn write_in_transaction(
    connection: &mut Connection,
    generation: &Generation,
    writes: &[Write],
) -> Result<u64, StoreError> {
    let Place { number: last, hash } = generation.place;
    // One without records changes only what may be lost, and only if nothing newer is there.
    let (from, to) = match generation.first {
        Some(first) => (first - 1, last - 1),
        None => (last, last),
    };
    let (from, to, seq) = (sql_id(from), sql_id(to), sql_id(last));
    if connection.execute(MOVE_CHECKPOINT, &[&from, &to, &seq, &&hash.0[..]])? == 0 {
        let row = connection.query_one(CHECKPOINT, &[])?;
        let found: i64 = row.try_get(0).map_err(store_error)?;
        connection.run_script("ROLLBACK")?;
        return match found < from {
            false => Ok(found.unsigned_abs()),
            true => Err(StoreError::LostPlace(format!(
                "the tables were complete up to batch {from}, and are now up to batch {found}: the \
                 database was restored from a backup; restart the node"
            ))),
        };
    }
    let sql: Vec<_> = writes.iter().map(|(sql, _)| *sql).collect();
    connection.prepare_all(&sql)?;
    let (client, ready) = (&connection.client, &*connection);
    let statements = writes.iter().map(|(sql, arguments)| {
        let arguments: Vec<_> = arguments.iter().map(|one| &**one).collect();
        async move { client.execute(ready.prepared(sql), &arguments).await }
    });
    // All in one flight. The commit follows separately: a statement that could not even be sent
    // must not be missing from a transaction that commits.
    connection.wait(try_join_all(statements))?;
    connection.run_script("COMMIT")?;
    Ok(last)
}

fn writes_of(generation: &Generation) -> Result<Vec<Write>, StoreError> {
    let Generation { changes, expired, .. } = generation;
    let mut writes = Vec::new();
    macro_rules! replace {
        ($table:literal, $rows:expr) => {
            write_rows(
                &mut writes,
                concat!(
                    "INSERT INTO ", $table, " (id, body, crc)
                     SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])
                     ON CONFLICT (id) DO UPDATE SET body = excluded.body, crc = excluded.crc"
                ),
                $rows,
            )?
        };
    }
    macro_rules! append {
        ($table:literal, $rows:expr) => {
            write_rows(
                &mut writes,
                concat!(
                    "INSERT INTO ",
                    $table,
                    " (id, body, crc)
                     SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])
                     ON CONFLICT (id) DO NOTHING"
                ),
                $rows,
            )?
        };
    }
    replace!("agents", changes.agents.values().map(|row| (row.id.0, row)));
    replace!("desks", changes.agent_states.values().map(|row| (row.agent.0, row)));
    replace!("keys", changes.keys.values().map(|row| (row.id.0, row)));
    append!("aliases", changes.aliases.iter().map(|row| (row.id.0, row)));
    replace!("memories", changes.idempotency_records.values().map(|row| (row.id.0, row)));
    append!("transfers", changes.transfers.iter().map(|row| (row.id.0, row)));
    replace!("arrivals", changes.completed_deliveries.values().map(|row| (row.notice.0, row)));
    append!("outcomes", changes.outcomes.iter().map(|row| (row.id.0, row)));
    append!("lines", changes.history_lines.iter().map(|row| (row.id.0, row)));
    append!("postings", changes.market_records.iter().map(|row| (row.id.0, row)));
    replace!("mailboxes", changes.inboxes.values().map(|row| (row.agent.0, row)));
    // A finished job is history. Only its webhooks may still change.
    let is_live = |job: &&Arc<_>| {
        let job: &rialto_core::job::Job = job;
        !job.state.is_final()
    };
    let done = || changes.jobs.values().filter(|job| !is_live(job));
    replace!("jobs", changes.jobs.values().filter(is_live).map(|row| (row.id.0, row)));
    replace!("archive", done().map(|row| (row.id.0, row)));
    replace!("pushes", changes.deliveries.values().flatten().map(|row| (row.notice.0, row)));
    let ended = changes.deliveries.iter().filter(|(_, delivery)| delivery.is_none());
    delete(&mut writes, "DELETE FROM jobs WHERE id = ANY($1)", done().map(|job| job.id.0));
    delete(&mut writes, "DELETE FROM pushes WHERE id = ANY($1)", ended.map(|(id, _)| id.0));
    delete_expired(&mut writes, expired);
    write_owners(&mut writes, changes)?;
    write_entries(&mut writes, changes)?;
    write_rotations(&mut writes, changes)?;
    write_notices(&mut writes, &changes.notices)?;
    write_claims(&mut writes, &changes.claims)?;
    if let Some(next) = &changes.next {
        let (body, crc) = encode(RowId::Text(COUNTERS_STATE.as_bytes()), next)?;
        writes.push((
            "INSERT INTO state (name, body, crc) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET body = excluded.body, crc = excluded.crc",
            vec![Box::new(COUNTERS_STATE), Box::new(body), Box::new(crc)],
        ));
    }
    Ok(writes)
}

fn encode<T: Serialize>(key: RowId<'_>, row: &T) -> Result<(String, i64), StoreError> {
    let body = to_json(row)?;
    let crc = checksum(key, body.as_bytes());
    Ok((body, i64::from(crc)))
}

fn to_json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed(error.to_string()))
}

/// Columns of rows that are written together.
#[derive(Default)]
struct Columns {
    ids: Vec<i64>,
    bodies: Vec<String>,
    crcs: Vec<i64>,
}

impl Columns {
    fn of<T: Serialize>(rows: impl Iterator<Item = (u64, T)>) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        for (id, row) in rows {
            let id = sql_id(id);
            let (body, crc) = encode(RowId::Number(id), &row)?;
            columns.ids.push(id);
            columns.bodies.push(body);
            columns.crcs.push(crc);
        }
        Ok(columns)
    }

    fn arguments(self) -> Vec<Box<dyn ToSql + Sync>> {
        vec![Box::new(self.ids), Box::new(self.bodies), Box::new(self.crcs)]
    }
}

fn write_rows<T: Serialize>(
    writes: &mut Vec<Write>,
    sql: &'static str,
    rows: impl Iterator<Item = (u64, T)>,
) -> Result<(), StoreError> {
    let columns = Columns::of(rows)?;
    if !columns.ids.is_empty() {
        writes.push((sql, columns.arguments()));
    }
    Ok(())
}

fn delete(writes: &mut Vec<Write>, sql: &'static str, ids: impl Iterator<Item = u64>) {
    let ids: Vec<i64> = ids.map(sql_id).collect();
    if !ids.is_empty() {
        writes.push((sql, vec![Box::new(ids)]));
    }
}

fn delete_expired(writes: &mut Vec<Write>, expired: &ExpiredRows) {
    let keys = expired.keys.iter().map(|(_, id)| id.0);
    delete(writes, "DELETE FROM keys WHERE id = ANY($1)", keys);
    let answers = expired.answers.iter().map(|id| id.0);
    delete(writes, "DELETE FROM memories WHERE id = ANY($1)", answers);
}

/// Balances have their own columns, where the database checks them again.
fn write_owners(writes: &mut Vec<Write>, changes: &Changes) -> Result<(), StoreError> {
    if changes.owners.is_empty() {
        return Ok(());
    }
    let owners = || changes.owners.values();
    let mut arguments = Columns::of(owners().map(|row| (row.id.0, row)))?.arguments();
    let available: Vec<i64> = owners().map(|owner| owner.available.micros()).collect();
    let held: Vec<i64> = owners().map(|owner| owner.held.micros()).collect();
    arguments.extend([Box::new(available) as Box<dyn ToSql + Sync>, Box::new(held)]);
    let sql = "INSERT INTO owners (id, body, crc, available, held)
        SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
        ON CONFLICT (id) DO UPDATE SET body = excluded.body, crc = excluded.crc,
        available = excluded.available, held = excluded.held";
    writes.push((sql, arguments));
    Ok(())
}

/// What moved has its own columns, for operators who inspect the database.
fn write_entries(writes: &mut Vec<Write>, changes: &Changes) -> Result<(), StoreError> {
    let entries = &changes.entries;
    if entries.is_empty() {
        return Ok(());
    }
    let mut arguments = Columns::of(entries.iter().map(|row| (row.id.0, row)))?.arguments();
    let kinds: Vec<&'static str> = entries.iter().map(|entry| entry.kind.as_str()).collect();
    let payers: Vec<i64> = entries.iter().map(|entry| sql_id(entry.from.owner.0)).collect();
    let payees: Vec<i64> = entries.iter().map(|entry| sql_id(entry.to.owner.0)).collect();
    let amounts: Vec<i64> = entries.iter().map(|entry| entry.amount.micros()).collect();
    arguments.push(Box::new(kinds));
    arguments.extend([payers, payees, amounts].map(|one| Box::new(one) as Box<dyn ToSql + Sync>));
    let sql = "INSERT INTO entries (id, body, crc, kind, payer, payee, amount)
        SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[],
                             $6::bigint[], $7::bigint[])
        ON CONFLICT (id) DO NOTHING";
    writes.push((sql, arguments));
    Ok(())
}

fn write_rotations(writes: &mut Vec<Write>, changes: &Changes) -> Result<(), StoreError> {
    if changes.rotations.is_empty() {
        return Ok(());
    }
    let (mut skills, mut bodies, mut crcs) = (Vec::new(), Vec::new(), Vec::new());
    for rotation in changes.rotations.values() {
        let (body, crc) = encode(RowId::Text(rotation.skill.as_bytes()), rotation)?;
        skills.push(rotation.skill.clone().into_bytes());
        bodies.push(body);
        crcs.push(crc);
    }
    let sql = "INSERT INTO turns (skill, body, crc)
        SELECT * FROM unnest($1::bytea[], $2::text[], $3::bigint[])
        ON CONFLICT (sha256(skill)) DO UPDATE SET body = excluded.body, crc = excluded.crc";
    writes.push((sql, vec![Box::new(skills), Box::new(bodies), Box::new(crcs)]));
    Ok(())
}

fn write_notices(writes: &mut Vec<Write>, notices: &[Arc<Notice>]) -> Result<(), StoreError> {
    if notices.is_empty() {
        return Ok(());
    }
    let mut numbers: [Vec<i64>; 7] = Default::default();
    let (mut words, mut bodies, mut crcs) = (Vec::new(), Vec::new(), Vec::new());
    for notice in notices {
        let columns = NoticeColumns::of(notice)?;
        for (column, number) in numbers.iter_mut().zip(columns.numbers) {
            column.push(number);
        }
        words.push(columns.words.to_owned());
        bodies.push(columns.body.into_owned().into_bytes());
        crcs.push(i64::from(columns.crc));
    }
    let numbers = numbers.into_iter().map(|column| Box::new(column) as Box<dyn ToSql + Sync>);
    let mut arguments: Vec<_> = numbers.collect();
    arguments.extend([Box::new(words) as Box<dyn ToSql + Sync>, Box::new(bodies), Box::new(crcs)]);
    let sql = "INSERT INTO notices
               (id, inbox, position, before, at, sender, follows, words, body, crc)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[],
                             $6::bigint[], $7::bigint[], $8::text[], $9::bytea[], $10::bigint[])
        ON CONFLICT (id) DO NOTHING";
    writes.push((sql, arguments));
    Ok(())
}

fn write_claims(writes: &mut Vec<Write>, all: &[Claim]) -> Result<(), StoreError> {
    if all.is_empty() {
        return Ok(());
    }
    let (mut ids, mut digests) = (Vec::new(), Vec::new());
    let (mut targets, mut crcs) = (Vec::new(), Vec::new());
    for claim in all {
        let target = to_json(&claim.target)?;
        crcs.push(i64::from(claims::checksum(claim.id, claim.digest, target.as_bytes())));
        targets.push(target);
        ids.push(sql_id(claim.id.0));
        digests.push(claim.digest.0.to_vec());
    }
    let sql = "INSERT INTO claims (id, digest, target, crc)
        SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::bigint[])
        ON CONFLICT (id) DO NOTHING";
    let arguments: Vec<Box<dyn ToSql + Sync>> =
        vec![Box::new(ids), Box::new(digests), Box::new(targets), Box::new(crcs)];
    writes.push((sql, arguments));
    Ok(())
}
