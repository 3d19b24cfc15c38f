//! Servers of one test, which can be crashed, paused and replicated.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::server::{copy_server, create_server, free_port};
use super::{run_psql, skip, with_schema};
use crate::local_postgres::{self, Listen, Programs, Server, USER, process_entry, quoted};

/// How long replication and settings may take to become effective.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// How a private server runs.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Whether a commit survives a power cut. A crash of the server alone loses nothing either way.
    /// `false` has an effect only where `RIALTO_TEST_ALLOW_FSYNC_OFF` is 1.
    pub fsync: bool,
    /// Further settings, as in `postgresql.conf`; values are quoted for you.
    pub settings: Vec<(String, String)>,
    /// More environment of the server's processes, and of its standbys.
    pub env: Vec<(String, String)>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let settings = vec![("shared_buffers".to_owned(), "32MB".to_owned())];
        Self { fsync: true, settings, env: Vec::new() }
    }
}

/// Whether a commit waits for the standby.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// A commit is acknowledged after the standby has it on disk: a fail-over loses nothing.
    Synchronous,
    /// The standby follows later: a fail-over can lose commits.
    Asynchronous,
}

/// A server of its own for one test. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct PrivatePostgres {
    server: Server,
    standbys: AtomicU32,
}

impl PrivatePostgres {
    /// A new server that runs. `None` if PostgreSQL is not installed: the test is then reported as
    /// skipped and returns. Panics instead where `CI` is set.
    pub fn start(test_name: &str, options: &ServerOptions) -> Option<Self> {
        let Ok(programs) = Programs::find() else {
            skip(test_name);
            return None;
        };
        let ServerOptions { fsync, settings, env } = options;
        let listen = Listen::Loopback(free_port());
        let server = create_server(programs, listen, *fsync, settings, env);
        Some(Self { server, standbys: AtomicU32::new(0) })
    }

    /// The URL on the Unix socket, with our parameter `schema`. It stays the same over restarts.
    pub fn url(&self, schema: &str) -> String {
        with_schema(&self.server.url(), schema)
    }

    /// The URL on loopback, with a password.
    pub fn tcp_url(&self, schema: &str) -> String {
        self.tcp_url_through(self.port(), schema)
    }

    /// The URL on loopback at another port, where a proxy of the test listens.
    pub fn tcp_url_through(&self, port: u16, schema: &str) -> String {
        let password = &self.server.password;
        with_schema(&format!("postgresql://{USER}:{password}@127.0.0.1:{port}/postgres"), schema)
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// Whether it was started, not stopped, and has not ended by itself.
    pub fn is_running(&self) -> bool {
        self.server.process().is_some() && !self.server.has_ended()
    }

    /// Ends the server at once, as a crash does, and waits until it has ended. What was committed
    /// is recovered at the next start.
    pub fn crash(&self) {
        let Some(server) = self.server.process() else { return };
        // A server that is asked to end waits up to a minute for a client whose packets are lost.
        // It is stopped first, so that it starts no further child.
        self.signal("STOP", &[server]);
        let children = children_of(server);
        self.signal("KILL", &children);
        // The next start is refused while a child still has the shared memory.
        let has_ended =
            |process: &u32| process_entry(*process).is_none_or(|entry| entry.state == 'Z');
        self.wait_for("the end of the server's processes", || Ok(children.iter().all(has_ended)))
            .unwrap_or_else(|error| panic!("{error}"));
        self.server.stop("KILL").expect("the shell runs");
    }

    /// Ends all connections, writes a checkpoint and stops.
    pub fn stop(&self) {
        self.resume();
        self.server.stop("INT").expect("the shell runs");
    }

    /// Starts the server again after `crash` or `stop`; a running one is stopped first.
    pub fn restart(&self) {
        self.stop();
        self.server.start().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Stops every process of the server where it is, until `resume`. Connections stay open.
    pub fn pause(&self) {
        let Some(server) = self.server.process() else { return };
        // The parent first, because it starts children.
        self.signal("STOP", &[server]);
        self.signal("STOP", &children_of(server));
    }

    /// Lets a paused server go on.
    pub fn resume(&self) {
        let Some(server) = self.server.process() else { return };
        self.signal("CONT", &children_of(server));
        self.signal("CONT", &[server]);
    }

    /// Changes a setting that needs no restart, and waits until new sessions have it.
    pub fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let loaded = "SELECT pg_conf_load_time()";
        let before = self.run_sql(loaded)?;
        let change = format!("ALTER SYSTEM SET {name} = {}", quoted(value));
        run_psql(&self.server.url(), &[&change, "SELECT pg_reload_conf()"])?;
        self.wait_for("the settings to be read", || Ok(self.run_sql(loaded)? != before))
    }

    /// Runs SQL with `psql` as the superuser. Returns the unaligned rows, or the error.
    pub fn run_sql(&self, sql: &str) -> Result<String, String> {
        run_psql(&self.server.url(), &[sql])
    }

    /// A server that follows this one, and runs.
    pub fn standby(&self, replication: Replication) -> Self {
        let name = format!("standby_{}", self.standbys.fetch_add(1, Ordering::Relaxed));
        let (sockets, port) = (self.server.sockets().display(), self.port());
        let primary = format!("host={sockets} port={port} user={USER} application_name={name}");
        let server = copy_server(&self.server, |standby| {
            let mut copy = standby.programs.command("pg_basebackup");
            copy.args(["--dbname", &primary, "--write-recovery-conf", "--no-sync"]);
            copy.args(["--checkpoint=fast", "--wal-method=stream", "--no-password"]);
            local_postgres::run(copy.arg("--pgdata").arg(standby.data()))
                .unwrap_or_else(|error| panic!("{error}"));
        });
        let expected = match replication {
            Replication::Asynchronous => "state = 'streaming'",
            Replication::Synchronous => {
                self.set("synchronous_standby_names", &name).expect("the primary runs");
                "sync_state = 'sync'"
            }
        };
        let follows = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{name}' AND {expected}"
        );
        self.wait_for("the standby to follow", || Ok(self.run_sql(&follows)? == "1"))
            .expect("the primary runs");
        Self { server, standbys: AtomicU32::new(0) }
    }

    /// Makes a standby a server of its own that accepts writes.
    pub fn promote(&self) -> Result<(), String> {
        match self.run_sql("SELECT pg_promote(true, 60)")?.as_str() {
            "t" => Ok(()),
            _ => Err("the standby was not promoted within 60 s".to_owned()),
        }
    }

    fn wait_for(
        &self,
        event: &str,
        has_come: impl Fn() -> Result<bool, String>,
    ) -> Result<(), String> {
        let deadline = Instant::now() + WAIT_TIMEOUT;
        while !has_come()? {
            if Instant::now() > deadline {
                return Err(format!("waited for {event} for {} s", WAIT_TIMEOUT.as_secs()));
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        Ok(())
    }

    fn signal(&self, signal: &str, processes: &[u32]) {
        if processes.is_empty() {
            return;
        }
        // The shell's own `kill`: not every machine has the program. A child may have ended.
        let mut kill = Command::new("sh");
        kill.args(["-c", r#"signal=$1; shift; kill -"$signal" "$@""#, "sh", signal]);
        kill.args(processes.iter().map(u32::to_string)).stderr(Stdio::null());
        kill.status().expect("sh starts");
    }
}

/// The children of a process, where `/proc` exists.
fn children_of(parent: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child =
        |process: &u32| process_entry(*process).is_some_and(|entry| entry.parent == parent);
    processes.filter(is_child).collect()
}
