//! Three nodes on one PostgreSQL, with a proxy in front of every connection between them.
//!
//! A node is reached by the others at its proxy, and reaches the database through another one, so
//! that each link can be cut, delayed or made one-way by itself. The same traffic also runs against
//! one hub on SQLite, which has no links.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rialto_core::encoding::BATCH_VERSION;
use rialto_engine::cluster::hop::proxy::LinkProxy;
use rialto_engine::testkit::postgres::{PrivatePostgres, Replication, ServerOptions};
use serde_json::Value;
use tempfile::TempDir;

use super::disk::FaultyDisk;
use super::node::{Node, NodeOptions, binary, free_address};
use crate::crash::flags;
use crate::kit::{http_builder, operator_key, output};

/// The nodes of a cluster.
pub const NODES: usize = 3;
/// How long a writer may show no sign of life. Short, so that a round is.
pub const LEASE: Duration = Duration::from_millis(800);
/// The schema of the hub in the database.
pub const SCHEMA: &str = "cluster";
/// A throw-away secret of the tests' hubs: the same digits everywhere, so not one to use elsewhere.
const TEST_SECRET: &str = "7e577e577e577e577e577e577e577e577e577e577e577e577e577e577e577e57";
/// What nodes log: not every request and every change.
const LOG_FILTER: &str = "info,rialto::access=warn,rialto_engine::run::event_log=warn";
/// How long nodes may take to be ready, however busy the machine is.
const READY_TIMEOUT: Duration = Duration::from_secs(90);
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// How long a node may be silent before the others write a format that it may not know.
const FORMAT_WAIT: Duration = Duration::from_secs(10);
/// How long a request may take before the client asks another node.
pub const REQUEST_TIMEOUT: Duration = Duration::from_millis(2_500);

/// What differs between clusters.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    pub nodes: usize,
    pub lease: Duration,
    /// More environment of every node.
    pub env: Vec<(String, String)>,
    pub server: ServerOptions,
    /// A library that gives every node a clock of its own.
    pub clock_library: Option<PathBuf>,
    /// The disk of the database, if it can be filled.
    pub disk: Option<Arc<FaultyDisk>>,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        let (env, server) = (Vec::new(), ServerOptions { fsync: false, ..Default::default() });
        Self { nodes: NODES, lease: LEASE, env, server, clock_library: None, disk: None }
    }
}

impl ClusterOptions {
    /// With a disk of the database that can be filled and slowed down, and a database that syncs.
    pub fn with_disk(disk: Arc<FaultyDisk>) -> Self {
        let server = ServerOptions { env: disk.env().into(), ..ServerOptions::default() };
        Self { server, disk: Some(disk), ..Self::default() }
    }
}

/// The nodes, their links and their database.
pub struct Cluster {
    pub nodes: Vec<Node>,
    /// Where the other nodes reach each node.
    pub hops: Vec<LinkProxy>,
    /// Where each node reaches the database.
    pub database_links: Vec<LinkProxy>,
    /// The current primary; `None` for one hub on SQLite.
    database: Mutex<Option<PrivatePostgres>>,
    /// The disk of the database, if it can be filled.
    disk: Option<Arc<FaultyDisk>>,
    pub http: reqwest::Client,
    folder: TempDir,
}

impl Cluster {
    /// Starts a cluster and waits until all nodes are ready. `None` without PostgreSQL: the test is
    /// skipped.
    pub async fn start(test: &str, options: &ClusterOptions) -> Option<Self> {
        let cluster = Self::prepare(test, options)?;
        for node in &cluster.nodes {
            node.start();
        }
        cluster.wait_until_ready().await;
        Some(cluster)
    }

    /// The same without starting any node.
    pub fn prepare(test: &str, options: &ClusterOptions) -> Option<Self> {
        let database = PrivatePostgres::start(test, &options.server)?;
        let folder = TempDir::new().expect("a directory");
        let (mut nodes, mut hops, mut database_links) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..options.nodes {
            let listen = free_address(1);
            let hop = LinkProxy::start(listen.to_string()).expect("a port");
            let target = format!("127.0.0.1:{}", database.port());
            let link = LinkProxy::start(target).expect("a port");
            let url = database.tcp_url_through(link.address().port(), SCHEMA);
            let data = folder.path().join(format!("data-{number}"));
            let mut arguments: Vec<String> = flags().into_iter().map(str::to_owned).collect();
            let data = data.display().to_string();
            arguments.extend(["--data".to_owned(), data, "--database-url".to_owned(), url]);
            let lease = format!("{}ms", options.lease.as_millis());
            let own = [
                ("RIALTO_CLUSTER__LISTEN", listen.to_string()),
                ("RIALTO_CLUSTER__ADVERTISE", hop.address().to_string()),
                ("RIALTO_CLUSTER__LEASE", lease),
                ("RIALTO_HUB_SECRET", TEST_SECRET.to_owned()),
                ("RIALTO_OPERATOR_KEY", operator_key()),
                ("RIALTO_LOG", LOG_FILTER.to_owned()),
            ];
            let mut env: Vec<_> =
                own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            env.extend(options.env.iter().cloned());
            if let Some(library) = &options.clock_library {
                env.extend(clock_env(library, &clock_file(&folder, number)));
            }
            let options = NodeOptions { arguments, env };
            nodes.push(Node::new(number, free_address(2), options, folder.path()));
            hops.push(hop);
            database_links.push(link);
        }
        let mut cluster = Self::of(nodes, hops, database_links, Some(database), folder);
        cluster.disk = options.disk.clone();
        Some(cluster)
    }

    /// One hub on SQLite, for the same traffic and checks.
    pub async fn single() -> Self {
        let folder = TempDir::new().expect("a directory");
        let data = folder.path().join("data").display().to_string();
        let mut arguments: Vec<String> = flags().into_iter().map(str::to_owned).collect();
        arguments.extend(["--data".to_owned(), data]);
        let env = vec![("RIALTO_OPERATOR_KEY".to_owned(), operator_key())];
        let options = NodeOptions { arguments, env };
        let node = Node::new(0, free_address(2), options, folder.path());
        let cluster = Self::of(vec![node], Vec::new(), Vec::new(), None, folder);
        cluster.nodes[0].start();
        cluster.wait_until_ready().await;
        cluster
    }

    fn of(
        nodes: Vec<Node>,
        hops: Vec<LinkProxy>,
        database_links: Vec<LinkProxy>,
        database: Option<PrivatePostgres>,
        folder: TempDir,
    ) -> Self {
        let http = http_builder().connect_timeout(REQUEST_TIMEOUT).build().expect("a client");
        let (database, disk) = (Mutex::new(database), None);
        Self { nodes, hops, database_links, database, disk, http, folder }
    }

    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url.clone()).collect()
    }

    fn lock_database(&self) -> MutexGuard<'_, Option<PrivatePostgres>> {
        self.database.lock().expect("no panic while the database is changed")
    }

    /// The disk of the database.
    pub fn disk(&self) -> &FaultyDisk {
        self.disk.as_deref().expect("the cluster was started with a disk that has faults")
    }

    /// Uses the current primary. Blocks, so call it from a thread that may.
    pub fn with_database<T>(&self, work: impl FnOnce(&PrivatePostgres) -> T) -> T {
        work(self.lock_database().as_ref().expect("a cluster has a database"))
    }

    /// The URL of the database without a proxy in between.
    pub fn database_url(&self) -> String {
        self.with_database(|database| database.tcp_url(SCHEMA))
    }

    /// Sets the clock of a node that many seconds off. It needs a `clock_library`.
    pub fn set_clock(&self, number: usize, seconds: i64) {
        std::fs::write(clock_file(&self.folder, number), format!("{seconds:+}")).expect("a file");
    }

    /// One more node on the same database, which is not started yet and has no proxies.
    pub fn another_node(&self, env: &[(&str, &str)]) -> Node {
        let number = self.nodes.len();
        let data = self.folder.path().join(format!("data-{number}")).display().to_string();
        let mut arguments: Vec<String> = flags().into_iter().map(str::to_owned).collect();
        arguments.extend(["--data".to_owned(), data]);
        arguments.extend(["--database-url".to_owned(), self.database_url()]);
        let hop = free_address(1).to_string();
        let mut all = vec![
            ("RIALTO_CLUSTER__LISTEN", hop.as_str()),
            ("RIALTO_CLUSTER__ADVERTISE", hop.as_str()),
            ("RIALTO_HUB_SECRET", TEST_SECRET),
        ];
        let key = operator_key();
        all.push(("RIALTO_OPERATOR_KEY", &key));
        all.extend(env);
        let env =
            all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let options = NodeOptions { arguments, env };
        Node::new(number, free_address(2), options, self.folder.path())
    }

    /// Replaces the primary by a new standby: what the primary acknowledged is there if it is
    /// synchronous. `before` runs when the standby follows.
    pub fn fail_over(&self, replication: Replication, before: impl FnOnce(&PrivatePostgres)) {
        let mut database = self.lock_database();
        let primary = database.take().expect("a cluster has a database");
        let standby = primary.standby(replication);
        before(&standby);
        primary.crash();
        standby.resume();
        standby.promote().expect("the standby becomes the primary");
        for link in &self.database_links {
            link.set_target(format!("127.0.0.1:{}", standby.port()));
        }
        *database = Some(standby);
    }

    /// What the operator sees of a node; `None` if it does not answer.
    pub async fn status(&self, number: usize) -> Option<Value> {
        let request = self.http.get(format!("{}/v1/operator/cluster", self.nodes[number].url));
        let request = request.bearer_auth(operator_key()).timeout(Duration::from_millis(500));
        let answer = request.send().await.ok().filter(|answer| answer.status() == 200)?;
        serde_json::from_slice(&answer.bytes().await.ok()?).ok()
    }

    /// The node that writes, as far as the nodes say.
    pub async fn writer(&self) -> Option<usize> {
        let mut newest = None;
        for number in 0..self.nodes.len() {
            let Some(status) = self.status(number).await else { continue };
            let epoch = status["epoch"].as_u64();
            if status["role"] == "writer" && newest.is_none_or(|(known, _)| epoch > known) {
                newest = Some((epoch, number));
            }
        }
        newest.map(|(_, number)| number)
    }

    /// Waits for a node that writes.
    pub async fn wait_for_writer(&self) -> usize {
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            if let Some(writer) = self.writer().await {
                return writer;
            }
            if Instant::now() > deadline {
                panic!("no node writes; logs are in {}", self.keep_logs("stuck"));
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    pub async fn is_ready(&self, number: usize) -> bool {
        let request = self.http.get(format!("{}/readyz", self.nodes[number].url));
        let answer = request.timeout(REQUEST_TIMEOUT).send().await;
        answer.is_ok_and(|answer| answer.status() == 200)
    }

    /// Waits until every node is ready.
    pub async fn wait_until_ready(&self) {
        if let Err(ended) = self.try_until_ready().await {
            panic!("{ended}");
        }
    }

    /// The same, or how a node has ended by itself.
    pub async fn try_until_ready(&self) -> Result<(), String> {
        let deadline = Instant::now() + READY_TIMEOUT;
        for node in &self.nodes {
            while !self.is_ready(node.number).await {
                let number = node.number;
                if let Some(status) = node.take_exit() {
                    if node.has_served() || node.refused_place() {
                        return Err(format!("node {number}: {status}\n{}", node.log_tail()));
                    }
                    // It could not reach the database, and its operator starts it again.
                    node.start();
                }
                if Instant::now() > deadline {
                    panic!("node {number} is not ready; logs are in {}", self.keep_logs("stuck"));
                }
                tokio::time::sleep(CHECK_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// How a node has ended by itself, if one has.
    pub fn find_ended(&self) -> Option<String> {
        let ended = self.nodes.iter().find_map(|node| Some((node, node.take_exit()?)));
        ended.map(|(node, status)| format!("node {}: {status}\n{}", node.number, node.log_tail()))
    }

    /// The format of new batches, as a version of this program.
    pub fn format(&self) -> u8 {
        let sql = format!("SELECT format - {BATCH_VERSION} FROM {SCHEMA}.meta");
        let format = self.with_database(|database| database.run_sql(&sql)).expect("it runs");
        format.parse().expect("a version from 0 to 255")
    }

    /// The newest version that any node has.
    fn newest_version(&self) -> u8 {
        self.nodes.iter().map(Node::version).max().unwrap_or(0)
    }

    /// Stops a node and starts it as another version.
    pub fn replace_version(&self, number: usize, version: u8) {
        let node = &self.nodes[number];
        if let Some(status) = node.stop().filter(|status| !status.success()) {
            println!("node {number} was stopped and says {status}");
        }
        node.set_version(version);
        node.start();
    }

    /// Ends every fault: links pass everything on, paused processes go on, dead ones are started.
    /// Returns the nodes that had ended by themselves. An old node that was away for longer than the
    /// others wait for it finds a format that it does not know, and its operator upgrades it.
    pub fn heal(&self, fault: Duration) -> Vec<String> {
        for link in self.hops.iter().chain(&self.database_links) {
            link.heal();
        }
        self.disk.iter().for_each(|disk| disk.heal());
        if let Some(database) = &*self.lock_database() {
            match database.is_running() {
                true => database.resume(),
                false => database.restart(),
            }
            // One that had no space for its log may end only now, and its operator starts it again.
            while self.disk.is_some() && database.run_sql("SELECT 1").is_err() {
                if !database.is_running() {
                    database.restart();
                }
                std::thread::sleep(CHECK_INTERVAL);
            }
        }
        let mut ended = Vec::new();
        for node in &self.nodes {
            if clock_file(&self.folder, node.number).exists() {
                self.set_clock(node.number, 0);
            }
            node.resume();
            // One that does not reach the database at its start ends, and is started again.
            let status = node.take_exit();
            let is_too_old = status.is_some() && node.refused_format();
            if is_too_old && fault > FORMAT_WAIT {
                node.set_version(self.newest_version());
            } else if let Some(status) = status.filter(|_| is_too_old || node.has_served()) {
                ended.push(format!("node {}: {status}\n{}", node.number, node.log_tail()));
            }
            if !node.is_running() {
                node.start();
            }
        }
        ended
    }

    /// What `rialto audit` says of the database; `None` if the binary cannot audit one.
    pub fn audit(&self) -> Option<Result<(), String>> {
        let run = |arguments: &[&str]| {
            let mut command = Command::new(binary());
            command.arg("audit").args(arguments).env("RIALTO_HUB_SECRET", TEST_SECRET);
            command.env("RIALTO_TEST_NEXT_FORMAT", self.newest_version().to_string());
            let output = output(&mut command).expect("it runs");
            let text = [output.stdout, output.stderr].concat();
            (output.status, String::from_utf8_lossy(&text).into_owned())
        };
        if !run(&["--help"]).1.contains("--database-url") {
            return None;
        }
        let (status, text) = run(&["--database-url", &self.database_url()]);
        Some(if status.success() { Ok(()) } else { Err(text) })
    }

    /// Keeps the logs of a failed run, and says where.
    pub fn keep_logs(&self, name: &str) -> String {
        let kept = std::env::temp_dir().join(format!("rialto-cluster-{name}"));
        let _ = std::fs::create_dir_all(&kept);
        for node in &self.nodes {
            let _ = std::fs::write(kept.join(format!("node-{}.log", node.number)), node.log_text());
        }
        kept.display().to_string()
    }
}

/// What the clock of a node is set by.
fn clock_file(folder: &TempDir, number: usize) -> PathBuf {
    folder.path().join(format!("clock-{number}"))
}

/// The environment in which a node has the clock of a file. Time that only grows is left alone.
fn clock_env(library: &Path, file: &Path) -> [(String, String); 4] {
    std::fs::write(file, "+0").expect("a file");
    [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}
