//! What only the writer of several nodes does.

use std::net::SocketAddr;
use std::time::Duration;

use rialto_core::id::AgentId;
use rialto_engine::cluster::state::Role;
use rialto_protocols::openclaw;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::kit::{LONG, Node, message};
use crate::app::operations;

/// Long enough for what must not happen.
const A_WHILE: Duration = Duration::from_millis(300);

async fn endpoint() -> (TcpListener, String) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = TcpListener::bind(any).await.expect("a free port");
    let url = format!("http://{}/in", listener.local_addr().expect("it is bound"));
    (listener, url)
}

#[tokio::test]
async fn a_follower_delivers_nothing_until_it_becomes_the_writer() {
    let node = Node::start(Role::Follower).await;
    node.register().await;
    let (listener, url) = endpoint().await;
    node.engine.run(message(AgentId(1), Some(url))).await.expect("a delivery that is due");
    assert!(timeout(A_WHILE, listener.accept()).await.is_err(), "the writer delivers it");
    node.manual.set_role(Role::Writer);
    timeout(LONG, listener.accept()).await.expect("it is delivered now").expect("a connection");
}

/// The example of an operation of openclaw, with another agent and endpoint.
fn openclaw_example(path: &str, agent: &str, endpoint: &str) -> String {
    let path = format!("/{}{path}", openclaw::ID);
    let operation = operations().into_iter().find(|operation| operation.path == path);
    let example = operation.and_then(|operation| operation.example).expect("an example");
    let mut message: Value = serde_json::from_str(example).expect("JSON");
    message["agent_id"] = json!(agent);
    if message.get("capabilities").is_some() {
        message["endpoint"] = json!(endpoint);
    }
    message.to_string()
}

#[tokio::test]
async fn background_tasks_run_at_the_writer_only() {
    let node = Node::start(Role::Follower).await;
    let (listener, url) = endpoint().await;
    let agent = "550e8400-e29b-41d4-a716-446655440000";
    let identity = openclaw_example("/identity", agent, &url);
    let published = node.post("/openclaw/identity", "", &identity).await;
    let (_, rest) = published.split_once(r#""api_key":""#).expect(&published);
    let key = format!("Authorization: Bearer {}\r\n", rest.split('"').next().expect("a key"));
    let status = openclaw_example("/status", agent, &url);
    let report = async || {
        let answer = node.post("/openclaw/status", &key, &status).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    report().await;
    assert!(timeout(A_WHILE, listener.accept()).await.is_err(), "the writer posts updates");
    node.manual.set_role(Role::Writer);
    // The task begins with what happens from now on.
    let posted = async {
        loop {
            report().await;
            if let Ok(connection) = timeout(A_WHILE, listener.accept()).await {
                return connection;
            }
        }
    };
    timeout(LONG, posted).await.expect("it is posted now").expect("a connection");
}

#[tokio::test]
async fn a_new_writer_gives_agents_the_aliases_that_they_lack() {
    let node = Node::start(Role::Follower).await;
    let lacks =
        || node.engine.with_world(|world| world.alias_of(AgentId(1), openclaw::ID).is_none());
    node.register_without_aliases().await;
    tokio::time::sleep(A_WHILE).await;
    assert!(lacks());
    node.manual.set_role(Role::Writer);
    let given = async {
        while lacks() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, given).await.expect("it gets them in time");
}

#[tokio::test]
async fn a_node_that_stops_lets_another_one_write() {
    let node = Node::start(Role::Writer).await;
    assert!(!node.coordinator.has_resigned());
    node.trigger.trigger();
    let Node { hub, shutdown, coordinator, .. } = node;
    hub.run(&shutdown).await.expect("it stops");
    assert!(coordinator.has_resigned());
}

#[tokio::test]
async fn a_follower_asks_the_writer_which_program_works_as_an_agent() {
    for role in [Role::Follower, Role::Writer] {
        let node = Node::start(role).await;
        let key = node.register().await;
        let ask = async |name| node.ask("GET", &format!("/v1/work?instance={name}"), &key).await;
        assert!(ask("one").await.starts_with("HTTP/1.1 200"));
        let refused = ask("two").await;
        assert!(refused.starts_with("HTTP/1.1 409"), "{role:?}: {refused}");
        // The end of the first request arrives after its answer.
        let reserved = async {
            while !ask("two").await.contains("a moment ago") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LONG, reserved).await.expect("the work is only reserved then");
        assert!(ask("one").await.starts_with("HTTP/1.1 200"));
    }
}
