//! What a database is configured to lose, and how the hub in it is.

use rialto_core::time::Timestamp;
use tokio_postgres::Row;

use super::admin::DatabaseAdmin;
use super::session::{Connection, store_error};
use super::shared_log::{LIVE_NODES, read_node};
use crate::cluster::NodeRow;
use crate::store::StoreError;

/// The server and its settings.
#[derive(Clone, Debug, Default)]
pub struct ServerReport {
    pub version: String,
    pub fsync: String,
    pub full_page_writes: String,
    /// The server's default; nodes raise `off` and `local` to `on` for themselves.
    pub synchronous_commit: String,
    pub synchronous_standby_names: String,
    pub wal_level: String,
    pub data_checksums: String,
    /// It replicates below PostgreSQL, where no setting shows it.
    pub is_aurora: bool,
    pub standbys: Vec<Standby>,
    pub connections: u64,
    pub connections_max: u64,
    /// The server's clock at some moment while it was asked.
    pub clock: Timestamp,
}

/// A server that follows this one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standby {
    pub name: String,
    /// `sync`, `quorum`, `potential` or `async`; `None` if this user may not see it.
    pub sync_state: Option<String>,
}

/// The hub in the database.
#[derive(Clone, Debug, Default)]
pub struct HubReport {
    pub nodes: Vec<NodeRow>,
    /// The node that has the lease; 0 for none.
    pub writer: u64,
    pub epoch: u64,
    /// The newest batch, the one up to which the tables are complete, and the oldest that is kept.
    pub head: u64,
    pub checkpoint: u64,
    pub oldest: u64,
    /// The size of the log on disk, and of everything in the schema.
    pub log_bytes: u64,
    pub bytes: u64,
    /// The format of its batches.
    pub format: i32,
}

const SERVER: &str = "
    SELECT current_setting('server_version'), current_setting('fsync'),
           current_setting('full_page_writes'),
           (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
           current_setting('synchronous_standby_names'), current_setting('wal_level'),
           current_setting('data_checksums'), to_regproc('aurora_version') IS NOT NULL,
           (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
           current_setting('max_connections')::bigint,
           (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
const STANDBYS: &str = "
    SELECT coalesce(application_name, ''), sync_state FROM pg_stat_replication
     WHERE state IS DISTINCT FROM 'backup' ORDER BY 1";
const HUB: &str = "
    SELECT lease.node, lease.epoch, checkpoint.seq, meta.format,
           (SELECT coalesce(max(seq), 0) FROM log), (SELECT coalesce(min(seq), 0) FROM log),
           pg_total_relation_size('log'),
           (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
             WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r')
      FROM lease, checkpoint, meta";

impl DatabaseAdmin {
    /// The server's settings.
    pub fn inspect_server(&mut self) -> Result<ServerReport, StoreError> {
        self.run(|connection| {
            let row = connection.query_one(SERVER, &[])?;
            let text = |at: usize| {
                let text: Option<String> = row.try_get(at).map_err(store_error)?;
                Ok::<_, StoreError>(text.unwrap_or_default())
            };
            let clock: i64 = row.try_get(10).map_err(store_error)?;
            Ok(ServerReport {
                version: text(0)?,
                fsync: text(1)?,
                full_page_writes: text(2)?,
                synchronous_commit: text(3)?,
                synchronous_standby_names: text(4)?,
                wal_level: text(5)?,
                data_checksums: text(6)?,
                is_aurora: row.try_get(7).map_err(store_error)?,
                standbys: read_standbys(connection)?,
                connections: number(&row, 8)?,
                connections_max: number(&row, 9)?,
                clock: Timestamp(clock),
            })
        })
    }

    /// The hub's nodes and log.
    pub fn inspect_hub(&mut self) -> Result<HubReport, StoreError> {
        self.run(|connection| {
            let row = connection.query_one(HUB, &[])?;
            let nodes = connection.query(LIVE_NODES, &[])?;
            Ok(HubReport {
                nodes: nodes.iter().map(read_node).collect::<Result<_, _>>()?,
                writer: number(&row, 0)?,
                epoch: number(&row, 1)?,
                checkpoint: number(&row, 2)?,
                format: row.try_get(3).map_err(store_error)?,
                head: number(&row, 4)?,
                oldest: number(&row, 5)?,
                log_bytes: number(&row, 6)?,
                bytes: number(&row, 7)?,
            })
        })
    }
}

fn read_standbys(connection: &mut Connection) -> Result<Vec<Standby>, StoreError> {
    let rows = connection.query(STANDBYS, &[])?;
    let read = |row: &Row| {
        let name = row.try_get(0).map_err(store_error)?;
        Ok(Standby { name, sync_state: row.try_get(1).map_err(store_error)? })
    };
    rows.iter().map(read).collect()
}

fn number(row: &Row, at: usize) -> Result<u64, StoreError> {
    row.try_get::<_, i64>(at).map(i64::unsigned_abs).map_err(store_error)
}
