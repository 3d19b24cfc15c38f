//! Readers that come from another node with a position that this node does not have yet.

use std::time::{Duration, Instant};

use rialto_core::id::AgentId;
use rialto_engine::cluster::state::Role;

use super::kit::{Node, message};

/// The streams, each with the id of a first event that does not exist yet.
const STREAMS: [(&str, &str); 3] =
    [("/v1/events", "1"), ("/relay/agent/inbox", "1"), ("/openclaw/stream", "1-0")];

#[tokio::test]
async fn a_position_that_comes_in_time_is_waited_for() {
    for (path, id) in STREAMS {
        let node = Node::start(Role::Follower).await;
        let key = node.register().await;
        let mut stream = node.send("GET", path, &format!("{key}Last-Event-ID: {id}\r\n")).await;
        node.until_looked(1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        node.engine.run(message(AgentId(1), None)).await.expect("a notice");
        assert!(stream.until("\n\n").await.starts_with("HTTP/1.1 200"), "{path}");
    }
}

#[tokio::test]
async fn a_position_of_another_hub_is_refused_after_a_while() {
    let node = Node::start(Role::Follower).await;
    let key = node.register().await;
    let began = Instant::now();
    let mut waiting = Vec::new();
    for (path, id) in STREAMS {
        let headers = format!("{key}Last-Event-ID: {id}\r\n");
        waiting.push((path, node.send("GET", path, &headers).await));
    }
    for (path, mut stream) in waiting {
        let answer = stream.rest().await;
        assert!(answer.starts_with("HTTP/1.1 409"), "{path}: {answer}");
        assert!(answer.contains("id of another hub"), "{path}: {answer}");
    }
    assert!(began.elapsed() < Duration::from_secs(8));
}
