//! Inboxes: rows that may lag behind the notices.
//!
//! A message changes the inboxes of its sender and its receiver. Writing two rows in random places
//! for every appended one would cost more than the message itself, and their content follows from
//! the notices. So an inbox is written when an agent acknowledges something, when the lane is idle,
//! and otherwise with all others from time to time. Opening the store catches up from the later
//! notices.

use std::collections::BTreeMap;

use rialto_core::changes::Changes;
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::message::inbox::Inbox;
use rialto_core::notice::NoticeKind;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::row::{RowBuffer, read_row, sql_id};
use super::{notices, store_error};
use crate::store::StoreError;

/// Notices a start may have to catch up on: a few hundredths of a second.
const UNWRITTEN_NOTICES_MAX: usize = 16_384;
/// State row with the notice up to which the table is complete.
const WRITTEN_STATE: &str = "mailboxes_written";

/// Inboxes that are not written to the table yet.
#[derive(Default)]
pub struct UnwrittenInboxes {
    inboxes: BTreeMap<AgentId, Inbox>,
    notices: usize,
    newest: NoticeId,
}

impl UnwrittenInboxes {
    /// Whether the table should catch up with this batch.
    pub fn must_write_all(&self, batch: &Changes) -> bool {
        self.notices + batch.notices.len() >= UNWRITTEN_NOTICES_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.inboxes.is_empty()
    }

    /// Records a committed batch, of which either all inboxes are written or only those that must
    /// be.
    pub fn record_batch(&mut self, batch: &Changes, all: bool) {
        if all {
            *self = Self { newest: self.newest, ..Self::default() };
        } else {
            self.notices += batch.notices.len();
            self.inboxes.extend(batch.inboxes.iter().map(|(id, one)| (*id, *one)));
        }
        self.newest = batch.notices.last().map_or(self.newest, |notice| notice.id);
    }

    /// Records that the table is complete.
    pub fn clear(&mut self) {
        *self = Self { newest: self.newest, ..Self::default() };
    }
}

/// Writes the inboxes that cannot wait.
pub fn write_settled(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    put(db, batch.inboxes_to_persist.iter().filter_map(|id| batch.inboxes.get(id)))
}

/// Writes every inbox that is not written yet, including those of a new batch.
pub fn write_all(
    db: &Connection,
    behind: &UnwrittenInboxes,
    batch: &Changes,
) -> Result<(), StoreError> {
    let older = behind.inboxes.iter().filter(|(id, _)| !batch.inboxes.contains_key(id));
    put(db, older.map(|(_, one)| one))?;
    put(db, batch.inboxes.values())?;
    let newest = batch.notices.last().map_or(behind.newest, |notice| notice.id);
    let mut page = RowBuffer::default();
    let (body, crc) = page.encode(ValueRef::Text(WRITTEN_STATE.as_bytes()), &newest)?;
    let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(store_error)?;
    statement.execute(params![WRITTEN_STATE, body, crc]).map_err(store_error)?;
    Ok(())
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

/// Loads the inboxes as if the table did not lag, and those that are not written.
pub fn load_inboxes(
    db: &Connection,
    mut known: BTreeMap<AgentId, Inbox>,
) -> Result<(BTreeMap<AgentId, Inbox>, UnwrittenInboxes), StoreError> {
    let mut behind =
        UnwrittenInboxes { newest: last_written_notice(db)?, ..UnwrittenInboxes::default() };
    let mut statement = db.prepare(&notices::select_after(behind.newest)).map_err(store_error)?;
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
        behind.inboxes.extend(moved.into_iter().map(|id| (id, known[&id])));
        behind.notices += 1;
        behind.newest = notice.id;
    }
    Ok((known, behind))
}
