//! Rows as text: JSON with a checksum, written by serde and checked when read. They are the same in
//! every database, so they can be copied from one to another as they are.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreError;

/// The key of a row in its table.
#[derive(Clone, Copy, Debug)]
pub enum RowId<'a> {
    Number(i64),
    Text(&'a [u8]),
    /// Not a key: the row is damaged.
    Invalid,
}

impl std::fmt::Display for RowId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(id) => write!(f, "{id}"),
            Self::Text(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
            Self::Invalid => f.write_str("without a key"),
        }
    }
}

/// A reused buffer in which rows are encoded one after the other.
#[derive(Default)]
pub struct RowBuffer(Vec<u8>);

impl RowBuffer {
    /// Encodes a row and returns its text and checksum.
    pub fn encode<T: Serialize>(
        &mut self,
        key: RowId<'_>,
        row: &T,
    ) -> Result<(&[u8], u32), StoreError> {
        let body = self.encode_body(row)?;
        Ok((body, checksum(key, body)))
    }

    /// Encodes a row and returns its text.
    pub fn encode_body<T: Serialize>(&mut self, row: &T) -> Result<&[u8], StoreError> {
        self.0.clear();
        serde_json::to_writer(&mut self.0, row)
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(&self.0)
    }
}

/// Includes the key: a row in the wrong place is corrupt too.
pub fn checksum(key: RowId<'_>, body: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    match key {
        RowId::Number(id) => hash.update(&id.to_be_bytes()),
        RowId::Text(bytes) => hash.update(bytes),
        RowId::Invalid => {}
    }
    hash.update(body);
    hash.finalize()
}

/// Checks a row against its checksum.
pub fn check_row(
    table: &str,
    key: RowId<'_>,
    body: &str,
    crc: Option<i64>,
) -> Result<(), StoreError> {
    if crc != Some(i64::from(checksum(key, body.as_bytes()))) {
        return Err(corrupt(table, key, "fails its checksum"));
    }
    Ok(())
}

/// Checks a row against its checksum and decodes it.
pub fn decode_row<T: DeserializeOwned>(
    table: &str,
    key: RowId<'_>,
    body: &str,
    crc: Option<i64>,
) -> Result<T, StoreError> {
    check_row(table, key, body, crc)?;
    serde_json::from_str(body)
        .map_err(|error| corrupt(table, key, &format!("cannot be decoded: {error}")))
}

/// The error for a row that is not as it was written.
pub fn corrupt(table: &str, key: RowId<'_>, problem: &str) -> StoreError {
    StoreError::Corrupt(format!("row {key} of {table} {problem}"))
}

/// An id as databases store it; our ids never get near the maximum.
pub fn sql_id(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}
