//! Rows as text: JSON with a checksum, written by serde and checked when read.

use rusqlite::{CachedStatement, Connection};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::trouble;
use crate::store::StoreError;

/// A row's text and checksum.
pub fn encode<T: Serialize>(row: &T) -> Result<(String, u32), StoreError> {
    let body = serde_json::to_string(row).map_err(|error| StoreError::Broken(error.to_string()))?;
    let crc = crc32fast::hash(body.as_bytes());
    Ok((body, crc))
}

/// The row behind a text, if it is what was written.
pub fn decode<T: DeserializeOwned>(table: &str, body: &str, crc: u32) -> Result<T, StoreError> {
    if crc32fast::hash(body.as_bytes()) != crc {
        return Err(StoreError::Corrupt(format!("a row of {table} fails its checksum")));
    }
    let wrong = |error| StoreError::Corrupt(format!("a row of {table} makes no sense: {error}"));
    serde_json::from_str(body).map_err(wrong)
}

/// One row by its key.
pub fn get<T: DeserializeOwned>(
    db: &Connection,
    table: &'static str,
    id: u64,
) -> Result<Option<T>, StoreError> {
    let sql = format!("SELECT body, crc FROM {table} WHERE id = ?1");
    let mut statement = db.prepare_cached(&sql).map_err(trouble)?;
    let mut rows = statement.query([id as i64]).map_err(trouble)?;
    let Some(row) = rows.next().map_err(trouble)? else { return Ok(None) };
    let body = row.get_ref(0).map_err(trouble)?.as_str().map_err(odd)?;
    decode(table, body, row.get(1).map_err(trouble)?).map(Some)
}

/// All rows a statement gives, whose first two columns are body and checksum.
pub fn all<T: DeserializeOwned>(
    table: &'static str,
    mut statement: CachedStatement<'_>,
    arguments: impl rusqlite::Params,
) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    let mut rows = statement.query(arguments).map_err(trouble)?;
    while let Some(row) = rows.next().map_err(trouble)? {
        let body = row.get_ref(0).map_err(trouble)?.as_str().map_err(odd)?;
        found.push(decode(table, body, row.get(1).map_err(trouble)?)?);
    }
    Ok(found)
}

/// A column that is not the type it was written as.
pub fn odd(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
