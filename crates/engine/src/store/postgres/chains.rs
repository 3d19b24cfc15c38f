//! Chains in one round trip: the database follows the links itself.
//!
//! Most links are inside the JSON of a row, and the database finds them by a pattern. That is only
//! reading ahead: the reader follows the links of the decoded rows, and asks again where the
//! database went another way. A pattern cannot match inside a text, where quotes are escaped.

use std::collections::HashMap;

use tokio_postgres::Row as TableRow;

use super::read::{ENTRIES, JOBS, NOTICES, OUTCOMES};
use super::session::{Connection, store_error};
use crate::store::chain::Chain;
use crate::store::row::sql_id;
use crate::store::{Row, StoreError};

/// Most rows that are read at once.
const ROWS_MAX: usize = 256;

/// One statement: the rows of a chain from an id on, at most some number of them, and fewer if they
/// are longer than a megabyte together.
macro_rules! chain_sql {
    ($columns:literal, $table:literal, $link:literal) => {
        concat!(
            "WITH RECURSIVE chain AS (
                SELECT next.*, 1 AS depth, octet_length(next.body)::bigint AS bytes
                  FROM ",
            $table,
            " AS next WHERE next.id = $1
                 UNION ALL
                SELECT next.*, chain.depth + 1, chain.bytes + octet_length(next.body)
                  FROM chain JOIN ",
            $table,
            " AS next ON next.id = (",
            $link,
            ")
                 WHERE chain.depth < $2 AND chain.bytes < 1048576)
             SELECT ",
            $columns,
            " FROM chain"
        )
    };
}

pub(super) const INBOX: &str = chain_sql!(
    "id, inbox, position, before, at, sender, follows, words, body, crc",
    "notices",
    "chain.before"
);
const REPORTS: &str = chain_sql!(
    "id, inbox, position, before, at, sender, follows, words, body, crc",
    "notices",
    "substring(encode(chain.body, 'escape') from '[{,]\"previous\":([0-9]+)')::bigint"
);
const ACCOUNT: &str = chain_sql!(
    "id, body, crc",
    "entries",
    "CASE WHEN chain.payer = $3 THEN substring(chain.body from '[{,]\"before_from\":([0-9]+)')
          ELSE substring(chain.body from '[{,]\"before_to\":([0-9]+)') END::bigint"
);
pub(super) const REQUESTED: &str = chain_sql!(
    "id, body, crc",
    "(SELECT id, body, crc FROM jobs UNION ALL SELECT id, body, crc FROM archive)",
    "substring(chain.body from '[{,]\"before_asked\":([0-9]+)')::bigint"
);
const WORKED: &str = chain_sql!(
    "id, body, crc",
    "(SELECT id, body, crc FROM jobs UNION ALL SELECT id, body, crc FROM archive)",
    "substring(chain.body from '[{,]\"before_worked\":([0-9]+)')::bigint"
);
const RECORD: &str = chain_sql!(
    "id, body, crc",
    "outcomes",
    "substring(chain.body from '[{,]\"before\":([0-9]+)')::bigint"
);

/// The rows of a chain from one on, by their ids.
pub fn read(
    connection: &mut Connection,
    chain: Chain,
    from: u64,
    limit: usize,
) -> Result<HashMap<u64, Row>, StoreError> {
    let from = sql_id(from);
    let depth = i32::try_from(limit.clamp(1, ROWS_MAX)).unwrap_or(i32::MAX);
    let (rows, lookup) = match chain {
        Chain::Inbox => (connection.query(INBOX, &[&from, &depth])?, NOTICES),
        Chain::Reports => (connection.query(REPORTS, &[&from, &depth])?, NOTICES),
        Chain::Entries(owner) => {
            (connection.query(ACCOUNT, &[&from, &depth, &sql_id(owner.0)])?, ENTRIES)
        }
        Chain::RequestedJobs => (connection.query(REQUESTED, &[&from, &depth])?, JOBS),
        Chain::WorkedJobs => (connection.query(WORKED, &[&from, &depth])?, JOBS),
        Chain::Outcomes => (connection.query(RECORD, &[&from, &depth])?, OUTCOMES),
    };
    let with_id = |row: &TableRow| {
        let id: i64 = row.try_get(0).map_err(store_error)?;
        Ok((id.unsigned_abs(), (lookup.decode)(row)?))
    };
    rows.iter().map(with_id).collect()
}
