//! An upgrade, node by node: the log keeps its format until every node knows the next one.

use super::database::{balance, grant};
use super::harness::{Cluster, ClusterOptions, SCHEMA};
use super::membership::assert_does_not_start;
use crate::kit::eventually;

/// A grant at every node.
async fn grant_everywhere(cluster: &Cluster, acknowledged: &mut u64) {
    for node in 0..cluster.nodes.len() {
        let (status, answer) = grant(cluster, node, "owner").await;
        assert_eq!(status, 201, "at {node}: {answer}");
        *acknowledged += 1;
    }
}

/// Stops a node, starts it as a version, and waits until it is ready.
async fn replace(cluster: &Cluster, node: usize, version: u8) {
    tokio::task::block_in_place(|| cluster.replace_version(node, version));
    cluster.wait_until_ready().await;
}

fn format(cluster: &Cluster) -> u8 {
    tokio::task::block_in_place(|| cluster.format())
}

/// How often nodes have reported to the others, as far as the database knows.
fn newest_reports(cluster: &Cluster) -> Vec<String> {
    let sql = format!("SELECT node, seen FROM {SCHEMA}.nodes ORDER BY node");
    let reports = tokio::task::block_in_place(|| cluster.with_database(|it| it.run_sql(&sql)));
    reports.expect("it runs").lines().map(str::to_owned).collect()
}

/// Waits until every node has reported twice more: the writer has then decided about the format.
async fn wait_for_reports(cluster: &Cluster) {
    for _ in 0..2 {
        let before = newest_reports(cluster);
        eventually(async || newest_reports(cluster).iter().all(|report| !before.contains(report)))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_format_is_written_once_all_nodes_know_it_and_refused_by_those_that_do_not() {
    const NAME: &str = "cluster::upgrade::a_format_is_written_once_all_nodes_know_it_and_refused_by_those_that_do_not";
    let env = vec![("RIALTO_TEST_FORMAT_DELAY_MS".to_owned(), "0".to_owned())];
    let options = ClusterOptions { env, ..ClusterOptions::default() };
    let Some(cluster) = Cluster::start(NAME, &options).await else { return };
    let mut acknowledged = 0;
    let writer = cluster.wait_for_writer().await;
    let (first, second) = ((writer + 1) % 3, (writer + 2) % 3);
    grant_everywhere(&cluster, &mut acknowledged).await;

    // One new node, which only follows.
    replace(&cluster, first, 1).await;
    grant_everywhere(&cluster, &mut acknowledged).await;
    // The new node is the only one that can take over from the old writer, and the others are old.
    cluster.nodes[second].pause();
    replace_writer(&cluster, writer, first).await;
    cluster.nodes[second].resume();
    cluster.wait_until_ready().await;
    grant_everywhere(&cluster, &mut acknowledged).await;
    wait_for_reports(&cluster).await;
    assert_eq!(format(&cluster), 0, "two nodes know only the old format");

    // All but one, and that one is silent for longer than the others consider it.
    replace(&cluster, second, 1).await;
    wait_for_reports(&cluster).await;
    assert_eq!(format(&cluster), 0, "one node knows only the old format");
    cluster.nodes[writer].pause();
    let silent = format!(
        "UPDATE {SCHEMA}.nodes SET seen = seen - interval '1 minute' WHERE format_newest =
            (SELECT format FROM {SCHEMA}.meta)"
    );
    cluster.with_database(|database| database.run_sql(&silent)).expect("it runs");
    eventually(async || format(&cluster) == 1).await;
    for node in [first, second] {
        let (status, answer) = grant(&cluster, node, "owner").await;
        assert_eq!(status, 201, "at {node}: {answer}");
        acknowledged += 1;
    }
    // It does not follow any further, and does not start again.
    let old = &cluster.nodes[writer];
    old.resume();
    let mut status = None;
    eventually(async || {
        status = status.or_else(|| old.take_exit());
        status.is_some()
    })
    .await;
    assert!(status.is_some_and(|status| !status.success()), "{status:?}");
    assert!(old.refused_format(), "{}", old.log_tail());
    assert_does_not_start(old).await;
    assert!(old.refused_format(), "{}", old.log_tail());

    // As the new version it does, and has everything.
    old.set_version(1);
    old.start();
    cluster.wait_until_ready().await;
    grant_everywhere(&cluster, &mut acknowledged).await;
    for node in 0..cluster.nodes.len() {
        assert_eq!(balance(&cluster, node).await, acknowledged, "at {node}");
    }
    let audit = tokio::task::block_in_place(|| cluster.audit());
    audit.expect("this binary can audit a database").expect("the audit finds nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_old_node_can_be_restarted_as_what_it_is() {
    const NAME: &str = "cluster::upgrade::the_last_old_node_can_be_restarted_as_what_it_is";
    let Some(cluster) = Cluster::start(NAME, &ClusterOptions::default()).await else { return };
    let writer = cluster.wait_for_writer().await;
    let (old, next) = ((writer + 1) % 3, (writer + 2) % 3);
    for node in [next, writer] {
        replace(&cluster, node, 1).await;
    }
    tokio::task::block_in_place(|| cluster.nodes[old].stop());
    // The others know now that it has stopped.
    wait_for_reports(&cluster).await;
    cluster.nodes[old].start();
    cluster.wait_until_ready().await;
    let mut acknowledged = 0;
    grant_everywhere(&cluster, &mut acknowledged).await;
    assert_eq!(balance(&cluster, old).await, acknowledged);
}

/// Stops the writer and starts it again as the old version, once another node writes.
async fn replace_writer(cluster: &Cluster, writer: usize, next: usize) {
    tokio::task::block_in_place(|| cluster.nodes[writer].stop());
    eventually(async || {
        cluster.status(next).await.is_some_and(|status| status["role"] == "writer")
    })
    .await;
    cluster.nodes[writer].start();
}
