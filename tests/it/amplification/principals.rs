//! Writes are counted per caller, whichever credential proves it.

use rialto_protocols::agora::MessageType;
use serde_json::json;

use crate::agora::kit::{Hub as AgoraHub, Key};
use crate::kit::TestHub;
use crate::relay::kit::message;

/// Writes per minute in these tests.
const WRITES: usize = 4;

fn limits() -> [(&'static str, &'static str); 1] {
    [("limits.writes_per_minute", "4")]
}

/// A write with this header.
async fn beat(hub: &TestHub, agent: &str, authorization: &str) -> u16 {
    let request = hub.http.post(format!("{}/registry/heartbeat", hub.url));
    let request = request.header("authorization", authorization);
    let request = request.body(json!({"agent_id": agent}).to_string());
    request.send().await.expect("an answer").status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_spelled_in_many_ways_is_one_writer() {
    let hub = TestHub::serve(&limits()).await;
    let (agent, other) = (hub.orchestrator("one").await, hub.orchestrator("other").await);
    let key = &agent.key;
    for scheme in ["Bearer ", "bearer ", "BEARER ", "Bearer  "] {
        assert_eq!(beat(&hub, &agent.id, &format!("{scheme}{key}")).await, 200, "{scheme:?}");
    }
    for scheme in ["bEARER ", "Bearer   ", "beareR  ", "Bearer "] {
        assert_eq!(beat(&hub, &agent.id, &format!("{scheme}{key}")).await, 429, "{scheme:?}");
    }
    let free = beat(&hub, &other.id, &format!("Bearer {}", other.key)).await;
    assert_eq!(free, 200, "another agent at the same address has its own limit");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_is_the_same_writer() {
    let hub = TestHub::serve(&limits()).await;
    let agent = hub.orchestrator("one").await;
    let mut key = agent.key;
    for _ in 0..WRITES {
        let rotated = hub.post("/v1/keys/rotate", Some(&key), &json!({})).await.expect(200);
        key = rotated.str("/key");
    }
    assert_eq!(beat(&hub, &agent.id, &format!("Bearer {key}")).await, 429);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_protocol_and_the_short_way_for_sends_count_an_agent_together() {
    let hub = TestHub::serve(&limits()).await;
    let reply = hub.post("/relay/register", None, &json!({"agent_id": "ada"})).await.expect(201);
    let (id, key) = (reply.str("/data/agent_id"), reply.str("/data/api_key"));
    hub.post("/relay/register", None, &json!({"agent_id": "bob"})).await.expect(201);
    let body = message(&id, "bob", "hello").to_string();
    for scheme in ["Bearer", "bearer"] {
        let sent = hub.http.post(format!("{}/relay/messages", hub.url));
        let sent = sent.header("authorization", format!("{scheme} {key}")).body(body.clone());
        let status = sent.send().await.expect("an answer").status().as_u16();
        assert!(status < 300, "{status}");
    }
    for _ in 2..WRITES {
        hub.post("/v1/me/status", Some(&key), &json!({"status": "online"})).await.expect(200);
    }
    let refused = hub.post("/messages", Some(&key), &message(&id, "bob", "again")).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(refused.header("retry-after").is_some());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_signs_and_what_it_sends_with_its_inbox_token_is_counted_together() {
    let hub = AgoraHub::serve(&limits()).await;
    let (key, note) = (Key::of(1), json!({"status": "idle"}));
    let token = hub.hello(&key, json!({})).await;
    for _ in 0..WRITES - 2 {
        hub.tell(&key.sign(MessageType::Status, &note)).await.expect(202);
    }
    let ack = json!({"up_to": 0});
    let acked = async |token: &str| hub.post("/agora/inbox/ack", Some(token), &ack).await.status;
    assert_eq!(acked(&token.0).await, 200);
    assert_eq!(acked(&token.0).await, 429);
    assert_eq!(hub.tell(&key.sign(MessageType::Status, &note)).await.status, 429);
    hub.halt().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_answers_are_refused_to_who_has_read_too_many_and_short_ones_and_others_are_not() {
    let hub = TestHub::serve(&[("limits.read_bytes_per_minute", "2097152")]).await;
    let (agent, other) = (hub.orchestrator("one").await, hub.orchestrator("other").await);
    super::answers::swell(&hub, 12, "long").await;
    let path = "/registry/discover?skill=long&limit=200";
    let mut answers = 0;
    while hub.get(path, Some(&agent.key)).await.status == 200 {
        answers += 1;
        assert!(answers < 10, "two mebibytes a minute allow three or four answers");
    }
    let refused = hub.get(path, Some(&agent.key)).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(refused.header("retry-after").is_some());
    hub.get(path, Some(&other.key)).await.expect(200);
    hub.get(path, None).await.expect(200);
    hub.get("/registry/health", Some(&agent.key)).await.expect(200);
    hub.post("/registry/heartbeat", Some(&agent.key), &json!({"agent_id": agent.id}))
        .await
        .expect(200);
    hub.stop().await;
}
