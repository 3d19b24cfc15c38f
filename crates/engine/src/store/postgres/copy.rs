//! Copies a hub between PostgreSQL and a SQLite file: every row as it is, with its checksum.
//!
//! Reading takes one snapshot: the tables, and the batches of the log that they lack. Writing
//! happens in one transaction, into a schema that has no hub yet.

use futures_util::{StreamExt, pin_mut};
use rialto_core::encoding::BATCH_VERSION;
use rialto_core::id::{ClaimId, NoticeId};
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::Row;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::log_check::{LogCheck, check_log};
use super::session::{Connection, store_error};
use super::write::COUNTERS_STATE;
use super::{schema, snapshot};
use crate::store::StoreError;
use crate::store::log::{LoggedBatch, Place};
use crate::store::row::sql_id;
use crate::store::sqlite::{self, checkpoint};
use crate::store::unwritten::Generation;

/// Rows that are in memory at once.
const SLICE_ROWS: usize = 1_000;

/// How a column is stored on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    /// Text in SQLite and bytes in PostgreSQL, whose text has no NUL character.
    TextAsBytes,
    Bytes,
}

use Kind::{Bytes, Number, Text, TextAsBytes};

type Columns = &'static [(&'static str, Kind)];

const PLAIN: Columns = &[("id", Number), ("body", Text), ("crc", Number)];
const OWNERS: Columns =
    &[("id", Number), ("body", Text), ("crc", Number), ("available", Number), ("held", Number)];
const ENTRIES: Columns = &[
    ("id", Number),
    ("body", Text),
    ("crc", Number),
    ("kind", Text),
    ("payer", Number),
    ("payee", Number),
    ("amount", Number),
];
const NOTICES: Columns = &[
    ("id", Number),
    ("inbox", Number),
    ("position", Number),
    ("before", Number),
    ("at", Number),
    ("sender", Number),
    ("follows", Number),
    ("words", Text),
    ("body", TextAsBytes),
    ("crc", Number),
];
const CLAIMS: Columns = &[("id", Number), ("digest", Bytes), ("target", Text), ("crc", Number)];
const TURNS: Columns = &[("skill", TextAsBytes), ("body", Text), ("crc", Number)];

const STATE: Columns = &[("name", Text), ("body", Text), ("crc", Number)];

/// Every table that both databases have. Of `state` only the counters are common.
const TABLES: [(&str, Columns); 19] = [
    ("agents", PLAIN),
    ("desks", PLAIN),
    ("owners", OWNERS),
    ("keys", PLAIN),
    ("aliases", PLAIN),
    ("turns", TURNS),
    ("jobs", PLAIN),
    ("archive", PLAIN),
    ("pushes", PLAIN),
    ("memories", PLAIN),
    ("entries", ENTRIES),
    ("transfers", PLAIN),
    ("notices", NOTICES),
    ("arrivals", PLAIN),
    ("mailboxes", PLAIN),
    ("outcomes", PLAIN),
    ("lines", PLAIN),
    ("postings", PLAIN),
    ("claims", CLAIMS),
];

fn names(columns: Columns) -> String {
    columns.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Copies the hub into an empty SQLite database, as of one moment. If the log has breaches, what it
/// has after the tables is left out, and the tables are as they were at their checkpoint.
pub fn read_into(
    connection: &mut Connection,
    db: &rusqlite::Connection,
) -> Result<LogCheck, StoreError> {
    snapshot::in_snapshot(connection, |connection| read_in_transaction(connection, db))
}

/// The same, within a transaction of the caller.
pub fn read_in_transaction(
    connection: &mut Connection,
    db: &rusqlite::Connection,
) -> Result<LogCheck, StoreError> {
    schema::read_meta(connection)?;
    let log = check_log(connection)?;
    sqlite::schema::migrate(db)?;
    checkpoint::in_transaction(db, || {
        for (table, columns) in TABLES {
            read_table(connection, db, table, columns)?;
        }
        read_counters(connection, db)?;
        complete_sqlite(db, log.checkpoint)
    })?;
    if log.problems.is_empty() {
        let tail = snapshot::read_tail(connection)?;
        apply(db, &tail.batches)?;
    }
    Ok(log)
}

/// Adds batches to the tables.
fn apply(db: &rusqlite::Connection, batches: &[LoggedBatch]) -> Result<(), StoreError> {
    if batches.is_empty() {
        return Ok(());
    }
    let mut generation = Generation::default();
    for LoggedBatch { place, batch, .. } in batches {
        generation.add(Some(*place), &batch.changes, &batch.expired);
    }
    checkpoint::in_transaction(db, || checkpoint::write_generation(db, &generation))
}

fn read_table(
    connection: &Connection,
    db: &rusqlite::Connection,
    table: &str,
    columns: Columns,
) -> Result<(), StoreError> {
    let names = names(columns);
    let places: Vec<_> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    let sql = format!("INSERT INTO {table} ({names}) VALUES ({})", places.join(", "));
    let mut insert = db.prepare(&sql).map_err(sqlite::store_error)?;
    let sql = format!("SELECT {names} FROM {table} ORDER BY 1");
    let none: [&(dyn ToSql + Sync); 0] = [];
    let rows = connection.wait(connection.client.query_raw(&sql, none))?;
    pin_mut!(rows);
    loop {
        let slice = connection.wait(async {
            let mut slice = Vec::new();
            while slice.len() < SLICE_ROWS
                && let Some(row) = rows.next().await.transpose()?
            {
                slice.push(row);
            }
            Ok(slice)
        })?;
        for row in &slice {
            let values = read_values(row, columns)?;
            let values = rusqlite::params_from_iter(values.iter());
            insert.execute(values).map_err(sqlite::store_error)?;
        }
        if slice.len() < SLICE_ROWS {
            return Ok(());
        }
    }
}

fn read_values<'r>(row: &'r Row, columns: Columns) -> Result<Vec<ToSqlOutput<'r>>, StoreError> {
    let value = |(at, (_, kind)): (usize, &(&str, Kind))| {
        Ok(ToSqlOutput::Borrowed(match kind {
            Number => ValueRef::Integer(row.try_get(at).map_err(store_error)?),
            Text => {
                let text: &str = row.try_get(at).map_err(store_error)?;
                ValueRef::Text(text.as_bytes())
            }
            TextAsBytes => ValueRef::Text(row.try_get(at).map_err(store_error)?),
            Bytes => ValueRef::Blob(row.try_get(at).map_err(store_error)?),
        }))
    };
    columns.iter().enumerate().map(value).collect()
}

fn read_counters(connection: &mut Connection, db: &rusqlite::Connection) -> Result<(), StoreError> {
    let rows = connection
        .query("SELECT name, body, crc FROM state WHERE name = $1", &[&COUNTERS_STATE])?;
    for row in &rows {
        let values = read_values(row, STATE)?;
        let values = rusqlite::params_from_iter(values.iter());
        let sql = "INSERT INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
        db.execute(sql, values).map_err(sqlite::store_error)?;
    }
    Ok(())
}

/// Adds what only SQLite has: the index of claims, up to where the inboxes are complete, and the
/// place in the log.
fn complete_sqlite(db: &rusqlite::Connection, place: Place) -> Result<(), StoreError> {
    let newest = |table: &str| {
        let sql = format!("SELECT ifnull(max(id), 0) FROM {table}");
        let newest: i64 = db.query_row(&sql, [], |row| row.get(0)).map_err(sqlite::store_error)?;
        Ok::<_, StoreError>(newest.unsigned_abs())
    };
    sqlite::claims::index_all(db, ClaimId(newest("claims")?))?;
    sqlite::inboxes::write_last_notice(db, NoticeId(newest("notices")?))?;
    checkpoint::write_place(db, place)
}

/// Copies a SQLite database that is complete by itself into the schema of a connection, within a
/// transaction of the caller. The log begins with the place of the tables, so that the next batch
/// continues it.
pub fn write_from(
    connection: &mut Connection,
    db: &rusqlite::Connection,
    schema_name: &str,
) -> Result<(), StoreError> {
    schema::create_in_transaction(connection, schema_name)?;
    for (table, columns) in TABLES {
        write_rows(connection, db, table, columns, "ORDER BY 1")?;
    }
    write_rows(connection, db, "state", STATE, &format!("WHERE name = '{COUNTERS_STATE}'"))?;
    let place = checkpoint::read_place(db)?;
    if place.number == 0 {
        return Ok(());
    }
    let (seq, hash, format) = (sql_id(place.number), &place.hash.0[..], i32::from(BATCH_VERSION));
    connection.execute("UPDATE checkpoint SET seq = $1, hash = $2", &[&seq, &hash])?;
    // What the batch contained is in the tables. The chain needs its hash only.
    let sql = "INSERT INTO log (seq, epoch, format, body, hash) VALUES ($1, 0, $2, '', $3)";
    connection.execute(sql, &[&seq, &format, &hash])?;
    Ok(())
}

fn write_rows(
    connection: &Connection,
    db: &rusqlite::Connection,
    table: &str,
    columns: Columns,
    condition: &str,
) -> Result<(), StoreError> {
    let names = names(columns);
    let sql = format!("SELECT {names} FROM {table} {condition}");
    let mut select = db.prepare(&sql).map_err(sqlite::store_error)?;
    let mut rows = select.query([]).map_err(sqlite::store_error)?;
    let types: Vec<Type> = columns.iter().map(|(_, kind)| kind.sql_type()).collect();
    let sql = format!("COPY {table} ({names}) FROM STDIN BINARY");
    let sink = connection.wait(connection.client.copy_in(&sql))?;
    let writer = BinaryCopyInWriter::new(sink, &types);
    pin_mut!(writer);
    // An error of SQLite ends the copy, and is returned instead of that of the database.
    let mut failed = None;
    let copied = connection.wait(async {
        loop {
            let values = match rows.next().map_err(sqlite::store_error) {
                Ok(None) => break,
                Ok(Some(row)) => write_values(row, table, columns),
                Err(error) => Err(error),
            };
            match values {
                Ok(values) => {
                    let values: Vec<_> = values.iter().map(|value| &**value).collect();
                    writer.as_mut().write(&values).await?;
                }
                Err(error) => {
                    failed = Some(error);
                    return Ok(0);
                }
            }
        }
        writer.as_mut().finish().await
    });
    match failed {
        Some(error) => Err(error),
        None => copied.map(drop),
    }
}

impl Kind {
    fn sql_type(self) -> Type {
        match self {
            Number => Type::INT8,
            Text => Type::TEXT,
            TextAsBytes | Bytes => Type::BYTEA,
        }
    }
}

type Values<'r> = Vec<Box<dyn ToSql + Sync + 'r>>;

fn write_values<'r>(
    row: &'r rusqlite::Row<'_>,
    table: &str,
    columns: Columns,
) -> Result<Values<'r>, StoreError> {
    let wrong = |name: &str| {
        StoreError::Corrupt(format!("a row of {table} has another type in the column {name}"))
    };
    let value = |(at, (name, kind)): (usize, &(&str, Kind))| {
        let value = row.get_ref(at).map_err(sqlite::store_error)?;
        Ok(match (kind, value) {
            (Number, ValueRef::Integer(number)) => Box::new(number) as Box<dyn ToSql + Sync>,
            (Text, ValueRef::Text(bytes)) => {
                Box::new(std::str::from_utf8(bytes).map_err(|_| wrong(name))?)
            }
            (TextAsBytes, ValueRef::Text(bytes)) | (Bytes, ValueRef::Blob(bytes)) => {
                Box::new(bytes)
            }
            _ => return Err(wrong(name)),
        })
    };
    columns.iter().enumerate().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table that is missing here would be missing in every copy.
    #[test]
    fn every_table_of_sqlite_is_copied_with_all_its_columns() {
        let db = sqlite::schema::open_empty_in_memory().unwrap();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
        let mut statement = db.prepare(sql).unwrap();
        let tables = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        let tables: Vec<String> = tables.map(Result::unwrap).collect();
        let mut copied: Vec<&str> = TABLES.iter().map(|(table, _)| *table).collect();
        copied.extend(["claim_index", "state"]);
        copied.sort_unstable();
        assert_eq!(tables, copied);
        for (table, columns) in TABLES {
            let sql = format!("SELECT name FROM pragma_table_info('{table}')");
            let mut statement = db.prepare(&sql).unwrap();
            let found = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
            let found: Vec<String> = found.map(Result::unwrap).collect();
            let copied: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            assert_eq!(found, copied, "{table}");
        }
    }
}
