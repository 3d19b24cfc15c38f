//! Reading: single rows in one round trip for all of them, and pages of history.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use rialto_core::alias::{Claim, Digest};
use serde::de::DeserializeOwned;
use tokio_postgres::Row as TableRow;
use tokio_postgres::types::ToSql;

use super::SharedRows;
use super::chains;
use super::session::{Connection, Session, SessionSettings, store_error};
use super::url::Database;
use crate::store::chain::{self, Chain};
use crate::store::claims::decode_claim;
use crate::store::notices::decode_notice;
use crate::store::row::{RowId, decode_row, sql_id};
use crate::store::unwritten::join_page;
use crate::store::{PageQuery, Reader, RecentRows, Row, RowKey, StoreError};

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How rows of a table are found and decoded.
pub struct Lookup {
    sql: &'static str,
    pub decode: fn(&TableRow) -> Result<Row, StoreError>,
}

const AGENTS: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM agents WHERE id = ANY($1)",
    decode: |row| read_row("agents", row).map(Row::Agent),
};
/// In one statement, and so in one snapshot: a job that ends meanwhile is found in one of the two.
pub const JOBS: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM jobs WHERE id = ANY($1)
          UNION ALL SELECT id, body, crc FROM archive WHERE id = ANY($1)",
    decode: |row| read_row("jobs", row).map(Row::Job),
};
const TRANSFERS: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM transfers WHERE id = ANY($1)",
    decode: |row| read_row("transfers", row).map(Row::Transfer),
};
pub const ENTRIES: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM entries WHERE id = ANY($1)",
    decode: |row| read_row("entries", row).map(Row::Entry),
};
pub const NOTICES: Lookup = Lookup {
    sql: "SELECT id, inbox, position, before, at, sender, follows, words, body, crc FROM notices
           WHERE id = ANY($1)",
    decode: read_notice,
};
const ARRIVALS: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM arrivals WHERE id = ANY($1)",
    decode: |row| read_row("arrivals", row).map(Row::Arrival),
};
pub const OUTCOMES: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM outcomes WHERE id = ANY($1)",
    decode: |row| read_row("outcomes", row).map(Row::Outcome),
};
const POSTINGS: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM postings WHERE id = ANY($1)",
    decode: |row| read_row("postings", row).map(Row::Posting),
};
const MEMORIES: Lookup = Lookup {
    sql: "SELECT id, body, crc FROM memories WHERE id = ANY($1)",
    decode: |row| read_row("memories", row).map(Row::Memory),
};
/// Of one digest the newest.
const CLAIMS: &str = "SELECT DISTINCT ON (digest) id, digest, target, crc FROM claims
    WHERE digest = ANY($1) ORDER BY digest, id DESC";

/// Reads the rows in memory first, and then the tables. A row that is written to them in between is
/// found there.
pub struct PostgresReader {
    session: Session,
    shared: Arc<SharedRows>,
}

impl PostgresReader {
    pub fn new(database: Arc<Database>, shared: Arc<SharedRows>) -> Self {
        let settings =
            SessionSettings { answer_timeout: Some(ANSWER_TIMEOUT), ..SessionSettings::default() };
        Self { session: Session::new(database, settings), shared }
    }

    /// Several rows, in the order of their keys, in one round trip.
    pub fn load_all(&mut self, keys: &[RowKey]) -> Result<Vec<Option<Row>>, StoreError> {
        let mut found: Vec<Option<Row>> = Vec::with_capacity(keys.len());
        let mut missing = MissingRows::default();
        for (at, key) in keys.iter().enumerate() {
            let row = self.shared.get(*key);
            if row.is_none() {
                missing.add(&self.shared, at, *key);
            }
            found.push(row.flatten());
        }
        if !missing.is_empty() {
            let rows = self.session.run_again(|connection| missing.load(connection))?;
            for (at, row) in rows {
                found[at] = Some(row);
            }
        }
        Ok(found)
    }
}

impl Reader for PostgresReader {
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        Ok(self.load_all(&[key])?.pop().flatten())
    }

    fn load_page(&mut self, page: PageQuery) -> Result<Vec<Row>, StoreError> {
        let unwritten = self.shared.unwritten.read().page(page);
        let table = self.session.run_again(|connection| load_page(connection, page))?;
        Ok(join_page(page, unwritten, table))
    }

    fn load_chain(
        &mut self,
        chain: Chain,
        from: RowKey,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let Self { session, shared } = self;
        let (mut ahead, mut loaded) = (HashMap::new(), 0);
        chain::follow(chain, from, limit, |key| {
            loaded += 1;
            if let Some(row) = shared.get(key) {
                return Ok(row);
            }
            // What was read ahead is only a guess of where the links lead.
            let Some(id) = key.number() else { return Ok(None) };
            if !ahead.contains_key(&id) {
                let rest = limit + 1 - loaded;
                ahead =
                    session.run_again(|connection| chains::read(connection, chain, id, rest))?;
            }
            Ok(ahead.remove(&id))
        })
    }
}

/// The keys that are not in memory, by table.
#[derive(Default)]
struct MissingRows {
    tables: HashMap<&'static str, TableKeys>,
    digests: Vec<Vec<u8>>,
    claims: HashMap<Digest, Vec<usize>>,
}

struct TableKeys {
    decode: fn(&TableRow) -> Result<Row, StoreError>,
    ids: Vec<i64>,
    /// Where each row belongs.
    places: HashMap<i64, Vec<usize>>,
}

impl MissingRows {
    fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.digests.is_empty()
    }

    fn add(&mut self, shared: &SharedRows, at: usize, key: RowKey) {
        let lookup = match key {
            RowKey::Claim(digest) => {
                // Almost every id that is looked up is new.
                if shared.claims.read().may_be_indexed(digest) {
                    self.digests.push(digest.0.to_vec());
                    self.claims.entry(digest).or_default().push(at);
                }
                return;
            }
            RowKey::Agent(_) => AGENTS,
            RowKey::Job(_) => JOBS,
            RowKey::Transfer(_) => TRANSFERS,
            RowKey::Entry(_) => ENTRIES,
            RowKey::Notice(_) => NOTICES,
            RowKey::Arrival(_) => ARRIVALS,
            RowKey::Outcome(_) => OUTCOMES,
            RowKey::MarketRecord(_) => POSTINGS,
            RowKey::IdempotencyRecord(_) => MEMORIES,
        };
        let Some(id) = key.number().map(sql_id) else { return };
        let Lookup { sql, decode } = lookup;
        let new = || TableKeys { decode, ids: Vec::new(), places: HashMap::new() };
        let table = self.tables.entry(sql).or_insert_with(new);
        table.ids.push(id);
        table.places.entry(id).or_default().push(at);
    }

    /// The rows that exist, and where they belong.
    fn load(&self, connection: &mut Connection) -> Result<Vec<(usize, Row)>, StoreError> {
        let mut sql: Vec<&'static str> = self.tables.keys().copied().collect();
        let mut arguments: Vec<[&(dyn ToSql + Sync); 1]> =
            sql.iter().map(|sql| [&self.tables[sql].ids as &(dyn ToSql + Sync)]).collect();
        if !self.digests.is_empty() {
            sql.push(CLAIMS);
            arguments.push([&self.digests]);
        }
        connection.prepare_all(&sql)?;
        let queries = sql
            .iter()
            .zip(&arguments)
            .map(|(sql, arguments)| connection.client.query(connection.prepared(sql), arguments));
        let found = connection.wait(try_join_all(queries))?;
        let mut rows = Vec::new();
        for (sql, found) in sql.iter().zip(&found) {
            for row in found {
                let (places, row) = match self.tables.get(sql) {
                    Some(table) => {
                        let id: i64 = row.try_get(0).map_err(store_error)?;
                        (table.places.get(&id), (table.decode)(row)?)
                    }
                    None => {
                        let claim = read_claim(row)?;
                        (self.claims.get(&claim.digest), Row::Claim(claim))
                    }
                };
                rows.extend(places.into_iter().flatten().map(|at| (*at, row.clone())));
            }
        }
        Ok(rows)
    }
}

/// Checks and decodes a row from its key, body and checksum.
pub fn read_row<T: DeserializeOwned>(table: &str, row: &TableRow) -> Result<T, StoreError> {
    let key = RowId::Number(row.try_get(0).map_err(store_error)?);
    let body = row.try_get(1).map_err(store_error)?;
    decode_row(table, key, body, row.try_get(2).map_err(store_error)?)
}

fn read_notice(row: &TableRow) -> Result<Row, StoreError> {
    let mut numbers = [0_i64; 7];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = row.try_get(at).map_err(store_error)?;
    }
    let (words, body): (&str, &[u8]) =
        (row.try_get(7).map_err(store_error)?, row.try_get(8).map_err(store_error)?);
    let body = std::str::from_utf8(body)
        .map_err(|_| StoreError::Corrupt(format!("row {} of notices is not text", numbers[0])))?;
    let crc = row.try_get(9).map_err(store_error)?;
    decode_notice(numbers, words, body, crc).map(Row::Notice)
}

fn read_claim(row: &TableRow) -> Result<Claim, StoreError> {
    let id: i64 = row.try_get(0).map_err(store_error)?;
    let digest = read_digest(row, 1)?;
    let target = row.try_get(2).map_err(store_error)?;
    decode_claim(id, digest.0, target, row.try_get(3).map_err(store_error)?)
}

/// A digest in a column of `claims`.
pub fn read_digest(row: &TableRow, column: usize) -> Result<Digest, StoreError> {
    let bytes: &[u8] = row.try_get(column).map_err(store_error)?;
    let wrong = |_| StoreError::Corrupt("a row of claims has no digest".to_owned());
    bytes.try_into().map(Digest).map_err(wrong)
}

/// Rows in the order they were written.
fn load_page(connection: &mut Connection, page: PageQuery) -> Result<Vec<Row>, StoreError> {
    const LINES: &str = "SELECT id, body, crc FROM lines WHERE id > $1 ORDER BY id LIMIT $2";
    const ENTRIES: &str =
        "SELECT id, body, crc FROM entries WHERE id < $1 ORDER BY id DESC LIMIT $2";
    const JOBS: &str = "SELECT id, body, crc FROM archive WHERE id < $1 ORDER BY id DESC LIMIT $2";
    const POSTINGS: &str =
        "SELECT id, body, crc FROM postings WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3";
    const NEWEST: &str =
        "SELECT id, body, crc FROM postings WHERE id > $1 AND id < $2 ORDER BY id DESC LIMIT $3";
    let most = |limit: usize| i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = match page {
        PageQuery::Lines { after, limit } => {
            connection.query(LINES, &[&sql_id(after.0), &most(limit)])?
        }
        PageQuery::Entries { before, limit } => {
            connection.query(ENTRIES, &[&sql_id(before.0), &most(limit)])?
        }
        PageQuery::Jobs { before, limit } => {
            connection.query(JOBS, &[&sql_id(before.0), &most(limit)])?
        }
        PageQuery::MarketRecords { after, before, newest_first, limit } => {
            let sql = if newest_first { NEWEST } else { POSTINGS };
            connection.query(sql, &[&sql_id(after.0), &sql_id(before.0), &most(limit)])?
        }
    };
    let decode: fn(&TableRow) -> Result<Row, StoreError> = match page {
        PageQuery::Lines { .. } => |row| read_row("lines", row).map(Row::Line),
        PageQuery::Entries { .. } => |row| read_row("entries", row).map(Row::Entry),
        PageQuery::Jobs { .. } => |row| read_row("archive", row).map(Row::Job),
        PageQuery::MarketRecords { .. } => |row| read_row("postings", row).map(Row::Posting),
    };
    rows.iter().map(decode).collect()
}
