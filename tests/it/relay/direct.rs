//! The hub as the receive endpoint of an agent it hosts, for peers without an account (R55, R74,
//! R75, R85).

use serde_json::{Value, json};

use super::kit::{Peer, assert_error, envelope, escaped, turn, with};
use crate::kit::{Behaviour, Reply, TestHub, Worker};

const ON: [(&str, &str); 1] = [("relay.accept_direct", "true")];
const PEER: &str = "peer@elsewhere.example";

async fn receive(hub: &TestHub, to: &Peer, envelope: &Value) -> Reply {
    let path = format!("/relay/receive/{}", escaped(&to.id));
    hub.post(&path, None, &json!({"envelope": envelope})).await
}

/// A recipient's answer: the protocol's own form, without response envelope.
#[track_caller]
fn assert_ok(reply: &Reply) {
    assert_eq!((reply.status, reply.json()), (200, json!({"status": "ok"})), "{}", reply.text);
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[track_caller]
fn assert_said(reply: &Reply, status: u16, code: &str, about: &str) {
    assert_eq!(reply.status, status, "{}", reply.text);
    let detail = reply.str("/detail");
    let wanted = json!({"status": "error", "error_code": code, "detail": detail});
    assert_eq!(reply.json(), wanted);
    assert!(detail.contains(about), "{detail} does not mention {about}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_is_off_unless_it_is_switched_on() {
    let hub = TestHub::serve(&[]).await;
    let bob = hub.join("bob@chorus").await;
    let reply = receive(&hub, &bob, &envelope(PEER, "hello")).await;
    assert_error(&reply, 404, "ERR_NOT_FOUND");
    let inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.hello.expect("it was read").data["backlog"], 0);
    hub.stop().await;
    // It is enabled on a development hub.
    let hub = TestHub::open(&[]).await;
    let bob = hub.join("bob@chorus").await;
    assert_ok(&receive(&hub, &bob, &envelope(PEER, "hello")).await);
    // Only below the prefix: the root does not have this path.
    let body = json!({"envelope": envelope(PEER, "hello")});
    let reply = hub.post("/receive/bob", None, &body).await;
    assert_error(&reply, 404, "ERR_NOT_FOUND");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peers_envelope_reaches_the_inbox_marked_as_unproven() {
    let hub = TestHub::serve(&ON).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    assert_ok(&receive(&hub, &bob, &envelope(PEER, "waiting")).await);
    let mut inbox = hub.inbox(&bob).await;
    let mut said = envelope(PEER, "下午\n一起喝杯咖啡?");
    said["x_extra"] = json!({"a": [1]});
    assert_ok(&receive(&hub, &bob, &said).await);
    hub.say(&alice, &bob, "proven").await.expect(200);
    let waited = inbox.message().await;
    assert_eq!((waited.said(), &waited.data["verified"]), ("waiting", &json!(false)));
    let event = inbox.message().await;
    let wanted = json!({"trace_id": event.data["trace_id"], "sender_id": PEER, "envelope": said,
        "timestamp": event.data["timestamp"], "verified": false});
    assert_eq!(event.data, wanted);
    let proven = inbox.message().await;
    assert_eq!(proven.data.get("verified"), None);
    // The recipient is a party to it; no agent can claim to be its sender.
    let trace = event.data["trace_id"].as_str().expect("a trace id");
    assert_eq!(hub.standing(&bob, trace).await.expect(200).str("/data/sender_id"), PEER);
    assert_error(&hub.standing(&alice, trace).await, 404, "ERR_NOT_FOUND");
    // The short name is accepted, as everywhere.
    let body = json!({"envelope": envelope(PEER, "short")});
    assert_ok(&hub.post("/relay/receive/bob", None, &body).await);
    assert_eq!(inbox.message().await.said(), "short");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peers_envelope_is_passed_on_to_the_agents_endpoint() {
    let hub = TestHub::serve(&ON).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let bob = hub.join_at("bob@chorus", &worker.url).await;
    let said = envelope(PEER, "hello");
    assert_ok(&receive(&hub, &bob, &said).await);
    let got = worker.heard(1).await;
    assert_eq!(got[0].json(), json!({"envelope": said}));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_envelope_is_answered_in_the_words_of_a_receiver() {
    let hub = TestHub::serve(&ON).await;
    let bob = hub.join("bob@chorus").await;
    let good = envelope(PEER, "hello");
    let (invalid, version) = ("INVALID_ENVELOPE", "UNSUPPORTED_VERSION");
    for (pointer, value, code, about) in [
        ("/chorus_version", Some(json!("0.3")), version, "0.4"),
        ("/chorus_version", Some(json!("1.0")), version, "0.4"),
        ("/original_semantic", Some(json!("hello")), invalid, "0.4"),
        ("/chorus_version", Some(json!(0.4)), invalid, "0.4"),
        ("/chorus_version", None, invalid, "0.4"),
        ("/original_text", Some(json!("")), invalid, "original_text"),
        ("/original_text", None, invalid, "original_text"),
        ("/sender_culture", Some(json!("english")), invalid, "sender_culture"),
        ("/sender_id", Some(json!("alice")), invalid, "sender_id"),
        ("/turn_number", Some(json!(0)), invalid, "turn_number"),
        ("/conversation_id", Some(json!("c".repeat(65))), invalid, "conversation_id"),
    ] {
        let reply = receive(&hub, &bob, &with(&good, pointer, value)).await;
        assert_said(&reply, 400, code, about);
    }
    for body in ["", "not json", "[]", "{}", r#"{"envelope":null}"#, r#"{"envelope":7}"#] {
        let reply = hub.post_text("/relay/receive/bob", None, body).await;
        assert_said(&reply, 400, invalid, "");
    }
    let nobody = Peer { id: "nobody@chorus".into(), ..bob.clone() };
    assert_said(&receive(&hub, &nobody, &good).await, 400, invalid, "no agent");
    let inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.hello.expect("it was read").data["backlog"], 0, "nothing was stored");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registered_agent_cannot_be_named_without_its_key() {
    let hub = TestHub::serve(&ON).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    for id in ["alice@chorus", "ALICE@Chorus", "bob@chorus"] {
        let reply = receive(&hub, &bob, &envelope(id, "hello")).await;
        assert_said(&reply, 400, "INVALID_ENVELOPE", "/messages");
    }
    // Not with its own key either, and not after it has left: the id stays reserved.
    let body = json!({"envelope": envelope(&alice.id, "hello")});
    let reply = hub.post("/relay/receive/bob", Some(&alice.key), &body).await;
    assert_said(&reply, 400, "INVALID_ENVELOPE", "/messages");
    hub.call("DELETE", "/relay/agents/alice", Some(&alice.key), None).await.expect(200);
    let reply = receive(&hub, &bob, &envelope(&alice.id, "hello")).await;
    assert_said(&reply, 400, "INVALID_ENVELOPE", "/messages");
    let inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.hello.expect("it was read").data["backlog"], 0, "nothing was stored");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_turn_of_the_same_peer_is_one_message() {
    let hub = TestHub::serve(&ON).await;
    let (bob, carol) = (hub.join("bob@chorus").await, hub.join("carol@chorus").await);
    let said = turn(PEER, "hello", "c", 1);
    for _ in 0..5 {
        assert_ok(&receive(&hub, &bob, &said).await);
    }
    // Another peer, recipient or turn is another message.
    assert_ok(&receive(&hub, &bob, &turn("other@elsewhere.example", "hello", "c", 1)).await);
    assert_ok(&receive(&hub, &bob, &turn(PEER, "hello", "c", 2)).await);
    assert_ok(&receive(&hub, &carol, &said).await);
    let mut inbox = hub.inbox(&bob).await;
    assert_eq!(inbox.hello.as_ref().expect("it was read").data["backlog"], 3);
    for (from, number) in [(PEER, 1), ("other@elsewhere.example", 1), (PEER, 2)] {
        let event = inbox.message().await;
        let turn = &event.data["envelope"]["turn_number"];
        assert_eq!((&event.data["sender_id"], turn), (&json!(from), &json!(number)));
    }
    // Equal content makes it a repeat; other content in the same turn does not.
    let reply = receive(&hub, &bob, &turn(PEER, "something else", "c", 1)).await;
    assert_ne!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.str("/status"), "error");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_envelope_is_received_as_well() {
    let hub = TestHub::serve(&ON).await;
    let bob = hub.join("bob@chorus").await;
    let said = envelope(PEER, "hello");
    let part = json!({"data": said, "mediaType": "application/vnd.chorus.envelope+json"});
    let wrapped = |parts: Value| json!({"messageId": "m", "role": "ROLE_USER", "parts": parts});
    assert_ok(&receive(&hub, &bob, &wrapped(json!([part]))).await);
    assert_eq!(hub.inbox(&bob).await.message().await.data["envelope"], said);
    let reply = receive(&hub, &bob, &wrapped(json!([part, part]))).await;
    assert_said(&reply, 400, "INVALID_ENVELOPE", "parts");
    hub.stop().await;
}
