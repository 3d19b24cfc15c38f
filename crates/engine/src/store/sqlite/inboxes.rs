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
use rialto_core::message::inbox::Mailbox;
use rialto_core::notice::News;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::row::{Page, key, read as read_row};
use super::{notices, trouble};
use crate::store::StoreError;

/// Notices a start may have to catch up on: a few hundredths of a second.
const BEHIND_MAX: usize = 16_384;
/// State row with the notice up to which the table is complete.
const WRITTEN: &str = "mailboxes_written";

/// Inboxes that are not written to the table yet.
#[derive(Default)]
pub struct Behind {
    mailboxes: BTreeMap<AgentId, Mailbox>,
    notices: usize,
    newest: NoticeId,
}

impl Behind {
    /// Whether the table should catch up with this batch.
    pub fn is_far(&self, batch: &Changes) -> bool {
        self.notices + batch.notices.len() >= BEHIND_MAX
    }

    pub fn is_empty(&self) -> bool {
        self.mailboxes.is_empty()
    }

    /// Records a committed batch, of which either all inboxes are written or only those that must
    /// be.
    pub fn keep(&mut self, batch: &Changes, all: bool) {
        if all {
            *self = Self { newest: self.newest, ..Self::default() };
        } else {
            self.notices += batch.notices.len();
            self.mailboxes.extend(batch.mailboxes.iter().map(|(id, one)| (*id, *one)));
        }
        self.newest = batch.notices.last().map_or(self.newest, |notice| notice.id);
    }

    /// Records that the table is complete.
    pub fn clear(&mut self) {
        *self = Self { newest: self.newest, ..Self::default() };
    }
}

/// Writes the inboxes that cannot wait.
pub fn settle(db: &Connection, batch: &Changes) -> Result<(), StoreError> {
    put(db, batch.settled.iter().filter_map(|id| batch.mailboxes.get(id)))
}

/// Writes every inbox that is not written yet, including those of a new batch.
pub fn catch_up(db: &Connection, behind: &Behind, batch: &Changes) -> Result<(), StoreError> {
    let older = behind.mailboxes.iter().filter(|(id, _)| !batch.mailboxes.contains_key(id));
    put(db, older.map(|(_, one)| one))?;
    put(db, batch.mailboxes.values())?;
    let newest = batch.notices.last().map_or(behind.newest, |notice| notice.id);
    let mut page = Page::default();
    let (body, crc) = page.encode(ValueRef::Text(WRITTEN.as_bytes()), &newest)?;
    let sql = "INSERT OR REPLACE INTO state (name, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    statement.execute(params![WRITTEN, body, crc]).map_err(trouble)?;
    Ok(())
}

fn put<'m>(
    db: &Connection,
    mailboxes: impl Iterator<Item = &'m Mailbox>,
) -> Result<(), StoreError> {
    let mut mailboxes = mailboxes.peekable();
    if mailboxes.peek().is_none() {
        return Ok(());
    }
    let sql = "INSERT OR REPLACE INTO mailboxes (id, body, crc) VALUES (?1, ?2, ?3)";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut page = Page::default();
    for mailbox in mailboxes {
        let id = key(mailbox.agent.0);
        let (body, crc) = page.encode(ValueRef::Integer(id), mailbox)?;
        statement.execute(params![id, body, crc]).map_err(trouble)?;
    }
    Ok(())
}

/// The notice up to which the table is complete.
pub fn written_to(db: &Connection) -> Result<NoticeId, StoreError> {
    let sql = "SELECT name, body, crc FROM state WHERE name = ?1";
    let mut statement = db.prepare_cached(sql).map_err(trouble)?;
    let mut rows = statement.query([WRITTEN]).map_err(trouble)?;
    let found = rows.next().map_err(trouble)?;
    found.map_or(Ok(NoticeId(0)), |row| read_row("state", row))
}

/// Loads the inboxes as if the table did not lag, and those that are not written.
pub fn rebuild(
    db: &Connection,
    mut known: BTreeMap<AgentId, Mailbox>,
) -> Result<(BTreeMap<AgentId, Mailbox>, Behind), StoreError> {
    let mut behind = Behind { newest: written_to(db)?, ..Behind::default() };
    let mut statement = db.prepare(&notices::after(behind.newest)).map_err(trouble)?;
    let mut rows = statement.query([]).map_err(trouble)?;
    while let Some(row) = rows.next().map_err(trouble)? {
        let notice = notices::read(row)?;
        let mut moved = Vec::with_capacity(2);
        if let Some(to) = notice.to {
            known.entry(to).or_insert_with(|| Mailbox::new(to)).receive(&notice);
            moved.push(to);
        }
        if let News::Message { from: Some(from), .. } = notice.news {
            known.entry(from).or_insert_with(|| Mailbox::new(from)).wrote(notice.id);
            moved.push(from);
        }
        behind.mailboxes.extend(moved.into_iter().map(|id| (id, known[&id])));
        behind.notices += 1;
        behind.newest = notice.id;
    }
    Ok((known, behind))
}
