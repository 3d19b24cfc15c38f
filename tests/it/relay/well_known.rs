//! The discovery document, and clients that know nothing else (R77, R78, R83, R84).

use rialto_protocols::kit::ijson;
use rialto_protocols::relay::wire::discovery::{Paths, ServerDocument};
use serde_json::{Value, json};

use super::kit::{BOTH, Peer, card, message};
use crate::kit::TestHub;

const FIXTURE: &str = include_str!("../../../crates/protocols/src/relay/fixtures/discovery.json");

#[tokio::test(flavor = "multi_thread")]
async fn the_document_has_what_the_spec_prints_and_our_own_bare() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[("limits.writes_per_minute", "600")]).await;
        let reply = hub.get(&format!("{prefix}/.well-known/chorus.json"), None).await.expect(200);
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let document = reply.json();
        let printed: Value = serde_json::from_str(FIXTURE).expect("JSON");
        assert_eq!(document["chorus_version"], printed["chorus_version"]);
        assert_eq!(document["server_name"], "Rialto");
        for (name, path) in printed["endpoints"].as_object().expect("an object") {
            assert_eq!(&document["endpoints"][name], path, "{name}");
        }
        assert_eq!(document["server_status"], "ok");
        let ours = json!({"register": "/agents", "discover": "/agents", "send": "/messages", "health": "/health",
            "self_register": "/register", "inbox": "/agent/inbox", "ack": "/agent/inbox/ack", "history": "/agent/messages"});
        assert_eq!(document["endpoints"], ours);
        assert_eq!(
            document["limits"],
            json!({"max_message_bytes": 65_536, "rate_limit_per_minute": 600})
        );
        for id in ["registry", "relay"] {
            assert_eq!(document["protocols"][id], format!("/{id}"));
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_of_the_document_is_served() {
    let hub = TestHub::serve(&[]).await;
    let document = hub.get("/.well-known/chorus.json", None).await.expect(200);
    for (name, path) in document.at("/endpoints").as_object().expect("an object") {
        let path = path.as_str().expect("a path");
        let get = hub.get(path, None).await;
        assert_ne!(get.status, 404, "{name} {path}");
    }
    hub.stop().await;
}

/// What an agent needs before it starts: the paths of the server's operations.
async fn paths(hub: &TestHub) -> Paths {
    let document = hub.get("/.well-known/chorus.json", None).await.expect(200);
    ServerDocument::read(&ijson::read(document.text.as_bytes()).expect("JSON")).paths
}

/// Registers, opens the inbox, finds the other agent and writes to it, as the skill text says.
#[tokio::test(flavor = "multi_thread")]
async fn two_strangers_meet_and_talk_with_the_document_alone_and_no_operator() {
    let hub = TestHub::serve(&[]).await;
    let at = paths(&hub).await;
    let mut peers = Vec::new();
    for id in ["your-agent-name@chorus", "other-agent@chorus"] {
        let body = json!({"agent_id": id, "agent_card": card()});
        let reply = hub.post(&at.self_register, None, &body).await.expect(201);
        peers.push(Peer { id: reply.str("/data/agent_id"), key: reply.str("/data/api_key") });
    }
    let (own, other) = (&peers[0], &peers[1]);
    let mut inbox = hub.inbox_from(&at.inbox, &other.key, None).await;
    assert_eq!(inbox.next().await.event, "connected");
    let found = hub.get(&at.discover, None).await.expect(200).at("/data");
    let other_id = found
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["agent_id"].as_str().expect("an id"))
        .find(|id| *id != own.id);
    assert_eq!(found[1]["agent_card"]["user_culture"], "en");
    let body = message(&own.id, other_id.expect("another"), "Hello!");
    let reply = hub.post(&at.send, Some(&own.key), &body).await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered_sse");
    let event = inbox.message().await;
    assert_eq!(event.said(), "Hello!");
    let up_to = event.position();
    let acked = hub.post(&at.ack, Some(&other.key), &json!({"up_to": up_to})).await.expect(200);
    assert_eq!(acked.at("/data"), json!({"acked_to": up_to, "pending": 0}));
    let history = hub.get(&at.history, Some(&own.key)).await.expect(200);
    assert_eq!(history.at("/data/0/envelope/original_text"), "Hello!");
    hub.get(&at.health, None).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_skills_flow_works_as_it_is_told_with_fixed_paths() {
    let hub = TestHub::serve(&[]).await;
    let me = hub
        .post("/register", None, &super::kit::registration("your-agent-name@chorus"))
        .await
        .expect(201);
    let key = me.str("/data/api_key");
    let other = hub.join("other-agent").await;
    let mut inbox = hub.inbox(&other).await;
    let text = include_str!("../../../crates/protocols/src/relay/fixtures/skill-send.json");
    let reply = hub.post_text("/messages", Some(&key), text).await.expect(200);
    assert_eq!(reply.str("/data/delivery"), "delivered_sse");
    assert_eq!(inbox.message().await.said(), "Hello!");
    hub.stop().await;
}
