//! Notices as columns. The table grows fastest, so a message's text has its own column, unescaped:
//! neither writing nor reading it costs escaping. All other kinds are JSON.

use std::borrow::Cow;

use rialto_core::alias::Protocol;
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::time::Timestamp;

use super::StoreError;
use super::row::sql_id;

/// The columns of the table, in the order of [`NoticeColumns`].
pub const COLUMNS: &str = "id, inbox, position, before, at, sender, follows, words, body, crc";

/// A notice as it is stored.
#[derive(Debug)]
pub struct NoticeColumns<'a> {
    /// Id, inbox, position, notice before, time, sender, and the message it follows; 0 for none.
    pub numbers: [i64; 7],
    /// The protocol of a message; empty if the body is JSON.
    pub words: &'a str,
    pub body: Cow<'a, str>,
    pub crc: u32,
}

impl<'a> NoticeColumns<'a> {
    pub fn of(notice: &'a Notice) -> Result<Self, StoreError> {
        let (sender, follows, words, body) = match &notice.news {
            NoticeKind::Message { from, protocol, body, previous } => {
                let from = from.map_or(0, |from| sql_id(from.0));
                (from, id_or_zero(*previous), protocol.as_str(), Cow::Borrowed(body.as_str()))
            }
            other => {
                let body = serde_json::to_string(other)
                    .map_err(|error| StoreError::Failed(error.to_string()))?;
                (0, 0, "", Cow::Owned(body))
            }
        };
        let (id, inbox) = (sql_id(notice.id.0), notice.to.map_or(0, |to| sql_id(to.0)));
        let (position, before) = (sql_id(notice.position), id_or_zero(notice.before));
        let numbers = [id, inbox, position, before, notice.at.0, sender, follows];
        let crc = checksum(numbers, words, &body);
        Ok(Self { numbers, words, body, crc })
    }
}

/// Checks a stored notice against its checksum and decodes it.
pub fn decode_notice(
    numbers: [i64; 7],
    words: &str,
    body: &str,
    crc: Option<i64>,
) -> Result<Notice, StoreError> {
    let [id, inbox, position, before, at, sender, follows] = numbers;
    let wrong = |why: &str| StoreError::Corrupt(format!("row {id} of notices {why}"));
    if crc != Some(i64::from(checksum(numbers, words, body))) {
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

pub fn checksum(numbers: [i64; 7], words: &str, body: &str) -> u32 {
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
