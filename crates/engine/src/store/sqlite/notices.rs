//! Notices: the table that grows fastest. A message's text has its own column, unescaped, so that
//! neither writing nor reading it costs escaping; all other kinds are JSON.

use rialto_core::alias::Protocol;
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::time::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};
use std::sync::Arc;

use super::row::{column_error, sql_id};
use super::store_error;
use crate::store::StoreError;

const COLUMNS: &str = "id, inbox, position, before, at, sender, follows, words, body, crc";

/// Appends notices.
pub fn append_notices(db: &Connection, notices: &[Arc<Notice>]) -> Result<(), StoreError> {
    if notices.is_empty() {
        return Ok(());
    }
    let sql =
        format!("INSERT INTO notices ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    let mut statement = db.prepare_cached(&sql).map_err(store_error)?;
    for notice in notices {
        let written;
        let (sender, follows, words, body) = match &notice.news {
            NoticeKind::Message { from, protocol: words, body, previous: follows } => {
                let from = from.map_or(0, |from| sql_id(from.0));
                (from, id_or_zero(*follows), words.as_str(), body.as_str())
            }
            other => {
                written = serde_json::to_string(other).map_err(column_error)?;
                (0, 0, "", written.as_str())
            }
        };
        let (id, inbox) = (sql_id(notice.id.0), notice.to.map_or(0, |to| sql_id(to.0)));
        let (position, before) = (sql_id(notice.position), id_or_zero(notice.before));
        let numbers = [id, inbox, position, before, notice.at.0, sender, follows];
        let crc = checksum(numbers, words, body);
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
    let [id, inbox, position, before, at, sender, follows] = numbers;
    let wrong = |why: &str| StoreError::Corrupt(format!("row {id} of notices {why}"));
    let text = |at: usize| match row.get_ref(at).map_err(store_error)? {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_err(|_| wrong("is not text")),
        _ => Err(wrong("is not text")),
    };
    let (words, body) = (text(7)?, text(8)?);
    let crc = row.get_ref(9).map_err(store_error)?.as_i64();
    if crc.ok() != Some(i64::from(checksum(numbers, words, body))) {
        return Err(wrong("fails its checksum"));
    }
    let news = match words {
        "" => serde_json::from_str(body).map_err(|_| wrong("is not valid JSON of its type"))?,
        _ => NoticeKind::Message {
            from: (sender != 0).then_some(AgentId(sender.unsigned_abs())),
            protocol: Protocol::parse(words).ok_or_else(|| wrong("has an unknown protocol"))?,
            body: body.to_owned(),
            previous: id_if_set(follows),
        },
    };
    Ok(Notice {
        id: NoticeId(id.unsigned_abs()),
        to: (inbox != 0).then_some(AgentId(inbox.unsigned_abs())),
        position: position.unsigned_abs(),
        before: id_if_set(before),
        at: Timestamp(at),
        news,
    })
}

/// Ids start at 1, so 0 means none.
fn id_or_zero(id: Option<NoticeId>) -> i64 {
    id.map_or(0, |id| sql_id(id.0))
}

fn id_if_set(id: i64) -> Option<NoticeId> {
    (id != 0).then_some(NoticeId(id.unsigned_abs()))
}

pub(super) fn checksum(numbers: [i64; 7], words: &str, body: &str) -> u32 {
    let mut bytes = [0_u8; 56];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    let mut hash = crc32fast::Hasher::new();
    hash.update(&bytes);
    hash.update(words.as_bytes());
    hash.update(body.as_bytes());
    hash.finalize()
}
