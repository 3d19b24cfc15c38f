//! Notices in SQLite: how the columns of `store/notices.rs` are bound.

use std::sync::Arc;

use rialto_core::id::NoticeId;
use rialto_core::notice::Notice;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::row::{column_error, sql_id};
use super::store_error;
use crate::store::StoreError;
#[cfg(feature = "testkit")]
pub use crate::store::notices::checksum;
use crate::store::notices::{COLUMNS, NoticeColumns, decode_notice};

/// Appends notices.
pub fn append_notices(db: &Connection, notices: &[Arc<Notice>]) -> Result<(), StoreError> {
    if notices.is_empty() {
        return Ok(());
    }
    let sql =
        format!("INSERT INTO notices ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    for notice in notices {
        let NoticeColumns { numbers, words, body, crc } = NoticeColumns::of(notice)?;
        let [id, inbox, position, before, at, sender, follows] = numbers;
        statement
            .execute(params![id, inbox, position, before, at, sender, follows, words, body, crc])
            .map_err(store_error)?;
    }
    Ok(())
}

/// One notice.
pub fn load_notice(db: &Connection, id: NoticeId) -> Result<Option<Notice>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM notices WHERE id = ?1");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    let mut rows = statement.query([sql_id(id.0)]).map_err(store_error)?;
    rows.next().map_err(store_error)?.map(read_notice).transpose()
}

/// The query for all notices, also one whose id is damaged.
pub fn select_all() -> String {
    format!("SELECT {COLUMNS} FROM notices")
}

/// The query for all notices after one, in order.
pub fn select_after(id: NoticeId) -> String {
    format!("SELECT {COLUMNS} FROM notices WHERE id > {} ORDER BY id", id.0)
}

/// Reads a row of the table and checks its checksum.
pub fn read_notice(row: &Row<'_>) -> Result<Notice, StoreError> {
    let mut numbers = [0_i64; 7];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = row.get_ref(at).map_err(store_error)?.as_i64().map_err(column_error)?;
    }
    let wrong = |why: &str| StoreError::Corrupt(format!("row {} of notices {why}", numbers[0]));
    let text = |at: usize| match row.get_ref(at).map_err(store_error)? {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_err(|_| wrong("is not text")),
        _ => Err(wrong("is not text")),
    };
    let (words, body) = (text(7)?, text(8)?);
    let crc = row.get_ref(9).map_err(store_error)?.as_i64();
    decode_notice(numbers, words, body, crc.ok())
}
