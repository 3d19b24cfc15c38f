//! Rows as text: JSON with a checksum, written by serde and checked when read.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store_error;
use crate::store::StoreError;

/// A reused buffer in which rows are encoded one after the other.
#[derive(Default)]
pub struct RowBuffer(Vec<u8>);

impl RowBuffer {
    /// Encodes a row and returns its text and checksum.
    pub fn encode<T: Serialize>(
        &mut self,
        key: ValueRef<'_>,
        row: &T,
    ) -> Result<(ToSqlOutput<'_>, u32), StoreError> {
        let body = self.encode_body(row)?;
        let crc = checksum(key, body);
        Ok((text(body), crc))
    }

    /// Encodes a row and returns its text.
    pub fn encode_body<T: Serialize>(&mut self, row: &T) -> Result<&[u8], StoreError> {
        self.0.clear();
        serde_json::to_writer(&mut self.0, row)
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(&self.0)
    }
}

/// Passes serde's output to SQLite as text.
pub fn text(bytes: &[u8]) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(bytes))
}

/// Includes the key: a row in the wrong place is corrupt too.
pub fn checksum(key: ValueRef<'_>, body: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    match key {
        ValueRef::Integer(id) => hash.update(&id.to_be_bytes()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => hash.update(bytes),
        ValueRef::Null | ValueRef::Real(_) => {}
    }
    hash.update(body);
    hash.finalize()
}

/// Reads a row from the columns key, body and checksum, and checks the checksum.
pub fn read_row<T: DeserializeOwned>(
    table: &str,
    row: &rusqlite::Row<'_>,
) -> Result<T, StoreError> {
    let (key, body, crc) = row_parts(table, row)?;
    decode_row(table, key, body, crc)
}

/// The key, body and checksum of a row.
pub fn row_parts<'r>(
    table: &str,
    row: &'r rusqlite::Row<'_>,
) -> Result<(ValueRef<'r>, &'r str, Option<i64>), StoreError> {
    let key = row.get_ref(0).map_err(store_error)?;
    let body = row.get_ref(1).map_err(store_error)?;
    let body =
        body.as_str().map_err(|error| corrupt(table, key, format!("is not text: {error}")))?;
    Ok((key, body, row.get_ref(2).map_err(store_error)?.as_i64().ok()))
}

/// Checks a row against its checksum and decodes it.
pub fn decode_row<T: DeserializeOwned>(
    table: &str,
    key: ValueRef<'_>,
    body: &str,
    crc: Option<i64>,
) -> Result<T, StoreError> {
    if crc != Some(i64::from(checksum(key, body.as_bytes()))) {
        return Err(corrupt(table, key, "fails its checksum".to_owned()));
    }
    serde_json::from_str(body)
        .map_err(|error| corrupt(table, key, format!("cannot be decoded: {error}")))
}

fn corrupt(table: &str, key: ValueRef<'_>, problem: String) -> StoreError {
    StoreError::Corrupt(format!("row {} of {table} {problem}", display_key(key)))
}

fn display_key(key: ValueRef<'_>) -> String {
    match key {
        ValueRef::Integer(id) => id.to_string(),
        ValueRef::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
        other => format!("of type {}", other.data_type()),
    }
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

/// An id as SQLite stores it; our ids never get near the maximum.
pub fn sql_id(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

/// The error for a column that does not have the type it was written as.
pub fn column_error(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
