//! Which nodes may take part.

use super::harness::{Cluster, ClusterOptions, SCHEMA};
use super::node::Node;
use crate::kit::eventually;

/// A secret that is not the hub's.
const OTHER_SECRET: &str = "0bad0bad0bad0bad0bad0bad0bad0bad0bad0bad0bad0bad0bad0bad0bad0bad";

/// Starts a node that must end by itself with an error, and returns what it said.
pub async fn assert_does_not_start(node: &Node) -> String {
    node.start();
    let mut status = None;
    eventually(async || {
        status = status.or_else(|| node.take_exit());
        status.is_some()
    })
    .await;
    let log = node.log_text();
    assert!(status.is_some_and(|status| !status.success()), "{log}");
    log
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_fit_the_hub_does_not_start() {
    const NAME: &str = "cluster::membership::a_node_that_does_not_fit_the_hub_does_not_start";
    let one = ClusterOptions { nodes: 1, ..ClusterOptions::default() };
    let Some(cluster) = Cluster::start(NAME, &one).await else { return };
    a_node_with_another_secret_does_not_start(&cluster).await;
    a_node_does_not_start_on_a_newer_schema(&cluster).await;
}

async fn a_node_with_another_secret_does_not_start(cluster: &Cluster) {
    let other = cluster.another_node(&[("RIALTO_HUB_SECRET", OTHER_SECRET)]);
    let log = assert_does_not_start(&other).await;
    assert!(log.contains("secret"), "{log}");
    assert!(!log.contains(OTHER_SECRET), "a secret is in the log: {log}");
    // With the right one it does.
    let mate = cluster.another_node(&[]);
    mate.start();
    eventually(async || {
        let answer = cluster.http.get(format!("{}/readyz", mate.url)).send().await;
        answer.is_ok_and(|answer| answer.status() == 200)
    })
    .await;
    assert!(cluster.is_ready(0).await);
}

async fn a_node_does_not_start_on_a_newer_schema(cluster: &Cluster) {
    for (column, error) in
        [("schema_version", "the store has schema"), ("format", "batches have format")]
    {
        let newer = format!("UPDATE {SCHEMA}.meta SET {column} = {column} + 100");
        cluster.with_database(|database| database.run_sql(&newer)).expect("a newer version");
        let log = assert_does_not_start(&cluster.another_node(&[])).await;
        assert!(log.contains(error), "{log}");
        let back = format!("UPDATE {SCHEMA}.meta SET {column} = {column} - 100");
        cluster.with_database(|database| database.run_sql(&back)).expect("the old version");
    }
}
