//! `rialto cluster dev`: several nodes in one command, and what operators do while they run.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rialto_engine::local_postgres::Programs;
use rialto_engine::testkit::skip_test;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{Lines, ended, eventually, http, output, run};

const SCALING: &str = include_str!("../../../docs/operating/scaling.md");

/// How long processes may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(30);

/// The command, and what it has printed about itself.
struct DevCluster {
    child: Child,
    /// Lines about nodes that ended.
    errors: Lines,
    url: String,
    database_url: String,
    operator_key: String,
    writer: u32,
    nodes: Vec<u32>,
    /// Where its temporary files are: one that is killed leaves some.
    _scratch: TempDir,
}

impl DevCluster {
    /// `None` if PostgreSQL is not installed; the test is then reported as skipped.
    fn start(test: &str, more: &[&str]) -> Option<Self> {
        if Programs::find().is_err() {
            skip_test(test, "PostgreSQL", "install it with `apt-get install postgresql`");
            return None;
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        command.args(["cluster", "dev", "--listen", "127.0.0.1:0"]).args(more);
        for name in ["RIALTO_OPERATOR_KEY", "RIALTO_HUB_SECRET", "RIALTO_LOG"] {
            command.env_remove(name);
        }
        let scratch = TempDir::new().expect("a directory");
        open_to_all(scratch.path());
        command.env("TMPDIR", scratch.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let errors = Lines::of(child.stderr.take());
        let mut lines = Lines::of(child.stdout.take());
        let mut this = Self {
            child,
            errors,
            url: String::new(),
            database_url: String::new(),
            operator_key: String::new(),
            writer: 0,
            nodes: Vec::new(),
            _scratch: scratch,
        };
        loop {
            let Some(line) = lines.next() else {
                panic!("it ended early: {:?}", this.errors.by_ref().collect::<Vec<_>>())
            };
            if let Some((_, url)) = line.split_once(" nodes at ") {
                this.url = url.to_owned();
            } else if let Some((_, process)) = line.split_once(", process ") {
                let number = process.split(',').next().expect("a number");
                this.nodes.push(number.parse().expect("a number"));
            } else if let Some((_, url)) = line.split_once("private PostgreSQL, ") {
                this.database_url = url.to_owned();
            } else if let Some(key) = line.strip_prefix("operator key: ") {
                this.operator_key = key.to_owned();
            } else if let Some(rest) = line.trim_start().strip_prefix("kill -9 ") {
                let number = rest.split(' ').next().expect("a number");
                this.writer = number.parse().expect("a number");
                return Some(this);
            }
        }
    }

    /// Runs the binary as the operator of this hub.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let home = TempDir::new().expect("a directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
        command.args(arguments).env("RIALTO_HUB", &self.url).env("RIALTO_HOME", home.path());
        command.env("RIALTO_OPERATOR_KEY", &self.operator_key);
        let ran = output(&mut command).expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (ran.status.code().unwrap_or(-1), text(ran.stdout), text(ran.stderr))
    }

    fn signal(&self, process: u32, signal: Signal) {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("it runs");
    }

    /// The processes that must be gone when the command is.
    fn processes(&self) -> Vec<u32> {
        let sockets = self.database_url.split_once("host=").expect("a socket").1;
        let sockets = sockets.split('&').next().expect("a path");
        let lock = Path::new(sockets).join(".s.PGSQL.5432.lock");
        let lock = std::fs::read_to_string(lock).expect("the server runs");
        let server = lock.lines().next().and_then(|line| line.parse().ok()).expect("a process");
        self.nodes.iter().copied().chain([server]).collect()
    }

    async fn register(&self, name: &str) -> Option<Value> {
        let body = json!({"agent_name": name, "owner_id": name, "skills": []}).to_string();
        // A connection of its own, so that the load balancer chooses a node.
        let sent = http().post(format!("{}/registry/register", self.url)).body(body).send().await;
        let answer = sent.ok()?;
        let is_done = answer.status().as_u16() == 201;
        let text = answer.text().await.ok()?;
        is_done.then(|| serde_json::from_str(&text).expect("JSON"))
    }
}

impl Drop for DevCluster {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[track_caller]
fn assert_gone(processes: &[u32]) {
    let deadline = Instant::now() + END_TIMEOUT;
    while let Some(left) = processes.iter().find(|process| is_running(**process)) {
        assert!(Instant::now() < deadline, "process {left} is left running");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_for_development_survives_its_writer_and_leaves_nothing_running() {
    const NAME: &str = "operating::cluster::a_cluster_for_development_survives_its_writer";
    let Some(mut cluster) = DevCluster::start(NAME, &[]) else { return };
    assert_eq!(cluster.nodes.len(), 3);
    let first = cluster.register("first").await.expect("every node is ready");
    // A node reports itself once a second, and the others read that as often.
    let deadline = Instant::now() + END_TIMEOUT;
    loop {
        let (code, status, error) = cluster.run(&["cluster", "status", "--json"]);
        assert_eq!(code, 0, "{error}");
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let nodes = status["nodes"].as_array().expect("a list");
        let writers = nodes.iter().filter(|node| node["role"] == "writer").count();
        if (nodes.len(), writers) == (3, 1) {
            break;
        }
        assert!(Instant::now() < deadline, "{status}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    // Every metric that the document names is there.
    let metrics = http().get(format!("{}/metrics", cluster.url)).send().await.expect("an answer");
    let metrics = metrics.text().await.expect("text");
    let named = SCALING.split('`').filter(|name| name.starts_with("rialto_cluster_"));
    let named: Vec<&str> = named.collect();
    assert_eq!(named.len(), 5, "{named:?}");
    assert!(named.iter().all(|name| metrics.contains(&format!("\n{name} "))), "{metrics}");

    // What operators do while nodes run.
    let room = TempDir::new().expect("a directory");
    let url = cluster.database_url.clone();
    let (code, audit, error) = cluster.run(&["audit", "--database-url", &url, "--json"]);
    assert_eq!(code, 0, "{audit}{error}");
    let audit: Value = serde_json::from_str(&audit).expect("JSON");
    assert_eq!(audit["checks"][0]["name"], "log");
    assert!(audit["checks"][0]["rows"].as_u64() >= Some(1), "{audit}");
    let (code, report, error) = cluster.run(&["doctor", "--database-url", &url]);
    assert_eq!(code, 0, "{report}{error}");
    assert!(report.contains("3 running") && report.contains("ok    fsync"), "{report}");
    let file = room.path().join("monday.db").display().to_string();
    let (code, told, error) = cluster.run(&["backup", "--database-url", &url, "--to", &file]);
    assert_eq!(code, 0, "{error}");
    assert!(told.contains("RIALTO_HUB_SECRET"), "{told}");
    let (code, _, error) = cluster.run(&["cluster", "accept", "--database-url", &url]);
    assert!(code == 5 && error.contains("stop all nodes"), "{code} {error}");
    let to = room.path().join("moved").display().to_string();
    let (code, _, error) = cluster.run(&["migrate", "--from", &url, "--to", &to]);
    assert!(code == 1 && error.contains("3 nodes are running"), "{code} {error}");

    cluster.signal(cluster.writer, Signal::KILL);
    eventually(|| async { cluster.register("second").await.is_some() }).await;
    let key = first["api_key"].as_str().expect("a key").to_owned();
    eventually(|| async {
        let me = http().get(format!("{}/v1/me", cluster.url)).bearer_auth(&key).send().await;
        me.is_ok_and(|me| me.status().is_success())
    })
    .await;
    let line = cluster.errors.next().expect("it is reported");
    assert!(line.contains("ended by signal 9; restarted as process "), "{line}");

    let mut processes = cluster.processes();
    processes.retain(|process| *process != cluster.writer);
    processes.push(line.rsplit(' ').next().and_then(|id| id.parse().ok()).expect("a process"));
    let sockets = cluster.database_url.split_once("host=").expect("a socket").1;
    let sockets = sockets.split('&').next().expect("a path").to_owned();
    cluster.signal(cluster.child.id(), Signal::TERM);
    assert!(ended(&mut cluster.child).success());
    assert_gone(&processes);
    assert!(!Path::new(&sockets).exists(), "its files are removed");
    // The backup is a hub of its own.
    let new = room.path().join("new").display().to_string();
    assert_eq!(run(&["restore", "--from", &file, "--data", &new, "--new-hub-key"]).0, 0);
    assert_eq!(run(&["audit", "--data", &new]).0, 0);
}

#[test]
fn no_node_outlives_a_cluster_for_development_that_is_killed() {
    const NAME: &str = "operating::cluster::no_node_outlives_a_cluster_that_is_killed";
    let Some(mut cluster) = DevCluster::start(NAME, &["--nodes", "2"]) else { return };
    let processes = cluster.processes();
    assert_eq!(processes.len(), 3);
    cluster.child.kill().expect("it runs");
    cluster.child.wait().expect("it ends");
    assert_gone(&processes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_for_development_goes_on_with_its_data() {
    const NAME: &str = "operating::cluster::a_cluster_for_development_goes_on_with_its_data";
    let room = TempDir::new().expect("a directory");
    open_to_all(room.path());
    let data = room.path().join("data").display().to_string();
    let more = ["--nodes", "2", "--data", &data];
    let Some(mut cluster) = DevCluster::start(NAME, &more) else { return };
    let (key, operator) = {
        let agent = cluster.register("kept").await.expect("every node is ready");
        (agent["api_key"].as_str().expect("a key").to_owned(), cluster.operator_key.clone())
    };
    cluster.signal(cluster.child.id(), Signal::TERM);
    assert!(ended(&mut cluster.child).success());
    let cluster = DevCluster::start(NAME, &more).expect("it is installed");
    assert_eq!(cluster.operator_key, operator);
    let me = http().get(format!("{}/v1/me", cluster.url)).bearer_auth(&key).send().await;
    assert_eq!(me.expect("an answer").status().as_u16(), 200);
}

/// Root starts PostgreSQL as another user.
fn open_to_all(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o711)).expect("it is ours");
}

#[test]
fn what_a_cluster_for_development_cannot_do_is_said_with_the_remedy() {
    let (code, _, error) = run(&["cluster", "dev", "--listen", "0.0.0.0:0"]);
    assert!(code == 2 && error.contains("127.0.0.1"), "{code} {error}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    command.args(["cluster", "dev", "--listen", "127.0.0.1:0"]);
    let ran = output(command.env("RIALTO_TEST_POSTGRES_BIN", "")).expect("it runs");
    let error = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(3), "{error}");
    assert!(error.contains("apt-get install postgresql"), "{error}");
    assert!(error.contains("--database-url"), "{error}");
    let nowhere = "postgresql://127.0.0.1:1/nothing";
    let line = ["cluster", "dev", "--listen", "127.0.0.1:0", "--nodes", "1", "--database-url"];
    let (code, _, error) = run(&[&line[..], &[nowhere]].concat());
    assert!(code == 1 && error.contains("node 1: "), "{code} {error}");
}
