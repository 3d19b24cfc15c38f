//! The database of a hub, for commands of its operator: reading and writing it as a whole.

use std::sync::Arc;

use super::session::{Connection, Session, SessionSettings, store_error};
use super::url::Database;
use super::{copy, schema, shared_log};
use crate::cluster::NodeRow;
use crate::store::StoreError;

pub use super::log_check::LogCheck;

/// A session with a database that has a hub, or may get one.
pub struct DatabaseAdmin {
    session: Session,
    database: Arc<Database>,
}

impl DatabaseAdmin {
    /// Connects to a database, whether or not it has a hub.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        let database = Arc::new(Database::parse(url)?);
        // No timeout for answers: large tables take time, and a commit may wait for a standby.
        let mut session = Session::new(database.clone(), SessionSettings::default());
        session.connect()?;
        Ok(Self { session, database })
    }

    /// Connects to a database that has a hub.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let mut admin = Self::connect(url)?;
        match admin.has_hub()? {
            true => Ok(admin),
            false => Err(StoreError::Missing(admin.name())),
        }
    }

    /// Runs work that may be repeated.
    pub(super) fn run<R>(
        &mut self,
        work: impl FnMut(&mut Connection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        self.session.run_again(work)
    }

    /// What it is called in messages and in the marker of a backup. Has no password.
    pub fn name(&self) -> String {
        let database = self.database.config.get_dbname().unwrap_or("its default database");
        format!("the schema {} of {database} in PostgreSQL", self.database.schema)
    }

    pub fn has_hub(&mut self) -> Result<bool, StoreError> {
        let Self { session, database } = self;
        session.run_again(|connection| schema::exists(connection, &database.schema))
    }

    /// Copies the hub into an empty SQLite database, as of one moment, also while nodes run.
    pub fn read_into(&mut self, db: &rusqlite::Connection) -> Result<LogCheck, StoreError> {
        self.session.run(|connection| copy::read_into(connection, db))
    }

    /// Creates the hub from a SQLite database that is complete by itself, in one transaction. It is
    /// committed only if `accept` finds what was written, read back into `again`, to be right.
    pub fn write_from<E: From<StoreError>>(
        &mut self,
        db: &rusqlite::Connection,
        again: &rusqlite::Connection,
        secret_check: Option<[u8; 32]>,
        accept: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { session, database } = self;
        let connection = session.connect()?;
        schema::check_server(connection)?;
        connection.run_script("BEGIN")?;
        let written = write_in_transaction(connection, db, again, (&database.schema, secret_check))
            .map_err(E::from)
            .and_then(|()| accept())
            .and_then(|()| connection.run_script("COMMIT").map_err(E::from));
        // The end of its connection rolls back what is not committed.
        session.disconnect();
        written
    }

    /// The nodes that have reported in the last ten seconds.
    pub fn live_nodes(&mut self) -> Result<Vec<NodeRow>, StoreError> {
        let rows =
            self.session.run_again(|connection| connection.query(shared_log::LIVE_NODES, &[]))?;
        rows.iter().map(shared_log::read_node).collect()
    }

    /// What the first node has stored to recognize the hub's secret.
    pub fn secret_check(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT secret_check FROM meta";
        let row = self.session.run_again(|connection| connection.query_one(sql, &[]))?;
        row.try_get(0).map_err(store_error)
    }
}

fn write_in_transaction(
    connection: &mut Connection,
    db: &rusqlite::Connection,
    again: &rusqlite::Connection,
    (schema_name, secret_check): (&str, Option<[u8; 32]>),
) -> Result<(), StoreError> {
    copy::write_from(connection, db, schema_name)?;
    if let Some(check) = secret_check {
        schema::check_secret(connection, check)?;
    }
    let log = copy::read_in_transaction(connection, again)?;
    match log.problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => {
            Err(StoreError::Failed(format!("the copy of the log is wrong: {problem}")))
        }
    }
}
