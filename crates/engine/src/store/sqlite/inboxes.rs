//! Inboxes. Files of older versions have rows that lag behind the notices: opening such a store
//! catches up from the later notices.

use std::collections::BTreeMap;

use rialto_core::changes::Changes;
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::message::inbox::Inbox;
use rialto_core::notice::NoticeKind;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::row::{RowBuffer, read_row, read_rows, sql_id};
use super::{notices, store_error};
use crate::store::StoreError;

/// State row with the notice up to which the table is complete.
const WRITTEN_STATE: &str = "mailboxes_written";

/// Writes the inboxes of a batch, so that the table is complete up to its last notice.
pub fn write_inboxes(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    put(db, batch.inboxes.values())?;
    let Some(newest) = batch.notices.last().map(|notice| notice.id) else { return Ok(()) };
    write_last_notice(db, newest)
}

/// Writes up to which notice the table is complete.
pub fn write_last_notice(db: &Connection, newest: NoticeId) -> Result<(), StoreError> {
    let mut page = RowBuffer::default();
    let (body, crc) = page.encode(ValueRef::Text(WRITTEN_STATE.as_bytes()), &newest)?;
    let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    statement.execute(params![WRITTEN_STATE, body, crc]).map_err(store_error)?;
    Ok(())
}

/// Writes the inboxes that lag behind the notices in a file of an older version.
pub fn complete_table(db: &Connection) -> Result<(), StoreError> {
    let statement =
        db.prepare_cached("SELECT id, body, crc FROM mailboxes").map_err(store_error)?;
    let known: Vec<Inbox> = read_rows("mailboxes", statement, [])?;
    let known = known.into_iter().map(|inbox| (inbox.agent, inbox)).collect();
    let (_, behind) = load_inboxes(db, known)?;
    put(db, behind.values())?;
    let sql = "SELECT ifnull(max(id), 0) FROM notices";
    let newest: i64 = db.query_row(sql, [], |row| row.get(0)).map_err(store_error)?;
    write_last_notice(db, NoticeId(newest.unsigned_abs()))
}

fn put<'m>(db: &Connection, mailboxes: impl Iterator<Item = &'m Inbox>) -> Result<(), StoreError> {
    let mut mailboxes = mailboxes.peekable();
    if mailboxes.peek().is_none() {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO mailboxes (id, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut page = RowBuffer::default();
    for mailbox in mailboxes {
        let id = sql_id(mailbox.agent.0);
        let (body, crc) = page.encode(ValueRef::Integer(id), mailbox)?;
        statement.execute(params![id, body, crc]).map_err(store_error)?;
    }
    Ok(())
}

/// The notice up to which the table is complete.
pub fn last_written_notice(db: &Connection) -> Result<NoticeId, StoreError> {
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    let mut rows = statement.query([WRITTEN_STATE]).map_err(store_error)?;
    let found = rows.next().map_err(store_error)?;
    found.map_or(Ok(NoticeId(0)), |row| read_row("state", row))
}

/// All inboxes, and those whose rows lag behind the notices.
pub type CaughtUp = (BTreeMap<AgentId, Inbox>, BTreeMap<AgentId, Inbox>);

/// Loads the inboxes as if the table did not lag.
pub fn load_inboxes(
    db: &Connection,
    mut known: BTreeMap<AgentId, Inbox>,
) -> Result<CaughtUp, StoreError> {
    let mut behind = BTreeMap::new();
    let written = last_written_notice(db)?;
    let mut statement = db.prepare(&notices::select_after(written)).map_err(store_error)?;
    let mut rows = statement.query([]).map_err(store_error)?;
    while let Some(row) = rows.next().map_err(store_error)? {
        let notice = notices::read_notice(row)?;
        let mut moved = Vec::with_capacity(2);
        if let Some(to) = notice.to {
            known.entry(to).or_insert_with(|| Inbox::new(to)).receive(&notice);
            moved.push(to);
        }
        if let NoticeKind::Message { from: Some(from), .. } = notice.news {
            known.entry(from).or_insert_with(|| Inbox::new(from)).record_sent(notice.id);
            moved.push(from);
        }
        behind.extend(moved.into_iter().map(|id| (id, known[&id])));
    }
    Ok((known, behind))
}
