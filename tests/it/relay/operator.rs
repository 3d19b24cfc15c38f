//! The operator: registers agents, issues their keys, and may send in their name (R16–R19, R35).

use serde_json::json;

use super::kit::{
    BOTH, Peer, assert_bad, assert_error, assert_rejected, assert_wrapped, message, registration,
    state, with,
};
use crate::kit::{Behaviour, TestHub, Worker};

const FIXTURE: &str =
    include_str!("../../../crates/protocols/src/relay/fixtures/register-operator.json");

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_operator_registration_is_answered_201_and_its_repeat_200() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let path = format!("{prefix}/agents");
        let new = hub.post_text(&path, Some(&hub.operator), FIXTURE).await.expect(201);
        assert_wrapped(&new, true);
        let record = json!({"agent_id": "alice@chorus.example", "endpoint": "https://alice.example/receive",
            "agent_card": {"card_version": "0.3", "user_culture": "zh-CN", "supported_languages": ["zh-CN", "en"]},
            "registered_at": new.at("/data/registered_at"), "online": true, "protocol": "relay"});
        assert_eq!(new.at("/data"), record, "the record itself, and no key");
        let again = hub.post_text(&path, Some(&hub.operator), FIXTURE).await.expect(200);
        assert_eq!(again.at("/data"), record);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_must_say_where_an_agent_is_called() {
    let hub = TestHub::serve(&[]).await;
    let before = state(&hub).await;
    for prefix in BOTH {
        let path = format!("{prefix}/agents");
        for wrong in [
            None,
            Some(json!(null)),
            Some(json!("")),
            Some(json!("alice.example")),
            Some(json!("/in")),
            Some(json!(7)),
            Some(json!("mailto:a@b")),
        ] {
            let body = with(&registration("ada@chorus"), "/endpoint", wrong);
            assert_bad(&hub.post(&path, Some(&hub.operator), &body).await, "/endpoint");
        }
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_operator_registers_agents_there() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let other = hub.orchestrator("other").await;
    let before = state(&hub).await;
    let body = with(&registration("bob@chorus"), "/endpoint", Some(json!("https://bob.example")));
    for prefix in BOTH {
        for path in [format!("{prefix}/agents"), format!("{prefix}/agents/ada/key")] {
            for key in [
                None,
                Some("ro_x"),
                Some("ca_x"),
                Some("ro_0123456789abcdef0123456789abcdef0123456700000000"),
            ] {
                let reply = hub.post(&path, key, &body).await;
                assert_error(&reply, 401, "ERR_UNAUTHORIZED");
            }
            for key in [&ada.key, &other.key] {
                let reply = hub.post(&path, Some(key), &body).await;
                assert_error(&reply, 403, "ERR_FORBIDDEN");
            }
        }
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ways_to_register_work_side_by_side() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let ada = hub.join("ada").await;
    let body = json!({"agent_id": "bob", "endpoint": worker.url});
    hub.post("/agents", Some(&hub.operator), &body).await.expect(201);
    let sent =
        hub.post("/messages", Some(&ada.key), &message(&ada.id, "bob", "hi")).await.expect(200);
    assert_eq!(sent.str("/data/delivery"), "delivered");
    assert_eq!(worker.got().len(), 1);
    // An id registered in one way is taken for the other.
    let own = hub.post("/register", None, &registration("bob@chorus")).await;
    assert_error(&own, 409, "ERR_AGENT_ID_TAKEN");
    // The operator may update an agent that registered itself; its key stays valid.
    let body = json!({"agent_id": "ada", "endpoint": "https://ada.example/in"});
    hub.post("/agents", Some(&hub.operator), &body).await.expect(200);
    hub.get("/agent/blocks", Some(&ada.key)).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_mints_keys_for_agents_of_this_protocol() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let stranger = hub.orchestrator("stranger").await;
        let body = json!({"agent_id": "Bob", "endpoint": "https://bob.example"});
        hub.post("/relay/agents", Some(&hub.operator), &body).await.expect(201);
        let path = format!("{prefix}/agents/bob/key");
        let minted = hub.call("POST", &path, Some(&hub.operator), None).await.expect(201);
        let key = minted.str("/data/api_key");
        assert_eq!(minted.at("/data"), json!({"agent_id": "Bob@chorus", "api_key": key}));
        assert!(key.starts_with("ca_") && key.len() == 51);
        let bob = Peer { id: "Bob@chorus".to_owned(), key };
        drop(hub.inbox(&bob).await);
        // With an idempotency key the new key is shown once.
        let first = hub.post_once(&path, Some(&hub.operator), "k1", &json!({})).await.expect(201);
        let again = hub.post_once(&path, Some(&hub.operator), "k1", &json!({})).await.expect(201);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert!(again.json().pointer("/data/api_key").is_none());
        hub.get("/agent/blocks", Some(&first.str("/data/api_key"))).await.expect(200);

        let alias = hub.get("/agents?protocol=registry", None).await.str("/data/0/agent_id");
        let before = state(&hub).await;
        for id in ["carol", "%FF", &alias, &stranger.id] {
            let reply = hub
                .call("POST", &format!("{prefix}/agents/{id}/key"), Some(&hub.operator), None)
                .await;
            assert_error(&reply, 404, "ERR_AGENT_NOT_FOUND");
        }
        assert_eq!(state(&hub).await, before);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_writes_for_any_agent_and_the_receiver_and_the_log_are_told() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let mut inbox = hub.inbox(&bob).await;
    hub.say(&ada, &bob, "my own word").await.expect(200);
    assert!(inbox.message().await.data.get("sent_by").is_none());
    let events = hub.engine.with_world(|world| world.next.event.0);
    hub.say(&ada, &bob, "my own word again").await.expect(200);
    inbox.message().await;
    assert_eq!(hub.engine.with_world(|world| world.next.event.0), events);
    let body = message(&ada.id, &bob.id, "in your name");
    hub.post("/messages", Some(&hub.operator), &body).await.expect(200);
    let event = inbox.message().await;
    assert_eq!(event.data["sent_by"], "operator");
    assert_eq!((event.said(), &event.data["sender_id"]), ("in your name", &json!("ada@chorus")));
    assert!(event.data["envelope"].get("sent_by").is_none(), "the envelope is unchanged");
    assert_eq!(
        hub.engine.with_world(|world| world.next.event.0),
        events + 1,
        "it is in the history"
    );
    let before = state(&hub).await;
    let body = message("carol@chorus", &bob.id, "in nobody's name");
    let reply = hub.post("/messages", Some(&hub.operator), &body).await;
    assert_rejected(&reply, 400, "ERR_SENDER_NOT_REGISTERED");
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_does_to_an_agent_is_in_the_log_as_the_operators() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let body = json!({"agent_id": "ada", "endpoint": "https://ada.example/in"});
    hub.post("/agents", Some(&hub.operator), &body).await.expect(200);
    hub.call("POST", "/agents/ada/key", Some(&hub.operator), None).await.expect(201);
    hub.post("/v1/keys/rotate", Some(&ada.key), &json!({})).await.expect(200);
    let mut history = hub.inbox_from("/v1/events?after=0", &hub.operator, None).await;
    let mut told = Vec::new();
    while told.len() < 4 {
        let line = history.next().await.data;
        let facts = line["events"].as_array().expect("facts").clone();
        let about = ["agent_enrolled", "agent_updated", "key_issued"];
        let fact =
            facts.iter().find_map(|fact| about.into_iter().find(|one| fact["event"] == **one));
        told.extend(fact.map(|fact| (fact, line.get("by_operator").cloned())));
    }
    let yes = Some(json!(true));
    let expected = [
        ("agent_enrolled", None),
        ("agent_updated", yes.clone()),
        ("key_issued", yes),
        ("key_issued", None),
    ];
    assert_eq!(told, expected);
    hub.stop().await;
}
