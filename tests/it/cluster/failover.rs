//! A fail-over as clients of the other nodes see it: an answer that takes longer, and nothing else.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::client::{Client, Request, RoundContext};
use super::harness::{Cluster, ClusterOptions};
use super::history::Operation;
use super::report::percentile;
use super::traffic::cast::register;
use super::{number, seed};
use crate::kit::{Agent, eventually};

/// How often the writer ends in each way, by default.
const TIMES: usize = 5;
/// Clients of each node.
const CLIENTS: u32 = 4;
/// Commands of each surviving node after a fail-over.
const COMMANDS_AFTER: usize = 20;

/// Sends without a key and without a second attempt. What is not acknowledged is a violation.
async fn send_once(mut client: Client, node: usize, from: Agent, to: Agent) {
    while !client.is_over() {
        let key = client.fresh_key();
        let operation = Operation::Send { inbox: to.id.clone() };
        let body = json!({"to": to.id, "body": {"text": key}});
        let request = Request::new(operation, key, "/v1/messages").bearer(&from.key).json(&body);
        match client.attempt(node, &request).await {
            Some(reply) if reply.is_done() => {}
            other => client.round.history.violation(format!("at node {node}: {other:?}")),
        }
        client.pause(2).await;
    }
}

/// Ends the writer while clients of the other nodes send, and returns how long nothing was
/// acknowledged.
async fn fail_over(cluster: &Cluster, seed: u64, end: impl FnOnce(usize)) -> Duration {
    let round = RoundContext::new(cluster);
    let history = round.history.clone();
    let mut client = Client::new(0, round.clone(), seed);
    let from = register(&mut client, &format!("from {seed}"), json!([])).await;
    let to = register(&mut client, &format!("to {seed}"), json!([])).await;
    let writer = cluster.wait_for_writer().await;
    let survivors: Vec<usize> = (0..cluster.nodes.len()).filter(|node| *node != writer).collect();
    let mut running = Vec::new();
    for (number, node) in (0..CLIENTS)
        .flat_map(|number| survivors.iter().map(move |node| (number * 8 + *node as u32 + 1, *node)))
    {
        let client = Client::new(number, round.clone(), seed);
        running.push(tokio::spawn(send_once(client, node, from.clone(), to.clone())));
    }
    eventually(async || history.acknowledged() > COMMANDS_AFTER).await;
    let began = history.now();
    end(writer);
    let ended = history.now();
    for node in &survivors {
        eventually(async || history.acknowledged_at(*node, ended) >= COMMANDS_AFTER).await;
    }
    let gap = history.longest_gap(began, history.now());
    round.stop.store(true, Ordering::SeqCst);
    for client in running {
        client.await.expect("no panic");
    }
    let found = history.violations();
    assert!(found.is_empty(), "clients of other nodes saw the fail-over: {found:?}");
    gap
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_other_nodes_see_a_fail_over_as_latency_only() {
    const NAME: &str = "cluster::failover::clients_of_other_nodes_see_a_fail_over_as_latency_only";
    let seed = seed();
    let Some(cluster) = Cluster::start(NAME, &ClusterOptions::default()).await else { return };
    let times = number("RIALTO_CLUSTER_FAILOVERS").map_or(TIMES, |times| times as usize);
    let (mut killed, mut stopped) = (Vec::new(), Vec::new());
    for time in 0..times {
        let seed = seed.wrapping_add(2 * time as u64);
        killed.push(fail_over(&cluster, seed, |writer| cluster.nodes[writer].kill()).await);
        tokio::task::block_in_place(|| cluster.heal(Duration::ZERO));
        cluster.wait_until_ready().await;
        let stop = |writer: usize| {
            let status = tokio::task::block_in_place(|| cluster.nodes[writer].stop());
            assert!(status.is_some_and(|status| status.success()), "{status:?}");
        };
        stopped.push(fail_over(&cluster, seed + 1, stop).await);
        tokio::task::block_in_place(|| cluster.heal(Duration::ZERO));
        cluster.wait_until_ready().await;
    }
    for (how, gaps) in [("killed", &mut killed), ("handed over", &mut stopped)] {
        gaps.sort_unstable();
        let (median, last) = (percentile(gaps, 0.5), percentile(gaps, 0.99));
        println!("writer {how}, {} times: p50 {median:?}, p99 {last:?}", gaps.len());
    }
}
