//! What the database loses or has no room for.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rialto_engine::cluster::hop::proxy::Direction;
use rialto_engine::testkit::postgres::Replication;
use rialto_engine::testkit::skip_test;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::harness::{Cluster, ClusterOptions, SCHEMA};
use super::membership::assert_does_not_start;
use super::node::{Node, binary};
use crate::kit::{eventually, operator_key, output};

/// Commands that the database loses.
const LOST_COMMANDS: usize = 20;
/// The node that is stopped before the database loses them.
const STOPPED: usize = 2;
/// Size of the disk that is full.
const DISK_MIB: u64 = 48;

/// A grant at a node: status and body.
pub async fn grant(cluster: &Cluster, node: usize, owner: &str) -> (u16, Value) {
    let body = json!({"owner": owner, "amount": 1, "create": true});
    let request = cluster.http.post(format!("{}/v1/operator/grants", cluster.nodes[node].url));
    let answer = request.bearer_auth(operator_key()).body(body.to_string()).send().await;
    let answer = answer.expect("an answer");
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap_or_default();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_stop_when_an_asynchronous_fail_over_has_lost_batches_until_that_is_accepted() {
    const NAME: &str = "cluster::database::nodes_stop_when_an_asynchronous_fail_over_has_lost_batches_until_that_is_accepted";
    let Some(cluster) = Cluster::start(NAME, &ClusterOptions::default()).await else { return };
    let handle = tokio::runtime::Handle::current();
    let (status, answer) = grant(&cluster, 0, "kept").await;
    assert_eq!(status, 201, "{answer}");
    tokio::task::block_in_place(|| {
        cluster.fail_over(Replication::Asynchronous, |standby| {
            // The standby gets nothing any more.
            standby.set("primary_conninfo", "").expect("it runs");
            handle.block_on(async {
                for number in 0..LOST_COMMANDS {
                    let (status, answer) = grant(&cluster, number % 3, "lost").await;
                    assert_eq!(status, 201, "{answer}");
                }
            });
            // This one does not see that the database goes back.
            let status = cluster.nodes[STOPPED].stop().expect("it runs");
            assert!(status.success(), "{status}");
        });
    });
    for node in cluster.nodes.iter().filter(|node| node.number != STOPPED) {
        let mut status = None;
        eventually(async || {
            status = status.or_else(|| node.take_exit());
            status.is_some()
        })
        .await;
        let log = node.log_text();
        assert!(status.is_some_and(|status| !status.success()), "{status:?}: {log}");
        let tail = node.log_tail();
        let lines: Vec<&str> = tail.lines().rev().take(20).collect();
        println!("node {} said: {}", node.number, lines.first().unwrap_or(&""));
        assert!(names_two_places(&tail), "both places are not named: {lines:?}");
    }
    // Nor do they start again, before an operator has decided.
    for node in &cluster.nodes {
        let before = node.log_text().len();
        let log = assert_does_not_start(node).await.split_off(before);
        let said = log.lines().find(|line| line.contains("before it stopped"));
        assert!(said.is_some_and(names_two_places), "both places are not named: {log}");
        assert!(log.contains("rialto cluster accept"), "{log}");
    }
    tokio::task::block_in_place(|| {
        // As if ten seconds had passed.
        let leave = format!("DELETE FROM {SCHEMA}.nodes");
        cluster.with_database(|database| database.run_sql(&leave)).expect("it runs");
        let mut accept = Command::new(binary());
        accept.args(["cluster", "accept", "--database-url", &cluster.database_url()]);
        let accepted = output(&mut accept).expect("it runs");
        assert!(accepted.status.success(), "{accepted:?}");
    });
    cluster.nodes.iter().for_each(Node::start);
    cluster.wait_until_ready().await;
    assert_eq!(grant(&cluster, STOPPED, "kept").await.0, 201);
}

/// Whether a line names the place that a node is at, and what the database has.
fn names_two_places(log: &str) -> bool {
    let numbers = |line: &str| {
        let words = line.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter(|word| word.parse::<u64>().is_ok()).count()
    };
    log.lines().any(|line| line.contains("batch") && numbers(line) >= 2)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_database_does_not_answer_still_stops() {
    const NAME: &str = "cluster::database::a_node_whose_database_does_not_answer_still_stops";
    let Some(cluster) = Cluster::start(NAME, &ClusterOptions::default()).await else { return };
    let writer = cluster.wait_for_writer().await;
    // A command is on its way to the database, and no answer comes back.
    cluster.database_links[writer].black_hole(Direction::FromTarget);
    let request = cluster.http.post(format!("{}/v1/operator/grants", cluster.nodes[writer].url));
    let body = json!({"owner": "open", "amount": 1, "create": true}).to_string();
    let sent = tokio::spawn(request.bearer_auth(operator_key()).body(body).send());
    tokio::time::sleep(Duration::from_millis(100)).await;
    let status = tokio::task::block_in_place(|| cluster.nodes[writer].stop()).expect("it runs");
    assert!(status.code().is_some(), "it had to be killed: {status}");
    let _ = sent.await;
}

/// A small disk of its own, which is unmounted at the end.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// `None` where it cannot be mounted.
    fn mount() -> Option<Self> {
        let folder = TempDir::new().expect("a directory");
        let size = format!("size={DISK_MIB}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path());
        let mounted = mount.output().ok()?;
        mounted.status.success().then_some(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.path("filler")).expect("a file");
        while file.write_all(&[1; 4_096]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.path("filler")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_nodes_refuse_writes_answer_reads_and_go_on_afterwards() {
    const NAME: &str =
        "cluster::database::on_a_full_disk_nodes_refuse_writes_answer_reads_and_go_on_afterwards";
    let Some(disk) = SmallDisk::mount() else {
        return skip_test(NAME, "a disk that can be filled", "run the tests as root");
    };
    let Some(cluster) = Cluster::prepare(NAME, &ClusterOptions::default()) else { return };
    let tables = disk.path("tables");
    std::fs::create_dir(&tables).expect("a directory");
    cluster.with_database(|database| {
        let owner = database.run_sql("SHOW data_directory").expect("it runs");
        let status =
            Command::new("chown").arg(format!("--reference={owner}")).arg(&tables).status();
        assert!(status.is_ok_and(|status| status.success()), "the server's own folder");
        let sql = format!("CREATE TABLESPACE small LOCATION '{}'", tables.display());
        database.run_sql(&sql).expect("a tablespace");
        database.set("default_tablespace", "small").expect("it runs");
    });
    for node in &cluster.nodes {
        node.start();
    }
    cluster.wait_until_ready().await;
    assert_eq!(grant(&cluster, 0, "owner").await.0, 201);
    disk.fill();
    let mut acknowledged = 1;
    let mut refused = 0;
    for number in 0..2_000 {
        match grant(&cluster, number % 3, "owner").await {
            (201, _) => acknowledged += 1,
            (507, _) => refused += 1,
            // The database did not come to it in time.
            (503, _) => {}
            other => panic!("{other:?}"),
        }
        if refused >= 6 {
            break;
        }
    }
    assert!(refused > 0, "nothing was refused on a full disk");
    for node in 0..cluster.nodes.len() {
        assert_eq!(balance(&cluster, node).await, acknowledged, "at {node}");
    }
    disk.free();
    eventually(async || {
        let (status, _) = grant(&cluster, 1, "owner").await;
        acknowledged += u64::from(status == 201);
        status == 201
    })
    .await;
    for node in 0..cluster.nodes.len() {
        assert_eq!(balance(&cluster, node).await, acknowledged, "at {node}");
    }
}

/// Whole credits of the owner.
pub async fn balance(cluster: &Cluster, node: usize) -> u64 {
    let request = cluster.http.get(format!("{}/v1/accounts/owner", cluster.nodes[node].url));
    let answer = request.bearer_auth(operator_key()).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let text = answer.text().await.expect("a body");
    let seen: Value = serde_json::from_str(&text).expect("JSON");
    super::client::cents(&seen["available"]) / 100
}
