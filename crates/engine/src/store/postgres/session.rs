//! Sessions: one connection each, made when it is needed and again after an error.
//!
//! A session belongs to one thread at a time. The connection has a runtime of its own, which runs
//! only while that thread waits for an answer, so the traits of the store stay blocking.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{try_join_all, try_join3};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, SimpleQueryMessage, Statement};

use super::url::{Database, chain};
use crate::store::StoreError;

/// How long making a connection may take, with TLS and authentication.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The arguments of a statement.
pub type Arguments<'a> = &'a [&'a (dyn ToSql + Sync)];

/// What is special about a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionSettings {
    /// How long a statement waits for a lock.
    pub lock_timeout: Option<Duration>,
    /// How long the database lets the session sit in a transaction.
    pub idle_in_transaction_timeout: Option<Duration>,
    /// How long to wait for an answer. `None` where the database may have to wait for a standby.
    pub answer_timeout: Option<Duration>,
}

/// A session with the database, connected or not.
pub struct Session {
    database: Arc<Database>,
    settings: SessionSettings,
    connection: Option<Connection>,
}

impl Session {
    pub fn new(database: Arc<Database>, settings: SessionSettings) -> Self {
        Self { database, settings, connection: None }
    }

    /// The connection, made now if there is none.
    pub fn connect(&mut self) -> Result<&mut Connection, StoreError> {
        if self.connection.as_ref().is_some_and(|connection| connection.client.is_closed()) {
            self.connection = None;
        }
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => Ok(none.insert(Connection::open(&self.database, self.settings)?)),
        }
    }

    /// Closes the connection. The next use makes a new one.
    pub fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Runs work on the connection, and closes it after an error: it may be in a transaction, or
    /// the database may be gone.
    pub fn run<R>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let result = work(self.connect()?);
        if result.is_err() {
            self.disconnect();
        }
        result
    }

    /// Runs work that may be repeated, a second time if the connection turns out to be lost.
    pub fn run_again<R>(
        &mut self,
        mut work: impl FnMut(&mut Connection) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let is_new = self.connection.is_none();
        match self.run(&mut work) {
            Err(StoreError::Unreachable(_)) if !is_new => self.run(work),
            result => result,
        }
    }
}

/// An open connection.
pub struct Connection {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    pub client: Client,
    statements: HashMap<&'static str, Statement>,
    /// The process id of the session in the database.
    pub pid: i32,
    answer_timeout: Option<Duration>,
}

impl Connection {
    fn open(database: &Database, settings: SessionSettings) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        let connect = async {
            let (client, connection) = database.config.connect(database.tls.clone()).await?;
            tokio::spawn(async move {
                // A caller that waits for an answer gets the error too.
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "the connection to the database ended");
                }
            });
            let found = client.simple_query(&set_up(&database.schema, settings)).await?;
            Ok((client, found))
        };
        let (client, found) = runtime.block_on(with_timeout(Some(CONNECT_MAX), connect))?;
        let pid = found.iter().rev().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get("pid").and_then(|pid| pid.parse().ok()),
            _ => None,
        });
        let SessionSettings { answer_timeout, .. } = settings;
        let pid = pid.ok_or_else(|| StoreError::Failed("a session has no id".to_owned()))?;
        let statements = HashMap::new();
        Ok(Self { runtime: Some(runtime), client, statements, pid, answer_timeout })
    }

    /// Waits for answers.
    pub fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        let runtime = self.runtime.as_ref().expect("it is taken only by drop");
        runtime.block_on(with_timeout(self.answer_timeout, work))
    }

    /// Prepared statements, in one flight for all that are new.
    pub fn prepare<const N: usize>(
        &mut self,
        sql: [&'static str; N],
    ) -> Result<[Statement; N], StoreError> {
        self.prepare_all(&sql)?;
        Ok(sql.map(|sql| self.statements[sql].clone()))
    }

    /// Prepares what is not prepared yet.
    pub fn prepare_all(&mut self, sql: &[&'static str]) -> Result<(), StoreError> {
        let mut new: Vec<_> =
            sql.iter().filter(|sql| !self.statements.contains_key(**sql)).collect();
        if new.is_empty() {
            return Ok(());
        }
        new.sort();
        new.dedup();
        let prepared = self.wait(try_join_all(new.iter().map(|sql| self.client.prepare(sql))))?;
        self.statements.extend(new.into_iter().copied().zip(prepared));
        Ok(())
    }

    /// A statement that was prepared before.
    pub fn prepared(&self, sql: &'static str) -> &Statement {
        &self.statements[sql]
    }

    /// The rows of one statement.
    pub fn query(
        &mut self,
        sql: &'static str,
        arguments: Arguments<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let [statement] = self.prepare([sql])?;
        self.wait(self.client.query(&statement, arguments))
    }

    /// The only row of one statement.
    pub fn query_one(
        &mut self,
        sql: &'static str,
        arguments: Arguments<'_>,
    ) -> Result<Row, StoreError> {
        let mut rows = self.query(sql, arguments)?;
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            _ => Err(StoreError::Corrupt(format!("not exactly one row for: {sql}"))),
        }
    }

    /// How many rows one statement changed.
    pub fn execute(
        &mut self,
        sql: &'static str,
        arguments: Arguments<'_>,
    ) -> Result<u64, StoreError> {
        let [statement] = self.prepare([sql])?;
        self.wait(self.client.execute(&statement, arguments))
    }

    /// The same for a statement whose effect may be lost in a crash of the database, so that it does
    /// not wait for the disk or a standby. In one flight.
    pub fn execute_lazily(
        &mut self,
        sql: &'static str,
        arguments: Arguments<'_>,
    ) -> Result<u64, StoreError> {
        const BEGIN: &str = "BEGIN; SET LOCAL synchronous_commit = off";
        let [statement] = self.prepare([sql])?;
        let client = &self.client;
        let (_, changed, _) = self.wait(try_join3(
            client.batch_execute(BEGIN),
            client.execute(&statement, arguments),
            client.batch_execute("COMMIT"),
        ))?;
        Ok(changed)
    }

    /// Statements without arguments or rows.
    pub fn run_script(&self, sql: &str) -> Result<(), StoreError> {
        self.wait(self.client.batch_execute(sql))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Closes the socket. A plain drop would panic on a thread that runs another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Everything a session begins with. Its last row has the process id. Commits are made durable
/// whatever the server's default; a stronger setting stays. Rows are found by index only: a plan
/// that was made while a table was small would read all of it later too, until the server analyses
/// the table.
fn set_up(schema: &str, settings: SessionSettings) -> String {
    let millis = |timeout: Option<Duration>| timeout.unwrap_or_default().as_millis();
    let lock = millis(settings.lock_timeout);
    let idle = millis(settings.idle_in_transaction_timeout);
    format!(
        "SET search_path = {schema};
         SET statement_timeout = 0;
         SET lock_timeout = {lock};
         SET idle_in_transaction_session_timeout = {idle};
         SET default_transaction_isolation = 'read committed';
         SET jit = off;
         SET enable_seqscan = off;
         SET enable_bitmapscan = off;
         SET enable_hashjoin = off;
         SET enable_mergejoin = off;
         SELECT set_config('synchronous_commit', 'on', false)
          WHERE current_setting('synchronous_commit') IN ('off', 'local');
         SELECT pg_backend_pid() AS pid"
    )
}

async fn with_timeout<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    let Some(limit) = limit else { return work.await.map_err(store_error) };
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result.map_err(store_error),
        Err(_) => {
            Err(StoreError::Unreachable(format!("no answer for {} seconds", limit.as_secs())))
        }
    }
}

/// Converts an error of the database.
pub fn store_error(error: tokio_postgres::Error) -> StoreError {
    let Some(answer) = error.as_db_error() else {
        let is_io =
            std::error::Error::source(&error).is_some_and(|cause| cause.is::<std::io::Error>());
        let text = chain(&error);
        // A timeout has neither cause nor code.
        return if is_io || error.is_closed() || text.starts_with("timeout") {
            StoreError::Unreachable(text)
        } else {
            StoreError::Failed(text)
        };
    };
    let code = answer.code();
    // A server that panics may have written what it was asked to commit.
    let has_crashed = answer.parsed_severity() == Some(Severity::Panic);
    let detail = answer.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    let text = format!("{}{detail} (SQLSTATE {})", answer.message(), code.code());
    if has_crashed { StoreError::Unreachable(text) } else { code_error(code, text) }
}

/// What an error code of the database means for the store.
pub fn code_error(code: &SqlState, text: String) -> StoreError {
    match code.code() {
        "53100" => StoreError::Full,
        "55P03" => StoreError::Locked(text),
        // A standby, or a server that is being replaced by its standby.
        "25006" => StoreError::Unreachable(text),
        // A session that was idle in a transaction for too long.
        "25P03" => StoreError::Unreachable(text),
        code if ["08", "53", "57"].iter().any(|class| code.starts_with(class)) => {
            StoreError::Unreachable(text)
        }
        "40001" | "40P01" => StoreError::Unreachable(text),
        _ => StoreError::Failed(text),
    }
}
