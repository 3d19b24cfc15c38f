//! How recent the state is that a node answers with.

use std::time::{Duration, Instant};

use rialto_engine::cluster::state::Role;
use rialto_protocols::adapter::{Freshness, OperationInfo, RateClass};

use super::kit::Node;
use crate::app::operations;

/// A path of the operation.
fn path(operation: &OperationInfo) -> String {
    let part = |part: &str| if part.starts_with('{') { "x".to_owned() } else { part.to_owned() };
    operation.path.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[test]
fn only_lists_of_agents_statistics_and_documents_may_be_a_moment_old() {
    let as_is = |operation: &OperationInfo| operation.freshness == Freshness::AsIs;
    let name = |operation: OperationInfo| format!("{} {}", operation.method, operation.path);
    let mut found: Vec<String> = operations().into_iter().filter(as_is).map(name).collect();
    found.sort();
    let expected = [
        "DELETE /clara/monitor/{process}",
        "DELETE /clara/mu/monitor/{process}",
        "GET /.well-known/agent-card.json",
        "GET /.well-known/ai-catalog.json",
        "GET /.well-known/chorus.json",
        "GET /a2a",
        "GET /a2a/.well-known/agent-card.json",
        "GET /a2a/.well-known/ai-catalog.json",
        "GET /a2a/agents",
        "GET /a2a/jwks.json",
        "GET /agents",
        "GET /agora",
        "GET /agora/agents",
        "GET /clara",
        "GET /discover",
        "GET /health",
        "GET /metrics",
        "GET /openapi.json",
        "GET /openclaw/agents",
        "GET /openclaw/health",
        "GET /registry/discover",
        "GET /registry/health",
        "GET /registry/skills",
        "GET /relay/.well-known/chorus.json",
        "GET /relay/agents",
        "GET /relay/health",
        "GET /skills",
        "GET /v1/agents",
        "GET /v1/operator/agents",
        "GET /v1/operator/cluster",
        "GET /v1/operator/stats",
        "POST /clara/monitor/{process}",
        "POST /clara/mu/monitor/{process}",
        "POST /discover",
        "POST /registry/discover",
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_strict_operation_looks_at_the_log_first_unless_the_writer_decides_it() {
    for role in [Role::Follower, Role::Writer] {
        let node = Node::start(role).await;
        for operation in operations() {
            let answer =
                node.ask(operation.method, &path(&operation), "Content-Length: 0\r\n").await;
            let decides = role == Role::Writer && operation.rate != RateClass::Read;
            // What the writer refuses it looks at afterwards: another node may have taken over.
            let is_refused = answer.starts_with("HTTP/1.1 4");
            let looks = operation.freshness == Freshness::Strict && (!decides || is_refused);
            let (method, path) = (operation.method, &operation.path);
            let found = node.coordinator.take_looks();
            assert_eq!(found, u32::from(looks), "{method} {path} at a {role:?}");
        }
    }
}

#[tokio::test]
async fn a_key_that_another_node_made_works_at_once() {
    // A strict read, a read that may be a moment old, and a write.
    for (method, path) in
        [("GET", "/v1/operator/jobs"), ("GET", "/v1/operator/stats"), ("POST", "/v1/operator/keys")]
    {
        let node = Node::start(Role::Follower).await;
        let (made, shown) = node.issue_key();
        node.coordinator.write_elsewhere(made);
        let answer = node.ask(method, path, &format!("{shown}Content-Length: 0\r\n")).await;
        assert!(!answer.starts_with("HTTP/1.1 401"), "{method} {path}: {answer}");
        let (_, wrong) = node.issue_key();
        let answer = node.ask(method, path, &format!("{wrong}Content-Length: 0\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{method} {path}: {answer}");
    }
}

/// Checks that a response says that the node is behind.
fn assert_behind(answer: &str, name: &str) {
    assert!(answer.starts_with("HTTP/1.1 503"), "{name}: {answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.to_lowercase().contains("retry-after: 1\r\n"), "{name}: {answer}");
    assert!(body.contains("newest state"), "{name}: {answer}");
}

#[tokio::test]
async fn a_node_that_cannot_look_at_the_log_answers_no_strict_read() {
    let node = Node::start(Role::Follower).await;
    node.coordinator.fail_looks();
    for operation in operations() {
        if operation.freshness == Freshness::Strict {
            let path = path(&operation);
            let answer = node.ask(operation.method, &path, "Content-Length: 0\r\n").await;
            assert_behind(&answer, &operation.path);
        }
    }
    assert!(node.ask("GET", "/v1/agents", "").await.starts_with("HTTP/1.1 200"));
    // The node cannot tell whether a key is wrong.
    let (_, unknown) = node.issue_key();
    assert_behind(&node.ask("GET", "/v1/agents", &unknown).await, "an unknown key");
}

#[tokio::test]
async fn a_node_that_is_not_current_answers_only_that_it_is_alive() {
    let node = Node::start(Role::Writer).await;
    assert!(node.ask("GET", "/readyz", "").await.ends_with("ready\n"));
    node.manual.set_current(false);
    for operation in operations() {
        // The body never comes, and is not waited for.
        let expects = "Expect: 100-continue\r\nContent-Length: 9\r\n";
        let answer = node.ask(operation.method, &path(&operation), expects).await;
        match operation.path.as_str() {
            // Pages that do not change with the hub.
            "/livez" | "/llms.txt" | "/skill" => {
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            }
            "/readyz" => {
                assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
                assert!(answer.ends_with("has not read the hub's log for a second\n"), "{answer}");
            }
            name => assert_behind(&answer, name),
        }
    }
    node.manual.set_current(true);
    assert!(node.ask("GET", "/readyz", "").await.ends_with("ready\n"));
    assert!(node.ask("GET", "/v1/agents", "").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn streams_and_waiting_reads_end_when_the_node_ceases_to_be_current() {
    let node = Node::start(Role::Follower).await;
    let key = node.register().await;
    let mut streams = Vec::new();
    for path in ["/v1/events", "/relay/agent/inbox", "/openclaw/stream"] {
        let mut stream = node.send("GET", path, &key).await;
        assert!(stream.until("\n\n").await.starts_with("HTTP/1.1 200"), "{path}");
        streams.push(stream);
    }
    let mut waiting = node.send("GET", "/v1/work?wait=30", &key).await;
    node.until_looked(1).await;
    node.manual.set_current(false);
    let began = Instant::now();
    for mut stream in streams {
        let rest = stream.rest().await;
        assert!(rest.ends_with("\r\n0\r\n\r\n"), "{rest:?}");
    }
    assert_behind(&waiting.rest().await, "a request that waits");
    assert!(began.elapsed() < Duration::from_millis(900), "the signal ends them, no timer");
}
