//! Checks the log by itself: one chain from the first row that is kept to the newest, and the tables'
//! place on it.

use futures_util::{StreamExt, pin_mut};
use tokio_postgres::types::ToSql;

use super::records::{LogRow, read_hash};
use super::session::{Connection, store_error};
use crate::store::StoreError;
use crate::store::log::Place;

/// Problems described; the rest would only repeat the first.
const PROBLEMS_MAX: usize = 100;

/// What a check of the log found.
#[derive(Clone, Debug, Default)]
pub struct LogCheck {
    /// Up to where the tables are complete.
    pub checkpoint: Place,
    /// The newest batch.
    pub head: Place,
    pub rows: u64,
    pub bytes: u64,
    pub problems: Vec<String>,
}

impl LogCheck {
    fn add(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

/// Reads and checks every row of the log.
pub fn check_log(connection: &mut Connection) -> Result<LogCheck, StoreError> {
    let row = connection.query_one(
        "SELECT checkpoint.seq, checkpoint.hash, lease.epoch FROM checkpoint, lease",
        &[],
    )?;
    let seq: i64 = row.try_get(0).map_err(store_error)?;
    let lease_epoch: i64 = row.try_get(2).map_err(store_error)?;
    let checkpoint = Place { number: seq.unsigned_abs(), hash: read_hash(&row, 1)? };
    let mut check = LogCheck { checkpoint, ..LogCheck::default() };
    let sql = "SELECT seq, epoch, format, body, hash FROM log ORDER BY seq";
    let none: [&(dyn ToSql + Sync); 0] = [];
    let rows = connection.wait(connection.client.query_raw(sql, none))?;
    pin_mut!(rows);
    // Before the first batch there is nothing, and a place has an empty hash.
    let (mut before, mut epoch) = (None, 0);
    let mut has_checkpoint = checkpoint == Place::default();
    while let Some(row) = connection.wait(async { rows.next().await.transpose() })? {
        let row = LogRow::read(&row)?;
        check.rows += 1;
        check.bytes += row.bytes();
        let place = row.place;
        let number = place.number;
        // The log of a copied hub begins with a place, without the batch.
        let is_first = number == 1 && row.bytes() > 0;
        match before.or(is_first.then(Place::default)) {
            Some(Place { number: last, .. }) if number != last + 1 => {
                check.add(format!("batch {} is missing, and batch {number} follows", last + 1));
            }
            Some(before) if !row.continues(before) => {
                check.add(format!(
                    "batch {number} is damaged or does not continue batch {}",
                    before.number
                ));
            }
            // What the oldest row continues is no longer there.
            _ => {}
        }
        if row.epoch < epoch {
            check.add(format!("batch {number} has epoch {}, after epoch {epoch}", row.epoch));
        }
        has_checkpoint |= place == checkpoint;
        (before, epoch) = (Some(place), row.epoch);
    }
    check.head = before.unwrap_or_default();
    if !has_checkpoint {
        check.add(format!(
            "the tables are complete up to batch {} (hash {:?}), and the log does not have it",
            checkpoint.number, checkpoint.hash
        ));
    }
    if lease_epoch.unsigned_abs() < epoch {
        check.add(format!("the lease has epoch {lease_epoch}, and the log epoch {epoch}"));
    }
    Ok(check)
}
