//! The nodes of a cluster for development: child processes that are restarted when they end.
//!
//! A node stops when its standard input is closed. So no node outlives this process, even if it is
//! killed.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use rialto_hub::shutdown::Shutdown;

use crate::commands::output;

/// The pause before a node is started again.
const RESTART_DELAY: Duration = Duration::from_secs(1);
/// How long a node may take to stop before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// How much of the end of a node's log is searched for its last words.
const LOG_LINES_MAX: usize = 50;

/// What all nodes are started with.
pub struct NodeSettings {
    pub data: PathBuf,
    pub database_url: String,
    pub public_url: String,
    pub operator_key: String,
    /// Further settings, as key=value.
    pub set: Vec<String>,
}

/// One node.
pub struct Node {
    pub number: u8,
    pub address: SocketAddr,
    /// Its process at the moment; 0 while there is none.
    process: AtomicU32,
    settings: Arc<NodeSettings>,
}

impl Node {
    pub fn new(number: u8, address: SocketAddr, settings: Arc<NodeSettings>) -> Arc<Self> {
        Arc::new(Self { number, address, process: AtomicU32::new(0), settings })
    }

    /// The node's process.
    pub fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    /// What belongs to this node alone.
    pub fn dir(&self) -> PathBuf {
        self.settings.data.join(format!("node-{}", self.number))
    }

    pub fn log_path(&self) -> PathBuf {
        self.settings.data.join(format!("node-{}.log", self.number))
    }

    /// Runs the node, and starts it again whenever it ends. Until the cluster has started, an end
    /// is an error, and its reason is returned.
    pub async fn run(
        self: Arc<Self>,
        shutdown: Shutdown,
        has_started: Arc<AtomicBool>,
    ) -> Result<(), String> {
        let mut last_end: Option<String> = None;
        loop {
            let mut child = self.spawn().map_err(|error| self.describe(&error.to_string()))?;
            // Waiting for the child would close its standard input.
            let stdin = child.stdin.take();
            let process = child.id().unwrap_or(0);
            self.process.store(process, Ordering::Relaxed);
            if let Some(end) = last_end {
                let line = self.describe(&format!("{end}; restarted as process {process}"));
                output::print_stderr(&line);
            }
            let end = tokio::select! {
                ended = child.wait() => ended.map_or_else(|error| error.to_string(), describe_end),
                () = shutdown.wait() => {
                    drop(stdin);
                    stop(child).await;
                    return Ok(());
                }
            };
            self.process.store(0, Ordering::Relaxed);
            if !has_started.load(Ordering::Relaxed) {
                let reason = last_error(&self.log_path()).unwrap_or(end);
                return Err(self.describe(&reason));
            }
            tokio::select! {
                () = sleep(RESTART_DELAY) => last_end = Some(end),
                () = shutdown.wait() => return Ok(()),
            }
        }
    }

    fn describe(&self, text: &str) -> String {
        output::escape_line(&format!("node {}: {text}", self.number))
    }

    fn spawn(&self) -> io::Result<Child> {
        let NodeSettings { database_url, public_url, operator_key, set, .. } = &*self.settings;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--dev-settings", "--stop-with-stdin", "--listen"]);
        command.arg(self.address.to_string()).arg("--data").arg(self.dir());
        command.args(["--public-url", public_url]);
        command.args(set.iter().flat_map(|pair| ["--set", pair]));
        // Not as arguments: every user of the machine can read those.
        command.env("RIALTO_STORE__DATABASE_URL", database_url);
        command.env("RIALTO_OPERATOR_KEY", operator_key);
        command.env("RIALTO_CLUSTER__LISTEN", "127.0.0.1:0");
        let log: File = OpenOptions::new().create(true).append(true).open(self.log_path())?;
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C is for this process, which stops the nodes.
        #[cfg(unix)]
        command.process_group(0);
        command.kill_on_drop(true).spawn()
    }
}

/// Waits for a node whose standard input is closed, and kills it if it does not stop.
async fn stop(mut child: Child) {
    if timeout(STOP_TIMEOUT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// An address on loopback that is free now.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn describe_end(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("ended by signal {signal}");
    }
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "ended".to_owned(),
    }
}

/// The last error that a node has printed.
fn last_error(log: &Path) -> Option<String> {
    let text = std::fs::read_to_string(log).ok()?;
    let mut lines = text.lines().rev().take(LOG_LINES_MAX);
    lines.find_map(|line| line.strip_prefix("rialto: ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_node_are_found_in_its_log() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(last_error(file.path()), None);
        std::fs::write(file.path(), "{\"level\":\"INFO\"}\nrialto: first\nrialto: no database\n")
            .expect("written");
        assert_eq!(last_error(file.path()).as_deref(), Some("no database"));
    }
}
