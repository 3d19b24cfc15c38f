//! For tests: how the store reads a row with a given content.
//!
//! The row passes through SQLite and the reader of its table, as it does when a hub starts, and the
//! result is encoded as it would be written again.

use std::sync::Arc;

use rialto_core::agent::key::Key;
use rialto_core::agent::{Agent, AgentState};
use rialto_core::alias::Alias;
use rialto_core::changes::Counters;
use rialto_core::event::HistoryLine;
use rialto_core::idempotency::IdempotencyRecord;
use rialto_core::job::Job;
use rialto_core::job::select::Rotation;
use rialto_core::ledger::{Entry, Transfer};
use rialto_core::market::MarketRecord;
use rialto_core::message::inbox::Inbox;
use rialto_core::notice::{CompletedDelivery, Delivery};
use rialto_core::owner::Owner;
use rialto_core::reputation::Outcome;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::row::{checksum, read_row, text};
use super::{claims, notices, store_error};
use crate::store::StoreError;

/// Tables whose rows are a key, a body and a checksum.
pub const TABLES: &[&str] = &[
    "agents",
    "desks",
    "owners",
    "keys",
    "aliases",
    "turns",
    "jobs",
    "archive",
    "pushes",
    "memories",
    "entries",
    "transfers",
    "arrivals",
    "mailboxes",
    "outcomes",
    "lines",
    "postings",
    "state",
];

/// An in-memory database to write rows to.
pub struct RowProbe(Connection);

impl RowProbe {
    /// An empty one.
    pub fn new() -> Result<Self, StoreError> {
        Connection::open_in_memory().map(Self).map_err(store_error)
    }

    /// Reads a row of `table` with this body; `spoilt` is the error added to its checksum.
    pub fn reread_row(
        &self,
        table: &str,
        id: i64,
        body: &[u8],
        spoilt: u32,
    ) -> Result<Option<String>, StoreError> {
        let reader = match table {
            "agents" => Self::typed::<Arc<Agent>>,
            "desks" => Self::typed::<Arc<AgentState>>,
            "owners" => Self::typed::<Arc<Owner>>,
            "keys" => Self::typed::<Arc<Key>>,
            "aliases" => Self::typed::<Alias>,
            "turns" => Self::typed::<Arc<Rotation>>,
            "jobs" | "archive" => Self::typed::<Arc<Job>>,
            "pushes" => Self::typed::<Arc<Delivery>>,
            "memories" => Self::typed::<Arc<IdempotencyRecord>>,
            "entries" => Self::typed::<Entry>,
            "transfers" => Self::typed::<Arc<Transfer>>,
            "arrivals" => Self::typed::<CompletedDelivery>,
            "mailboxes" => Self::typed::<Inbox>,
            "outcomes" => Self::typed::<Outcome>,
            "lines" => Self::typed::<HistoryLine>,
            "postings" => Self::typed::<Arc<MarketRecord>>,
            "state" => Self::typed::<Counters>,
            _ => return Ok(None),
        };
        reader(self, table, id, body, spoilt).map(Some)
    }

    fn typed<T: DeserializeOwned + Serialize>(
        &self,
        table: &str,
        id: i64,
        body: &[u8],
        spoilt: u32,
    ) -> Result<String, StoreError> {
        let crc = checksum(ValueRef::Integer(id), body) ^ spoilt;
        self.put(&[&id, &text(body), &crc], |row| {
            let row: T = read_row(table, row)?;
            serde_json::to_string(&row).map_err(|error| StoreError::Failed(error.to_string()))
        })
    }

    /// Reads a notice with this body: a message in a protocol, or JSON if `words` is empty.
    pub fn reread_notice(&self, words: &str, body: &[u8], spoilt: u32) -> Result<(), StoreError> {
        let numbers = [7_i64, 1, 2, 3, 4, 5, 6];
        let crc =
            std::str::from_utf8(body).map_or(0, |body| notices::checksum(numbers, words, body));
        let crc = crc ^ spoilt;
        let mut columns: Vec<&dyn ToSql> = numbers.iter().map(|n| n as &dyn ToSql).collect();
        let body = text(body);
        columns.extend([&words as &dyn ToSql, &body, &crc]);
        self.put(&columns, |row| notices::read_notice(row).map(drop))
    }

    /// Reads a claim to this target.
    pub fn reread_claim(
        &self,
        digest: [u8; 16],
        target: &[u8],
        spoilt: u32,
    ) -> Result<(), StoreError> {
        let crc = claims::checksum(
            rialto_core::id::ClaimId(9),
            rialto_core::alias::Digest(digest),
            target,
        );
        let crc = crc ^ spoilt;
        self.put(&[&9_i64, &digest, &text(target), &crc], |row| claims::read_claim(row).map(drop))
    }

    fn put<T>(
        &self,
        columns: &[&dyn ToSql],
        then: impl FnOnce(&rusqlite::Row<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let marks: Vec<String> = (1..=columns.len()).map(|n| format!("?{n}")).collect();
        let sql = format!("SELECT {}", marks.join(", "));
        let mut statement = self.0.prepare_cached(&sql).map_err(store_error)?;
        let mut rows = statement.query(columns).map_err(store_error)?;
        match rows.next().map_err(store_error)? {
            Some(row) => then(row),
            None => Err(StoreError::Failed("a row was written but not found".to_owned())),
        }
    }
}
