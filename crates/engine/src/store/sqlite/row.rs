//! Rows in SQLite: how `store/row.rs` is bound to columns.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store_error;
use crate::store::StoreError;
pub use crate::store::row::sql_id;
use crate::store::row::{self, RowId, decode_row};

/// A reused buffer in which rows are encoded one after the other.
#[derive(Default)]
pub struct RowBuffer(row::RowBuffer);

impl RowBuffer {
    /// Encodes a row and returns its text and checksum.
    pub fn encode<T: Serialize>(
        &mut self,
        key: ValueRef<'_>,
        row: &T,
    ) -> Result<(ToSqlOutput<'_>, u32), StoreError> {
        let (body, crc) = self.0.encode(row_id(key), row)?;
        Ok((text(body), crc))
    }

    /// Encodes a row and returns its text.
    pub fn encode_body<T: Serialize>(&mut self, row: &T) -> Result<&[u8], StoreError> {
        self.0.encode_body(row)
    }
}

/// Passes serde's output to SQLite as text.
pub fn text(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(bytes))
}

/// The key of a row, from the value in its column.
pub fn row_id(key: ValueRef<'_>) -> RowId<'_> {
    match key {
        ValueRef::Integer(id) => RowId::Number(id),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => RowId::Text(bytes),
        ValueRef::Null | ValueRef::Real(_) => RowId::Invalid,
    }
}

/// The checksum of a row with this key.
#[cfg(any(test, feature = "testkit"))]
pub fn checksum(key: ValueRef<'_>, body: &[u8]) -> u32 {
    row::checksum(row_id(key), body)
}

/// Reads a row from the columns key, body and checksum, and checks the checksum.
pub fn read_row<T: DeserializeOwned>(
    table: &str,
    row: &rusqlite::Row<'_>,
) -> Result<T, StoreError> {
    let (key, body, crc) = row_parts(table, row)?;
    decode_row(table, key, body, crc)
}

/// Checks a row with the columns key, body and checksum.
pub fn check_row(table: &str, row: &rusqlite::Row<'_>) -> Result<(), StoreError> {
    let (key, body, crc) = row_parts(table, row)?;
    row::check_row(table, key, body, crc)
}

/// The key, body and checksum of a row.
pub fn row_parts<'r>(
    table: &str,
    row: &'r rusqlite::Row<'_>,
) -> Result<(RowId<'r>, &'r str, Option<i64>), StoreError> {
    let key = row_id(row.get_ref(0).map_err(store_error)?);
    let body = row.get_ref(1).map_err(store_error)?;
    let body = body
        .as_str()
        .map_err(|error| row::corrupt(table, key, &format!("is not text: {error}")))?;
    Ok((key, body, row.get_ref(2).map_err(store_error)?.as_i64().ok()))
}

/// One row by its key.
pub fn load_by_id<T: DeserializeOwned>(
    db: &Connection,
    table: &'static str,
    id: u64,
) -> Result<Option<T>, StoreError> {
    let sql = format!("SELECT id, body, crc FROM {table} WHERE id = ?1");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([sql_id(id)]).map_err(store_error)?;
    let found = rows.next().map_err(store_error)?;
    found.map(|row| read_row(table, row)).transpose()
}

/// All rows of a statement, whose columns are key, body and checksum.
pub fn read_rows<T: DeserializeOwned>(
    table: &'static str,
    mut statement: CachedStatement<'_>,
    arguments: impl rusqlite::Params,
) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    let mut rows = statement.query(arguments).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        found.push(read_row(table, row)?);
    }
    Ok(found)
}

/// The error for a column that does not have the type it was written as.
pub fn column_error(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
