//! A real PostgreSQL for tests.
//!
//! [`TestDatabase`] is a schema of its own on a server that all tests of a process share.
//! [`PrivatePostgres`] is a server of its own, for tests that crash or pause it or fail over.
//!
//! The shared server is the one of `RIALTO_TEST_DATABASE_URL` if that is set. Otherwise each test
//! process starts its own when a test first asks for it. That takes about 0.7 s, most of it
//! `initdb`, so a server for a whole run of `cargo xtask test` would save little and be a second
//! implementation; xtask only installs the programs. A server listens on a Unix socket that only
//! its user can reach; a private one also on loopback, with a password.
//!
//! No server outlives its test process, even if that is killed: `local_postgres::server` says how.
//!
//! `fsync` is off only where `RIALTO_TEST_ALLOW_FSYNC_OFF` is 1, as in `cargo xtask test`, because
//! the store refuses such a server otherwise.

mod private;
mod server;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::skip_test;
use crate::local_postgres::{Listen, Programs, Server, command};

pub use private::{PrivatePostgres, Replication, ServerOptions};

/// Connections at the same time: every test of a process has several.
const CONNECTIONS_MAX: u32 = 400;
/// Settings of the shared server: little memory, and nothing that needs time in the background.
const SHARED_SETTINGS: [(&str, &str); 3] =
    [("shared_buffers", "32MB"), ("wal_level", "minimal"), ("max_wal_senders", "0")];
/// How long dropping a schema waits for a connection that a test has left open.
const DROP_TIMEOUT: &str = "2s";
/// The longest part of a test's name in the name of its schema. PostgreSQL cuts names at 63 bytes.
const SHORT_NAME_MAX: usize = 32;

/// An unused schema name for one test. The schema is dropped with this value, so keep it longer
/// than the connections that use it.
#[derive(Debug)]
pub struct TestDatabase {
    server: &'static str,
    schema: String,
}

impl TestDatabase {
    /// A schema that does not exist yet, for one test. `None` if PostgreSQL is not installed: the
    /// test is then reported as skipped and returns. Panics instead where `CI` is set.
    pub fn create(test_name: &str) -> Option<Self> {
        let Some(server) = shared_server() else {
            skip(test_name);
            return None;
        };
        Some(Self { server, schema: unused_schema(test_name) })
    }

    /// The URL to connect to, with the parameter `schema`, which our store reads.
    pub fn url(&self) -> String {
        with_schema(self.server, &self.schema)
    }

    /// The URL without `schema`, for other clients.
    pub fn server_url(&self) -> &str {
        self.server
    }

    /// The name of the schema.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Runs SQL with `psql`, with the schema as `search_path`. Returns the unaligned rows.
    pub fn run_sql(&self, sql: &str) -> Result<String, String> {
        run_psql(self.server, &[&format!("SET search_path = {}", self.schema), sql])
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let timeout = format!("SET lock_timeout = '{DROP_TIMEOUT}'");
        let quiet = "SET client_min_messages = warning";
        let remove = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        if let Err(error) = run_psql(self.server, &[&timeout, quiet, &remove]) {
            eprintln!("schema {} is left behind: {error}", self.schema);
        }
    }
}

/// The URL of the server that the tests of this process share.
fn shared_server() -> Option<&'static str> {
    // Never dropped: the server stops when this process ends and the pipe to it closes.
    static SERVER: OnceLock<Option<(String, Option<Server>)>> = OnceLock::new();
    let found = SERVER.get_or_init(|| {
        let given = std::env::var("RIALTO_TEST_DATABASE_URL").ok().filter(|url| !url.is_empty());
        if let Some(url) = given {
            return Some((url, None));
        }
        let programs = Programs::find().ok()?;
        let server = server::create_server(programs, Listen::Socket, false, &SHARED_SETTINGS, &[]);
        Some((server.url(), Some(server)))
    });
    found.as_ref().map(|(url, _)| url.as_str())
}

/// A schema name that no other test uses, on this machine or another.
fn unused_schema(test_name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // A server that is not ours may still have the schema of a killed process with the same id.
    let unique = getrandom::u32().expect("the system has random numbers");
    let name = test_name.rsplit("::").next().unwrap_or(test_name);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let short: String = name.to_ascii_lowercase().chars().map(plain).take(SHORT_NAME_MAX).collect();
    format!("t{}_{count}_{unique:08x}_{short}", std::process::id())
}

fn with_schema(url: &str, schema: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}schema={schema}")
}

/// Runs statements one after the other, each as a transaction of its own, until one fails.
fn run_psql(url: &str, statements: &[&str]) -> Result<String, String> {
    let mut psql = command(psql());
    psql.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--no-password"]);
    psql.args(["--set=ON_ERROR_STOP=1", "--dbname", url]).env("PGCONNECT_TIMEOUT", "30");
    for statement in statements {
        psql.args(["--command", statement]);
    }
    let output = psql.stdin(Stdio::null()).output().map_err(|error| format!("psql: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The client: beside the server's programs, or on the path.
fn psql() -> PathBuf {
    let beside = Programs::find().ok().map(|programs| programs.path("psql"));
    beside.filter(|psql| psql.is_file()).unwrap_or_else(|| "psql".into())
}

/// Reports that a test needs a server and there is none.
fn skip(test_name: &str) {
    skip_test(
        test_name,
        "PostgreSQL",
        "install it with `apt-get install postgresql`, or set RIALTO_TEST_DATABASE_URL",
    );
}

/// Whether the store accepts a server that may lose commits.
fn may_skip_fsync() -> bool {
    std::env::var("RIALTO_TEST_ALLOW_FSYNC_OFF").is_ok_and(|value| value == "1")
}
