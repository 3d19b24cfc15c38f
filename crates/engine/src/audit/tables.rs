//! Tables: each is read once from end to end, every row against its checksum.

use rialto_core::changes::Counters;
use rialto_core::id::NoticeId;
use rialto_core::notice::Notice;
use rusqlite::Connection;
use serde::de::DeserializeOwned;

use super::Check;
use crate::store::StoreError;
use crate::store::sqlite::{checkpoint, claims, notices, read, row, store_error};

/// Reads the tables, and collects the checks that apply to every row.
pub struct TableReader<'d> {
    pub db: &'d Connection,
    pub next: Counters,
    checksums: Check,
    counters: Check,
}

/// The rule for the ids of a table.
#[derive(Clone, Copy)]
pub enum IdRule {
    /// From 1 to the last one assigned, without gaps: no row is ever deleted.
    Contiguous(u64),
    /// Below the next one.
    Below(u64),
}

impl<'d> TableReader<'d> {
    pub fn new(db: &'d Connection) -> Result<Self, StoreError> {
        let (mut checksums, mut counters) = (Check::new("checksums"), Check::new("counters"));
        let next = match read::load_counters(db) {
            Ok(next) => {
                checksums.rows += u64::from(next.is_some());
                next
            }
            Err(StoreError::Corrupt(why)) => {
                checksums.add_breach(|| why);
                None
            }
            Err(error) => return Err(error),
        };
        for state in
            [checkpoint::read_log_state(db).map(drop), checkpoint::read_place(db).map(drop)]
        {
            match state {
                Ok(()) => checksums.rows += 1,
                Err(StoreError::Corrupt(why)) => checksums.add_breach(|| why),
                Err(error) => return Err(error),
            }
        }
        if next.is_none() {
            let lines = "SELECT EXISTS (SELECT 1 FROM lines)";
            let used: bool = db.query_row(lines, [], |row| row.get(0)).map_err(store_error)?;
            counters.require(!used, || "the store has rows, but no counters".to_owned());
        }
        Ok(Self { db, next: next.unwrap_or_default(), checksums, counters })
    }

    /// Every row of a table in the order of its ids. Unreadable rows are reported and skipped.
    pub fn for_each<T: DeserializeOwned>(
        &mut self,
        table: &'static str,
        ids: Option<IdRule>,
        own_id: impl Fn(&T) -> u64,
        mut each: impl FnMut(&Connection, T) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = format!("SELECT id, body, crc FROM {table} ORDER BY id");
        self.scan(table, &sql, ids, |rows, found, id| {
            let found: T = row::read_row(table, found)?;
            if own_id(&found) != id {
                let why = format!("row {id} of {table} says it is row {}", own_id(&found));
                return Err(StoreError::Corrupt(why));
            }
            each(rows, found)
        })
    }

    /// Every claim, in order.
    pub fn for_each_claim(
        &mut self,
        mut each: impl FnMut(&Connection, rialto_core::alias::Claim) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT id, digest, target, crc FROM claims ORDER BY id";
        let ids = Some(IdRule::Contiguous(self.next.claim.0));
        self.scan("claims", sql, ids, |db, found, _| each(db, claims::read_claim(found)?))
    }

    /// Every notice, in order.
    pub fn for_each_notice(&mut self, mut each: impl FnMut(Notice)) -> Result<(), StoreError> {
        let ids = Some(IdRule::Contiguous(self.next.notice.0));
        self.scan("notices", &notices::select_after(NoticeId(0)), ids, |_, found, _| {
            each(notices::read_notice(found)?);
            Ok(())
        })
    }

    /// Compares the number of rows with the number of ids assigned.
    pub fn check_row_count(&mut self, what: &str, count: u64, next: u64) {
        self.counters.rows += 1;
        let lost = || format!("{what}: {count} rows, but the next id is {next}");
        self.counters.require(count + 1 == next, lost);
    }

    /// Tables that have no further checks.
    fn check_remaining_tables(&mut self) -> Result<(), StoreError> {
        use rialto_core::event::{Event, HistoryLine};
        use rialto_core::idempotency::IdempotencyRecord;
        use rialto_core::market::MarketRecord;
        let (lines, answers) = (self.next.event.0, self.next.answer.0);
        let mut epoch = 1;
        let ids = Some(IdRule::Contiguous(lines));
        self.for_each(
            "lines",
            ids,
            |one: &HistoryLine| one.id.0,
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
        self.counters.require(next == epoch, other);
        let postings = self.next.market_record.0;
        // A file last used before there were markets has no such table.
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'postings')";
        match self.db.query_row(sql, [], |row| row.get(0)).map_err(store_error)? {
            true => {
                let ids = Some(IdRule::Contiguous(postings));
                self.for_each("postings", ids, |one: &MarketRecord| one.id.0, |_, _| Ok(()))?;
            }
            false => self.check_row_count("postings", 0, postings),
        }
        self.for_each(
            "memories",
            Some(IdRule::Below(answers)),
            |one: &IdempotencyRecord| one.id.0,
            |_, _| Ok(()),
        )?;
        let sql = "SELECT skill, body, crc FROM turns";
        self.scan("turns", sql, None, |_, found, _| {
            row::read_row::<rialto_core::job::select::Rotation>("turns", found).map(drop)
        })
    }

    fn scan(
        &mut self,
        table: &'static str,
        sql: &str,
        ids: Option<IdRule>,
        mut each: impl FnMut(&Connection, &rusqlite::Row<'_>, u64) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.db.prepare(sql).map_err(store_error)?;
        let mut rows = statement.query([]).map_err(store_error)?;
        let mut expected = 1;
        while let Some(found) = rows.next().map_err(store_error)? {
            self.checksums.rows += 1;
            let id = found.get_ref(0).map_err(store_error)?.as_i64().unwrap_or(0).unsigned_abs();
            match ids {
                Some(IdRule::Contiguous(_)) => {
                    let gap = || format!("{table}: expected id {expected}, found {id}");
                    self.counters.require(id == expected, gap);
                    expected = id + 1;
                }
                Some(IdRule::Below(next)) => {
                    let used = || format!("{table}: id {id} exists, but the next id is {next}");
                    self.counters.require(id < next, used);
                }
                None => {}
            }
            match each(self.db, found, id) {
                Ok(()) => {}
                Err(StoreError::Corrupt(why)) => self.checksums.add_breach(|| why),
                Err(error) => return Err(error),
            }
        }
        if let Some(IdRule::Contiguous(next)) = ids {
            self.counters.rows += 1;
            let end = || format!("{table} ends before id {expected}, but the next id is {next}");
            self.counters.require(expected == next, end);
        }
        Ok(())
    }

    /// The checks collected so far.
    pub fn into_checks(mut self) -> Result<(Check, Check), StoreError> {
        self.check_remaining_tables()?;
        Ok((self.checksums, self.counters))
    }
}
