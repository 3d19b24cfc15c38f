//! Appending: a batch is one row of the log, inserted in one round trip.
//!
//! The row is inserted only beside the row before it, with our hash of that row. So a node that
//! missed something can never append: the next place is taken, or the place before it is gone.
//! Reading the row before locks it against removal, which keeps a node that slept while the log was
//! truncated from finding both places free.
//!
//! An error may leave it unknown whether the batch is written. Nothing is appended after one until
//! the log is told where to continue: the caller follows the log first, and the first batch of its
//! next epoch settles what the place has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rialto_core::changes::{Batch, Counters};
use rialto_core::encoding::encode_batch;
use tokio_postgres::error::SqlState;

use super::SharedRows;
use super::session::{Arguments, Session, SessionSettings, store_error};
use super::url::Database;
use crate::cluster::frame::BatchRecord;
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::mistake::Mistake;
use crate::metrics::Histogram;
use crate::store::log::record::chain_hash;
use crate::store::log::{NextIds, Place};
use crate::store::row::sql_id;
use crate::store::{BatchLog, StoreError};

const APPEND: &str = "INSERT INTO log (seq, epoch, format, body, hash)
    SELECT $1::bigint, $2::bigint, $3::int, $4::bytea, $5::bytea FROM log
     WHERE seq = $1::bigint - 1 AND hash = $6 FOR KEY SHARE";
/// The first batch has none before it.
const APPEND_FIRST: &str = "INSERT INTO log (seq, epoch, format, body, hash)
    SELECT $1::bigint, $2::bigint, $3::int, $4::bytea, $5::bytea FROM checkpoint
     WHERE seq = 0 AND hash = $6 FOR SHARE";
const HEAD: &str = "SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1";

/// How long to wait for another session that holds the next place.
const LOCK_TIMEOUT: Duration = Duration::from_millis(150);
/// How long to wait until a batch is written. After that it is in doubt, as if the connection had
/// ended. A session that waits for a standby goes on waiting, and keeps its place until it is done.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a batch is tried again that the database rolled back for its own reasons.
const ATTEMPTS: usize = 5;

/// The writing side of the log.
pub struct PostgresLog {
    session: Session,
    shared: Arc<SharedRows>,
    place: Place,
    epoch: u64,
    next: NextIds,
    durations: Arc<Histogram>,
    /// After an error it is unknown what the next place has.
    is_stopped: bool,
    /// The batch that was appended last.
    buffer: Vec<u8>,
    format: u8,
}

impl PostgresLog {
    pub fn new(database: Arc<Database>, shared: Arc<SharedRows>) -> Self {
        let settings = SessionSettings {
            lock_timeout: Some(LOCK_TIMEOUT),
            answer_timeout: Some(ANSWER_TIMEOUT),
            ..SessionSettings::default()
        };
        Self {
            session: Session::new(database, settings),
            shared,
            place: Place::default(),
            epoch: 0,
            next: NextIds::default(),
            durations: Arc::new(Histogram::for_durations()),
            is_stopped: true,
            buffer: Vec::new(),
            format: 0,
        }
    }

    pub fn durations(&self) -> Arc<Histogram> {
        self.durations.clone()
    }

    fn insert(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        let mut body = std::mem::take(&mut self.buffer);
        body.clear();
        self.buffer =
            encode_batch(batch, body).map_err(|error| StoreError::Failed(error.to_string()))?;
        let number = self.place.number + 1;
        let hash = chain_hash(self.place.hash, number, self.epoch, &self.buffer);
        let (seq, epoch) = (sql_id(number), sql_id(self.epoch));
        let format = self.shared.format.load(Ordering::Acquire);
        self.format = u8::try_from(format).unwrap_or(u8::MAX);
        let (body, hash_bytes, before) = (&self.buffer[..], &hash.0[..], &self.place.hash.0[..]);
        let sql = if number == 1 { APPEND_FIRST } else { APPEND };
        let connection = self.session.connect()?;
        self.shared.append_session.store(connection.pid, Ordering::Release);
        let [statement] = connection.prepare([sql])?;
        let arguments: Arguments<'_> = &[&seq, &epoch, &format, &body, &hash_bytes, &before];
        for attempt in 1.. {
            // The code is looked at first, so the error is kept as it is.
            let insert = connection.client.execute(&statement, arguments);
            match connection.wait(async { Ok(insert.await) })? {
                Ok(1) => break,
                Ok(_) => return Err(StoreError::Taken { number }),
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                    return Err(StoreError::Taken { number });
                }
                Err(error) if is_rolled_back(&error) && attempt < ATTEMPTS => {}
                Err(error) => return Err(store_error(error)),
            }
        }
        Ok(Place { number, hash })
    }
}

/// Whether the database rolled the statement back and asks to try again.
fn is_rolled_back(error: &tokio_postgres::Error) -> bool {
    let codes = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|code| codes.contains(code))
}

impl BatchLog for PostgresLog {
    fn append(&mut self, batch: &Batch) -> Result<Place, StoreError> {
        if self.is_stopped {
            return Err(StoreError::Unreachable(
                "after an error the log must be followed before it is continued".to_owned(),
            ));
        }
        self.next.check(&batch.changes).inspect_err(|_| self.is_stopped = true)?;
        let began = Instant::now();
        let place = self.insert(batch).inspect_err(|error| {
            // Nothing was written if there is no space, and there may be some later.
            self.is_stopped = !matches!(error, StoreError::Full);
            if matches!(error, StoreError::Unreachable(_)) {
                self.session.disconnect();
            }
        })?;
        self.durations.observe_duration(began.elapsed());
        self.shared.log_bytes.fetch_add(self.buffer.len() as u64, Ordering::Relaxed);
        self.place = place;
        self.next.advance(&batch.changes);
        Ok(place)
    }

    fn newest_record(&self) -> Option<BatchRecord> {
        Some(BatchRecord { format: self.format, body: self.buffer.clone() })
    }

    fn confirm_head(&mut self) -> Result<(), StoreError> {
        #[cfg(any(test, feature = "testkit"))]
        if Mistake::of_process() == Some(Mistake::NoConfirmation) {
            return Ok(());
        }
        let place = self.place;
        let rows = self.session.run_again(|connection| connection.query(HEAD, &[]))?;
        let Some(row) = rows.first() else {
            return match place.number {
                0 => Ok(()),
                _ => Err(StoreError::LostPlace(format!(
                    "this node is at batch {}, and the log is empty",
                    place.number
                ))),
            };
        };
        let number: i64 = row.try_get(0).map_err(store_error)?;
        let hash: &[u8] = row.try_get(1).map_err(store_error)?;
        match number == sql_id(place.number) && hash == place.hash.0 {
            true => Ok(()),
            false => Err(StoreError::Taken { number: place.number + 1 }),
        }
    }

    fn continue_at(&mut self, place: Place, epoch: u64, next: Counters) {
        (self.place, self.epoch, self.next) = (place, epoch, NextIds(next));
        self.is_stopped = false;
    }

    fn session(&mut self) -> Result<i32, StoreError> {
        let pid = self.session.connect()?.pid;
        self.shared.append_session.store(pid, Ordering::Release);
        Ok(pid)
    }
}
