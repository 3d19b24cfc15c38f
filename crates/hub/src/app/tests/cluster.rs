//! What a node tells of itself and the others.

use std::sync::atomic::Ordering;

use rialto_core::time::Timestamp;
use rialto_engine::cluster::state::Role;
use rialto_engine::cluster::{NodeId, NodeReport, NodeRow};
use serde_json::{Value, json};

use super::kit::Node;

/// 2026-02-11T12:00:00Z.
const DAWN: Timestamp = Timestamp(1_770_811_200_000);

/// A follower among two nodes.
async fn follower() -> Node {
    let node = Node::start(Role::Follower).await;
    let row = |id, address: &str, applied| NodeRow {
        report: NodeReport {
            node: NodeId(id),
            address: address.to_owned(),
            version: "0.1.0".to_owned(),
            applied,
            ..NodeReport::default()
        },
        seen_at: DAWN,
        silent_ms: 0,
    };
    *node.manual.state.nodes.lock() = vec![row(1, "a:7426", 6), row(2, "b:7426", 7)];
    *node.manual.state.writer.lock() = Some(NodeId(2));
    node.manual.state.takeovers.store(3, Ordering::SeqCst);
    node.manual.state.applied.send_modify(|applied| (applied.number, applied.epoch) = (7, 4));
    node
}

#[tokio::test]
async fn the_operator_sees_every_node_and_its_role() {
    let node = follower().await;
    let (made, key) = node.issue_key();
    node.engine.run(made).await.expect("a key");
    let answer = node.ask("GET", "/v1/operator/cluster", &key).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let body: Value = serde_json::from_str(body).expect("JSON");
    let shown = |id: u64, address, role, applied| {
        json!({
            "node": format!("{id:016x}"), "address": address, "role": role, "version": "0.1.0",
            "applied": applied, "seen_at": "2026-02-11T12:00:00.000Z",
        })
    };
    let nodes = [shown(1, "a:7426", "follower", 6), shown(2, "b:7426", "writer", 7)];
    let expected = json!({
        "node": "0000000000000001", "role": "follower", "epoch": 4, "seq": 7, "lag_ms": 0,
        "nodes": nodes,
    });
    assert_eq!(body, expected);
    assert!(node.ask("GET", "/v1/operator/cluster", "").await.starts_with("HTTP/1.1 401"));
}

#[tokio::test]
async fn metrics_say_what_the_node_is() {
    let node = follower().await;
    let scraped = node.ask("GET", "/metrics", "").await;
    for (name, value) in [
        ("rialto_cluster_role", "0"),
        ("rialto_cluster_lag_seconds", "0"),
        ("rialto_cluster_takeovers_total", "3"),
        ("rialto_cluster_applied_batch", "7"),
        ("rialto_cluster_nodes", "2"),
    ] {
        let line = scraped.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let shown = line.map(|value| value.trim_end_matches(".0"));
        assert_eq!(shown, Some(value), "{name}: {scraped}");
    }
    node.manual.set_role(Role::Writer);
    let scraped = node.ask("GET", "/metrics", "").await;
    assert!(scraped.contains("\nrialto_cluster_role 1"), "{scraped}");
}
