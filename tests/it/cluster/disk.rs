//! A disk of the database that is full or slow, as PostgreSQL sees it in its system calls.
//!
//! A library that is loaded into PostgreSQL lets writes that make a file longer fail with `ENOSPC`,
//! and syncs take longer. It needs no privileges. Other than on a real disk, what one process writes
//! does not slow down another, reads are never slow, and a write fails as a whole.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rialto_engine::cluster::state::STALE_AFTER;
use rialto_engine::testkit::skip_test;
use tempfile::TempDir;

use super::database::{balance, grant};
use super::faults::Fault;
use super::harness::{Cluster, ClusterOptions, SCHEMA};
use super::nemesis::{self, Plan};
use super::{number, seed};
use crate::kit::eventually;

const ROUNDS: usize = 2;
/// How often nodes report.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Commands that are sent to a database without space.
const COMMANDS: usize = 30;

/// The disk of a PostgreSQL server.
#[derive(Debug)]
pub struct FaultyDisk {
    folder: TempDir,
}

impl FaultyDisk {
    /// A disk with space, which is as fast as the machine's. `None` without a C compiler: the test
    /// is skipped.
    pub fn create(test: &str) -> Option<Arc<Self>> {
        let folder = TempDir::new().expect("a directory");
        // The server may run as another user.
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("it is ours");
        let disk = Self { folder };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/cluster/disk.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(disk.library())
            .arg(source)
            .arg("-ldl");
        match compiler.output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            Err(_) => {
                skip_test(test, "a C compiler", "install it with `apt-get install gcc`");
                return None;
            }
        }
        disk.heal();
        Some(Arc::new(disk))
    }

    fn library(&self) -> PathBuf {
        self.folder.path().join("disk.so")
    }

    fn control(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// The environment of a server that uses it.
    pub fn env(&self) -> [(String, String); 2] {
        [("LD_PRELOAD", self.library()), ("RIALTO_TEST_DISK", self.control())]
            .map(|(name, path)| (name.to_owned(), path.display().to_string()))
    }

    /// No file can become longer.
    pub fn fill(&self) {
        self.set(true, Duration::ZERO);
    }

    /// Every sync takes that much longer.
    pub fn slow_down(&self, sync: Duration) {
        self.set(false, sync);
    }

    /// There is space, and syncs are fast.
    pub fn heal(&self) {
        self.set(false, Duration::ZERO);
    }

    fn set(&self, is_full: bool, sync: Duration) {
        let (control, new) = (self.control(), self.folder.path().join("new"));
        fs::write(&new, format!("{} {}", u8::from(is_full), sync.as_millis())).expect("a file");
        fs::rename(new, control).expect("a file");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_or_slow_disk_loses_nothing_and_nodes_go_on_when_there_is_space() {
    const NAME: &str =
        "cluster::disk::a_full_or_slow_disk_loses_nothing_and_nodes_go_on_when_there_is_space";
    let seed = seed();
    let Some(disk) = FaultyDisk::create(NAME) else { return };
    let options = ClusterOptions::with_disk(disk.clone());
    let Some(cluster) = Cluster::start(NAME, &options).await else { return };
    assert_follows_without_reports(&cluster).await;
    assert_survives_full_wal(&cluster, &disk).await;
    let rounds = number("RIALTO_CLUSTER_DISK_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let faults = vec![Fault::FullDisk, Fault::SlowSync];
    let plan = Plan { rounds, seed, faults, stops_at_violation: false };
    let report = nemesis::run(&cluster, &plan).await;
    println!("{report}");
    assert!(!report.has_violations(), "{:?}", report.violations());
    let audit = tokio::task::block_in_place(|| cluster.audit());
    audit.expect("this binary can audit a database").expect("the audit finds nothing");
}

/// A node that cannot report for lack of space still follows. A table grows only from time to time,
/// so a trigger gives the answer of a full disk.
async fn assert_follows_without_reports(cluster: &Cluster) {
    let run = |sql: &str| {
        let sql = sql.replace("SCHEMA", SCHEMA);
        tokio::task::block_in_place(|| cluster.with_database(|it| it.run_sql(&sql)))
            .expect("it runs")
    };
    run("CREATE FUNCTION SCHEMA.refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END$$");
    run("CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON SCHEMA.nodes
            FOR EACH ROW EXECUTE FUNCTION SCHEMA.refuse()");
    // Every node has tried, and one that no longer looked would be out of date.
    tokio::time::sleep(REPORT_INTERVAL + STALE_AFTER * 2).await;
    for node in 0..cluster.nodes.len() {
        assert!(cluster.is_ready(node).await, "node {node} does not follow any more");
    }
    run("DROP TRIGGER refuse ON SCHEMA.nodes");
}

/// A server that has no space for its write-ahead log ends by itself. The nodes do not.
async fn assert_survives_full_wal(cluster: &Cluster, disk: &FaultyDisk) {
    let (mut acknowledged, mut unknown) = (1, 0);
    assert_eq!(grant(cluster, 0, "owner").await.0, 201);
    disk.fill();
    let has_ended = || cluster.with_database(|database| !database.is_running());
    for number in 0..COMMANDS {
        // The next segment of the log is a new file, once those are used that it has in store.
        let _ = tokio::task::block_in_place(|| {
            cluster.with_database(|database| database.run_sql("SELECT pg_switch_wal()"))
        });
        match grant(cluster, number % cluster.nodes.len(), "owner").await.0 {
            201 => acknowledged += 1,
            503 => unknown += 1,
            507 => {}
            other => panic!("got {other}"),
        }
        if has_ended() {
            break;
        }
    }
    eventually(async || has_ended()).await;
    assert_eq!(grant(cluster, 0, "owner").await.0, 503, "without a database");
    let ended = tokio::task::block_in_place(|| cluster.heal(Duration::ZERO));
    assert!(ended.is_empty(), "{ended:?}");
    cluster.wait_until_ready().await;
    eventually(async || {
        let status = grant(cluster, 1, "owner").await.0;
        acknowledged += u64::from(status == 201);
        unknown += u64::from(status != 201);
        status == 201
    })
    .await;
    for node in 0..cluster.nodes.len() {
        let balance = balance(cluster, node).await;
        let expected = acknowledged..=acknowledged + unknown + 1;
        assert!(expected.contains(&balance), "{balance} at {node} is not in {expected:?}");
    }
}
