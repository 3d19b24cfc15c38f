//! The log and the lease as every node of a cluster follows them.
//!
//! Signs of life, reports and the removal of old batches may be lost in a crash of the database, so they
//! do not wait for its disk.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::try_join;
use rialto_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::SharedRows;
use super::records::{LogRow, read_hash};
use super::schema::check_format;
use super::session::{Arguments, Session, SessionSettings, store_error};
use super::url::Database;
use crate::cluster::{Lease, Look, LookQuery, NodeId, NodeReport, NodeRow, SharedLog};
use crate::store::StoreError;
use crate::store::log::{ChainHash, Place};
use crate::store::row::sql_id;

/// Our own row without its body, and 256 more, fewer if they are longer than 8 MB together.
pub(super) const BATCHES: &str = "
    SELECT seq, epoch, format, CASE WHEN seq = $1 THEN ''::bytea ELSE body END, hash
      FROM (SELECT *, sum(size) OVER (ORDER BY seq) - size AS before
              FROM (SELECT *, CASE WHEN seq = $1 THEN 0 ELSE octet_length(body) END AS size
                      FROM log WHERE seq >= $1 ORDER BY seq LIMIT 257) AS next) AS sums
     WHERE before < 8388608 ORDER BY seq";
/// Our own row, and the newest.
pub(super) const HEAD: &str = "
    SELECT seq, epoch, format, ''::bytea, hash FROM log
     WHERE seq IN ($1, (SELECT max(seq) FROM log)) ORDER BY seq";
const LEASE: &str = "
    SELECT epoch, node, address, session, beat, (SELECT seq FROM checkpoint),
           (SELECT max(seq) FROM log), (SELECT format FROM meta) FROM lease";

const HASH: &str = "SELECT hash FROM log WHERE seq = $1";

const TAKE_LEASE: &str = "
    UPDATE lease SET epoch = epoch + 1, node = $3, address = $4, session = $5, beat = beat + 1
     WHERE epoch = $1 AND beat = $2 RETURNING epoch, node, address, session, beat";
const BEAT: &str = "UPDATE lease SET beat = beat + 1, session = $3 WHERE epoch = $1 AND node = $2";
const RELEASE_LEASE: &str =
    "UPDATE lease SET node = 0, address = '', beat = beat + 1 WHERE epoch = $1 AND node = $2";
const END_SESSION: &str = "
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE pid = $1 AND datname = current_database() AND usename = current_user
       AND wait_event IS DISTINCT FROM 'SyncRep'";

const REPORT: &str = "
    INSERT INTO nodes (node, address, version, format_oldest, format_newest, applied, seen)
    VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp())
        ON CONFLICT (node) DO UPDATE SET address = excluded.address, version = excluded.version,
           format_oldest = excluded.format_oldest, format_newest = excluded.format_newest,
           applied = excluded.applied, seen = excluded.seen";
const FORGET_NODES: &str = "DELETE FROM nodes WHERE seen < clock_timestamp() - interval '1 hour'";
const REMOVE_REPORT: &str = "DELETE FROM nodes WHERE node = $1";
pub const LIVE_NODES: &str = "
    SELECT node, address, version, format_oldest, format_newest, applied,
           (extract(epoch FROM seen) * 1000)::bigint,
           greatest(0, extract(epoch FROM clock_timestamp() - seen) * 1000)::bigint
      FROM nodes WHERE seen >= clock_timestamp() - interval '10 seconds' ORDER BY node";

/// Never the newest batch that the tables have: the next one is inserted beside it, and a start
/// compares it with the tables. What is kept has no gap. Only the oldest batches
/// are looked at, because the log has no index of times.
const TRUNCATE: &str = "
    DELETE FROM log USING (
        SELECT coalesce(min(seq) FILTER (WHERE at >= clock_timestamp() - $1 * interval '1 second'),
                        max(seq) + 1) AS first_kept
          FROM (SELECT seq, at FROM log
                 WHERE seq < least((SELECT seq FROM checkpoint),
                                   (SELECT min(applied) FROM nodes
                                     WHERE seen >= clock_timestamp() - interval '1 minute'))
                 ORDER BY seq LIMIT 1000) AS oldest) AS bound
     WHERE log.seq < bound.first_kept";
/// How many batches are removed at once.
const TRUNCATE_SLICE: u64 = 1_000;
/// How long batches are kept for nodes that are away for a moment.
const LOG_KEPT: Duration = Duration::from_secs(600);
/// Replaces that time, in milliseconds. Only builds with debug assertions read it.
#[cfg(debug_assertions)]
const LOG_KEPT_VARIABLE: &str = "RIALTO_TEST_LOG_KEEP_MS";

const RAISE_FORMAT: &str = "UPDATE meta SET format = $1 WHERE format < $1";

const DATABASE_TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// How long an answer may take. Nothing here waits for a standby that has to be waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The shared log in PostgreSQL.
pub struct PostgresSharedLog {
    session: Session,
    shared: Arc<SharedRows>,
}

impl PostgresSharedLog {
    pub fn new(database: Arc<Database>, shared: Arc<SharedRows>) -> Self {
        let settings = SessionSettings {
            lock_timeout: Some(ANSWER_TIMEOUT),
            answer_timeout: Some(ANSWER_TIMEOUT),
            ..SessionSettings::default()
        };
        Self { session: Session::new(database, settings), shared }
    }
}

impl SharedLog for PostgresSharedLog {
    fn look(&mut self, query: LookQuery) -> Result<Look, StoreError> {
        let sql = if query.with_batches { BATCHES } else { HEAD };
        let (rows, state) = self.session.run_again(|connection| {
            let [rows, lease] = connection.prepare([sql, LEASE])?;
            let (client, at) = (&connection.client, sql_id(query.after.number));
            let at: Arguments<'_> = &[&at];
            connection.wait(try_join(client.query(&rows, at), client.query_one(&lease, &[])))
        })?;
        let number = |at: usize| {
            let number = state.try_get::<_, Option<i64>>(at).map_err(store_error)?;
            Ok::<_, StoreError>(number.unwrap_or(0).unsigned_abs())
        };
        let (checkpointed, newest) = (number(5)?, number(6)?);
        let lease = read_lease(&state)?;
        let format: i32 = state.try_get(7).map_err(store_error)?;
        check_format(format)?;
        self.shared.format.store(format, Ordering::Release);
        let mut look = Look { head: query.after, lease, ..Look::default() };
        let rows = rows.iter().map(LogRow::read).collect::<Result<Vec<_>, _>>()?;
        let is_at_place = check_place(query, rows.first(), newest)?;
        look.head_epoch = rows.first().filter(|_| is_at_place).map_or(0, |row| row.epoch);
        let mut bytes = 0;
        for row in rows.into_iter().skip(usize::from(is_at_place)) {
            (look.head_epoch, bytes) = (row.epoch, bytes + row.bytes());
            if query.with_batches {
                let batch = row.decode(look.head)?;
                look.head = batch.place;
                look.batches.push(batch);
            } else {
                look.head = row.place;
            }
        }
        look.has_more = query.with_batches && newest > look.head.number;
        self.shared.log_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.drop_checkpointed(checkpointed);
        Ok(look)
    }

    fn record_received(&mut self, bytes: u64) {
        self.shared.log_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn hash_of(&mut self, number: u64) -> Result<Option<ChainHash>, StoreError> {
        let number = sql_id(number);
        let rows = self.session.run_again(|connection| connection.query(HASH, &[&number]))?;
        rows.first().map(|row| read_hash(row, 0)).transpose()
    }

    fn take_lease(
        &mut self,
        seen: &Lease,
        node: NodeId,
        address: &str,
    ) -> Result<Option<Lease>, StoreError> {
        let session = self.shared.append_session.load(Ordering::Acquire);
        let (epoch, beat, node) = (sql_id(seen.epoch), sql_id(seen.beat), sql_id(node.0));
        let taken = self.session.run(|connection| {
            connection.query(TAKE_LEASE, &[&epoch, &beat, &node, &address, &session])
        })?;
        taken.first().map(read_lease).transpose()
    }

    fn beat(&mut self, lease: &Lease) -> Result<bool, StoreError> {
        let session = self.shared.append_session.load(Ordering::Acquire);
        let (epoch, node) = (sql_id(lease.epoch), sql_id(lease.node.0));
        let raised = self
            .session
            .run(|connection| connection.execute_lazily(BEAT, &[&epoch, &node, &session]))?;
        Ok(raised == 1)
    }

    fn release_lease(&mut self, lease: &Lease) -> Result<(), StoreError> {
        let (epoch, node) = (sql_id(lease.epoch), sql_id(lease.node.0));
        self.session.run(|connection| connection.execute(RELEASE_LEASE, &[&epoch, &node])).map(drop)
    }

    fn end_session_of(&mut self, lease: &Lease) -> Result<(), StoreError> {
        self.session.run(|connection| {
            let [end] = connection.prepare([END_SESSION])?;
            let session: Arguments<'_> = &[&lease.session];
            let ended = connection.client.query(&end, session);
            match connection.wait(async { Ok(ended.await) })? {
                Ok(_) => Ok(()),
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    tracing::warn!(
                        session = lease.session,
                        "the database does not let this node end the session of the last writer; \
                         let all nodes use one database user"
                    );
                    Ok(())
                }
                Err(error) => Err(store_error(error)),
            }
        })
    }

    fn report(&mut self, report: &NodeReport) -> Result<Vec<NodeRow>, StoreError> {
        let NodeReport { node, address, version, formats, applied } = report;
        let (node, applied) = (sql_id(node.0), sql_id(*applied));
        let (oldest, newest) = (i32::from(formats.0), i32::from(formats.1));
        let own: Arguments<'_> = &[&node, address, version, &oldest, &newest, &applied];
        let rows = self.session.run_again(|connection| {
            connection.execute_lazily(REPORT, own)?;
            connection.execute_lazily(FORGET_NODES, &[])?;
            connection.query(LIVE_NODES, &[])
        })?;
        rows.iter().map(read_node).collect()
    }

    fn remove_report(&mut self, node: NodeId) -> Result<(), StoreError> {
        let node = sql_id(node.0);
        self.session.run(|connection| connection.execute(REMOVE_REPORT, &[&node])).map(drop)
    }

    fn truncate(&mut self) -> Result<bool, StoreError> {
        let kept = log_kept().as_secs_f64();
        let removed =
            self.session.run_again(|connection| connection.execute_lazily(TRUNCATE, &[&kept]))?;
        Ok(removed == TRUNCATE_SLICE)
    }

    fn raise_format(&mut self, format: u8) -> Result<bool, StoreError> {
        let format = i32::from(format);
        if self.shared.format.load(Ordering::Acquire) >= format {
            return Ok(false);
        }
        let raised = self.session.run(|connection| connection.execute(RAISE_FORMAT, &[&format]))?;
        self.shared.format.store(format, Ordering::Release);
        Ok(raised == 1)
    }

    fn database_time(&mut self) -> Result<Timestamp, StoreError> {
        let row = self.session.run_again(|connection| connection.query_one(DATABASE_TIME, &[]))?;
        row.try_get(0).map(Timestamp).map_err(store_error)
    }
}

/// Whether the first row is our own place; there is none before the first batch. An error if the log
/// has another batch there, or none.
fn check_place(
    query: LookQuery,
    first: Option<&LogRow<'_>>,
    newest: u64,
) -> Result<bool, StoreError> {
    let Place { number, hash } = query.after;
    const LOST: &str = "the database lost its newest changes, or was restored from a backup; use the \
         database that has them, or stop all nodes and go on without them with `rialto cluster accept \
         --database-url URL`";
    const AWAY: &str = "this node was away for too long; restart it";
    let (found, reason) = match first {
        Some(row) if row.place == query.after => return Ok(true),
        None if number == 0 => return Ok(false),
        // Without batches only the newest is read.
        Some(row) if number == 0 && (row.place.number == 1 || !query.with_batches) => {
            return Ok(false);
        }
        Some(row) if row.place.number == number => {
            (format!("another batch {number} (hash {:?})", row.place.hash), LOST)
        }
        Some(row) if row.place.number > number => {
            (format!("no batch {number}; the next one it has is {}", row.place.number), AWAY)
        }
        _ => (format!("no batch {number}; its newest is {newest}"), LOST),
    };
    Err(StoreError::LostPlace(format!(
        "this node is at batch {number} (hash {hash:?}), and the log has {found}: {reason}"
    )))
}

fn read_lease(row: &Row) -> Result<Lease, StoreError> {
    let number = |at: usize| row.try_get::<_, i64>(at).map(i64::unsigned_abs).map_err(store_error);
    Ok(Lease {
        epoch: number(0)?,
        node: NodeId(number(1)?),
        address: row.try_get(2).map_err(store_error)?,
        session: row.try_get(3).map_err(store_error)?,
        beat: number(4)?,
    })
}

/// A node as it has reported itself.
pub fn read_node(row: &Row) -> Result<NodeRow, StoreError> {
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(store_error);
    let text = |at: usize| row.try_get::<_, String>(at).map_err(store_error);
    let format = |at: usize| {
        let format: i32 = row.try_get(at).map_err(store_error)?;
        Ok::<_, StoreError>(u8::try_from(format).unwrap_or(u8::MAX))
    };
    let report = NodeReport {
        node: NodeId(number(0)?.unsigned_abs()),
        address: text(1)?,
        version: text(2)?,
        formats: (format(3)?, format(4)?),
        applied: number(5)?.unsigned_abs(),
    };
    let (seen_at, silent_ms) = (Timestamp(number(6)?), number(7)?.unsigned_abs());
    Ok(NodeRow { report, seen_at, silent_ms })
}

#[cfg(debug_assertions)]
fn log_kept() -> Duration {
    let text = std::env::var(LOG_KEPT_VARIABLE).ok();
    text.and_then(|text| text.parse().ok()).map_or(LOG_KEPT, Duration::from_millis)
}

#[cfg(not(debug_assertions))]
const fn log_kept() -> Duration {
    LOG_KEPT
}
