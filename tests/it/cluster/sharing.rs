//! What nodes share: keys, idempotency keys, streams, positions.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Cluster, ClusterOptions};
use crate::kit::{Agent, together};
use crate::relay::kit::events;

/// How often one key is sent to all nodes at once.
const KEYS: usize = 60;
/// Messages that a stream reads over all nodes.
const MESSAGES: u64 = 60;

/// Registers an agent at a node.
pub async fn register(cluster: &Cluster, node: usize, owner: &str) -> Agent {
    let body = json!({"agent_name": owner, "owner_id": owner, "skills": []});
    let (status, made) = post(cluster, node, "/registry/register", None, None, &body).await;
    assert_eq!(status, 201, "{made}");
    let word = |name: &str| made[name].as_str().expect("text").to_owned();
    Agent { id: word("agent_id"), key: word("api_key"), owner: owner.to_owned() }
}

/// Posts at a node: status and body.
async fn post(
    cluster: &Cluster,
    node: usize,
    path: &str,
    bearer: Option<&str>,
    once: Option<&str>,
    body: &Value,
) -> (u16, Value) {
    let mut request = cluster.http.post(format!("{}{path}", cluster.nodes[node].url));
    if let Some(bearer) = bearer {
        request = request.bearer_auth(bearer);
    }
    if let Some(once) = once {
        request = request.header("idempotency-key", once);
    }
    let answer = request.body(body.to_string()).send().await.expect("an answer");
    let status = answer.status().as_u16();
    let text = answer.text().await.expect("a body");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_answers_streams_and_positions_are_the_same_at_every_node() {
    const NAME: &str =
        "cluster::sharing::keys_answers_streams_and_positions_are_the_same_at_every_node";
    let Some(cluster) = Cluster::start(NAME, &ClusterOptions::default()).await else { return };
    // Each has agents of its own, so they share one cluster, and some of them only wait.
    tokio::join!(
        a_key_that_is_sent_to_all_nodes_at_once_has_one_effect_and_one_answer(&cluster),
        a_stream_goes_on_at_another_node_without_gap_or_repeat(&cluster),
        a_position_of_another_hub_is_refused_at_every_node(&cluster),
        a_key_revoked_at_one_node_ends_its_streams_at_the_others_and_works_nowhere(&cluster),
    );
}

async fn a_key_that_is_sent_to_all_nodes_at_once_has_one_effect_and_one_answer(cluster: &Cluster) {
    // Registered at one node, used at the others at once.
    let from = register(cluster, 0, "from with keys").await;
    let to = register(cluster, 1, "to with keys").await;
    for number in 0..KEYS {
        let (key, body) = (format!("key {number}"), json!({"to": to.id, "body": number}));
        let send = |node| post(cluster, node, "/v1/messages", Some(&from.key), Some(&key), &body);
        let answers = together((0..cluster.nodes.len()).map(send)).await;
        let expected = json!({"position": number + 1});
        for (status, answer) in answers {
            // The first one may still be running.
            let is_first = status == 200 && answer == expected;
            assert!(is_first || status == 409 && answer["code"] == "still_running", "{answer}");
        }
        // Now everybody knows the answer.
        let again = together((0..cluster.nodes.len()).map(send)).await;
        assert!(again.iter().all(|(status, answer)| *status == 200 && *answer == expected));
    }
}

/// Reads events of a stream at a node after a position, until there are enough.
async fn read_stream(
    cluster: &Cluster,
    node: usize,
    key: &str,
    after: u64,
    count: usize,
) -> Vec<u64> {
    let request = cluster.http.get(format!("{}/v1/events", cluster.nodes[node].url));
    let request = request.bearer_auth(key).header("last-event-id", after.to_string());
    let mut answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), 200, "after {after} at {node}");
    let (mut bytes, mut positions) = (Vec::new(), Vec::new());
    while positions.len() < count {
        let more = answer.chunk().await.expect("a stream").expect("more events");
        bytes.extend_from_slice(&more);
        let all = events(&mut bytes).into_iter().filter(|event| event.event == "message");
        positions.extend(all.map(|event| event.position()));
    }
    positions
}

async fn a_stream_goes_on_at_another_node_without_gap_or_repeat(cluster: &Cluster) {
    let (from, to) = (register(cluster, 0, "from").await, register(cluster, 1, "to").await);
    let send = async {
        for number in 0..MESSAGES {
            let (node, body) = (number as usize % 3, json!({"to": to.id, "body": number}));
            let (status, answer) =
                post(cluster, node, "/v1/messages", Some(&from.key), None, &body).await;
            assert_eq!((status, answer["position"].as_u64()), (200, Some(number + 1)));
        }
    };
    let read = async {
        let mut last = 0;
        for hop in 0.. {
            // The position comes from a node that may be ahead of this one.
            let positions = read_stream(cluster, hop % 3, &to.key, last, 1).await;
            for position in positions {
                assert_eq!(position, last + 1, "at hop {hop}");
                last = position;
            }
            if last == MESSAGES {
                return;
            }
        }
    };
    tokio::join!(send, read);
}

async fn a_position_of_another_hub_is_refused_at_every_node(cluster: &Cluster) {
    let reader = register(cluster, 0, "reader").await;
    let ask = |node: usize| {
        let request = cluster.http.get(format!("{}/v1/events", cluster.nodes[node].url));
        let request = request.bearer_auth(&reader.key).header("last-event-id", "4711");
        async move { request.send().await.expect("an answer").status().as_u16() }
    };
    let answers = tokio::time::timeout(Duration::from_secs(60), together((0..3).map(ask))).await;
    assert_eq!(answers.expect("nobody waits for ever"), [409, 409, 409]);
}

async fn a_key_revoked_at_one_node_ends_its_streams_at_the_others_and_works_nowhere(
    cluster: &Cluster,
) {
    let reader = register(cluster, 0, "revoked").await;
    let url = |node: usize, path: &str| format!("{}{path}", cluster.nodes[node].url);
    let open = |node| cluster.http.get(url(node, "/v1/events")).bearer_auth(&reader.key).send();
    let mut streams = Vec::new();
    for node in 0..cluster.nodes.len() {
        let stream = open(node).await.expect("an answer");
        assert_eq!(stream.status(), 200, "a key works at every node at once");
        streams.push(stream);
    }
    let revoked = cluster.http.delete(url(2, "/v1/keys")).bearer_auth(&reader.key).send().await;
    assert!(revoked.expect("an answer").status().is_success());
    for node in 0..cluster.nodes.len() {
        let status = open(node).await.expect("an answer").status();
        assert_eq!(status, 401, "at node {node}, right after it was revoked at another");
    }
    for mut stream in streams {
        let end = async { while let Ok(Some(_)) = stream.chunk().await {} };
        tokio::time::timeout(Duration::from_secs(30), end).await.expect("the stream ends");
    }
}
