//! Memory of a node while the writer does not answer (G20).

use std::time::Duration;

use serde_json::json;

use super::harness::{Cluster, ClusterOptions};
use super::sharing::register;
use crate::kit::together;

/// Requests at the same time: more than a node may have unanswered.
const REQUESTS: usize = 1_600;
/// Bytes of each.
const BODY_BYTES: usize = 16 << 10;
/// How much the memory of the node may grow. All bodies together have 25 MiB; each is held as it
/// came, as a command and as a frame.
const GROWTH_MAX_KIB: u64 = 256 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_writer_is_paused_refuses_commands_before_it_grows() {
    const NAME: &str =
        "cluster::memory::a_node_whose_writer_is_paused_refuses_commands_before_it_grows";
    // Nobody takes over during the test.
    let options = ClusterOptions { lease: Duration::from_secs(60), ..ClusterOptions::default() };
    let Some(cluster) = Cluster::start(NAME, &options).await else { return };
    let writer = cluster.wait_for_writer().await;
    let node = (writer + 1) % cluster.nodes.len();
    let url = &cluster.nodes[node].url;
    let from = register(&cluster, node, "from").await;
    let to = register(&cluster, node, "to").await;
    let body = json!({"to": to.id, "body": "x".repeat(BODY_BYTES)}).to_string();
    let send = |_: usize| {
        let request = cluster.http.post(format!("{url}/v1/messages")).bearer_auth(&from.key);
        let request = request.timeout(Duration::from_secs(20)).body(body.clone());
        async { request.send().await.map(|answer| answer.status().as_u16()).ok() }
    };
    let before = cluster.nodes[node].resident_kib().expect("it runs");
    cluster.nodes[writer].pause();
    let answers = together((0..REQUESTS).map(send)).await;
    let after = cluster.nodes[node].resident_kib().expect("it runs");
    cluster.nodes[writer].resume();
    let refused = answers.iter().filter(|status| **status == Some(503)).count();
    println!("{refused} of {REQUESTS} got 503; memory {before} KiB before, {after} KiB after");
    assert!(refused > 0, "{answers:?}");
    assert!(after.saturating_sub(before) < GROWTH_MAX_KIB, "{before} KiB became {after} KiB");
    cluster.wait_until_ready().await;
}
