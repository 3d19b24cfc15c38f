//! Tables: each is read once from end to end, every row against its checksum.

use rialto_core::changes::Counters;
use rialto_core::id::NoticeId;
use rialto_core::notice::Notice;
use rusqlite::Connection;
use serde::de::DeserializeOwned;

use super::Check;
use crate::store::StoreError;
use crate::store::sqlite::{claims, notices, read, row, trouble};

/// Reads the tables, and collects the checks that apply to every row.
pub struct Rows<'d> {
    pub db: &'d Connection,
    pub next: Counters,
    checksums: Check,
    counters: Check,
}

/// The rule for the ids of a table.
#[derive(Clone, Copy)]
pub enum Ids {
    /// From 1 to the last one assigned, without gaps: no row is ever deleted.
    Whole(u64),
    /// Below the next one.
    Below(u64),
}

impl<'d> Rows<'d> {
    pub fn new(db: &'d Connection) -> Result<Self, StoreError> {
        let (mut checksums, mut counters) = (Check::new("checksums"), Check::new("counters"));
        let next = match read::counters(db) {
            Ok(next) => {
                checksums.rows += u64::from(next.is_some());
                next
            }
            Err(StoreError::Corrupt(why)) => {
                checksums.breach(|| why);
                None
            }
            Err(error) => return Err(error),
        };
        if next.is_none() {
            let lines = "SELECT EXISTS (SELECT 1 FROM lines)";
            let used: bool = db.query_row(lines, [], |row| row.get(0)).map_err(trouble)?;
            counters.holds(!used, || "the store has rows, but no counters".to_owned());
        }
        Ok(Self { db, next: next.unwrap_or_default(), checksums, counters })
    }

    /// Every row of a table in the order of its ids. Unreadable rows are reported and skipped.
    pub fn each<T: DeserializeOwned>(
        &mut self,
        table: &'static str,
        ids: Option<Ids>,
        own_id: impl Fn(&T) -> u64,
        mut each: impl FnMut(&Connection, T) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT id, body, crc FROM {table} ORDER BY id");
        self.read(table, &sql, ids, |rows, found, id| {
            let found: T = row::read(table, found)?;
            if own_id(&found) != id {
                let why = format!("row {id} of {table} says it is row {}", own_id(&found));
                return Err(StoreError::Corrupt(why));
            }
            each(rows, found)
        })
    }

    /// Every claim, in order.
    pub fn claims(
        &mut self,
        mut each: impl FnMut(&Connection, rialto_core::alias::Claim) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT id, digest, target, crc FROM claims ORDER BY id";
        let ids = Some(Ids::Whole(self.next.claim.0));
        self.read("claims", sql, ids, |db, found, _| each(db, claims::read(found)?))
    }

    /// Every notice, in order.
    pub fn notices(&mut self, mut each: impl FnMut(Notice)) -> Result<(), StoreError> {
        let ids = Some(Ids::Whole(self.next.notice.0));
        self.read("notices", &notices::after(NoticeId(0)), ids, |_, found, _| {
            each(notices::read(found)?);
            Ok(())
        })
    }

    /// Compares the number of rows with the number of ids assigned.
    pub fn counted(&mut self, what: &str, count: u64, next: u64) {
        self.counters.rows += 1;
        let lost = || format!("{what}: {count} rows, but the next id is {next}");
        self.counters.holds(count + 1 == next, lost);
    }

    /// Tables that have no further checks.
    fn rest(&mut self) -> Result<(), StoreError> {
        use rialto_core::event::{Event, Line};
        use rialto_core::market::Posting;
        use rialto_core::idempotency::Memory;
        let (lines, answers) = (self.next.event.0, self.next.answer.0);
        let mut epoch = 1;
        let ids = Some(Ids::Whole(lines));
        self.each(
            "lines",
            ids,
            |one: &Line| one.id.0,
            |_, line| {
                let restored = line.events.iter().filter_map(|event| match event {
                    Event::HubRestored { epoch } => Some(*epoch),
                    _ => None,
                });
                for found in restored {
                    if found != epoch + 1 {
                        let why = format!("line {} starts epoch {found} after {epoch}", line.id);
                        return Err(StoreError::Corrupt(why));
                    }
                    epoch = found;
                }
                Ok(())
            },
        )?;
        let next = self.next.epoch;
        let other = || format!("the history is in epoch {epoch}, but the counters say {next}");
        self.counters.holds(next == epoch, other);
        let postings = self.next.posting.0;
        // A file last used before there were markets has no such table.
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'postings')";
        match self.db.query_row(sql, [], |row| row.get(0)).map_err(trouble)? {
            true => {
                let ids = Some(Ids::Whole(postings));
                self.each("postings", ids, |one: &Posting| one.id.0, |_, _| Ok(()))?;
            }
            false => self.counted("postings", 0, postings),
        }
        self.each("memories", Some(Ids::Below(answers)), |one: &Memory| one.id.0, |_, _| Ok(()))?;
        let sql = "SELECT skill, body, crc FROM turns";
        self.read("turns", sql, None, |_, found, _| {
            row::read::<rialto_core::job::select::Turn>("turns", found).map(drop)
        })
    }

    fn read(
        &mut self,
        table: &'static str,
        sql: &str,
        ids: Option<Ids>,
        mut each: impl FnMut(&Connection, &rusqlite::Row<'_>, u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.db.prepare(sql).map_err(trouble)?;
        let mut rows = statement.query([]).map_err(trouble)?;
        let mut expected = 1;
        while let Some(found) = rows.next().map_err(trouble)? {
            self.checksums.rows += 1;
            let id = found.get_ref(0).map_err(trouble)?.as_i64().unwrap_or(0).unsigned_abs();
            match ids {
                Some(Ids::Whole(_)) => {
                    let gap = || format!("{table}: expected id {expected}, found {id}");
                    self.counters.holds(id == expected, gap);
                    expected = id + 1;
                }
                Some(Ids::Below(next)) => {
                    let used = || format!("{table}: id {id} exists, but the next id is {next}");
                    self.counters.holds(id < next, used);
                }
                None => {}
            }
            match each(self.db, found, id) {
                Ok(()) => {}
                Err(StoreError::Corrupt(why)) => self.checksums.breach(|| why),
                Err(error) => return Err(error),
            }
        }
        if let Some(Ids::Whole(next)) = ids {
            self.counters.rows += 1;
            let end = || format!("{table} ends before id {expected}, but the next id is {next}");
            self.counters.holds(expected == next, end);
        }
        Ok(())
    }

    /// The checks collected so far.
    pub fn finish(mut self) -> Result<(Check, Check), StoreError> {
        self.rest()?;
        Ok((self.checksums, self.counters))
    }
}
