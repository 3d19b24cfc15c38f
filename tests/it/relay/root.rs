//! The root, which protocols share: `POST /register` is told apart by its body, and the other paths
//! by their owner (X1–X3).

use serde_json::{Value, json};

use super::kit::{assert_bad, assert_error, assert_stamp, card, registration, state};
use crate::kit::{Reply, TestHub, assert_malformed};

const UUID: &str = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";

#[track_caller]
fn assert_fits_nobody(reply: &Reply) {
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert_eq!((reply.at("/success"), reply.str("/status")), (json!(false), "error".to_owned()));
    assert_eq!(reply.str("/error_code"), "INVALID_REQUEST");
    assert_eq!(reply.str("/error/code"), "ERR_VALIDATION");
    assert_eq!(reply.at("/error/retryable"), false);
    assert_stamp(&reply.str("/metadata/timestamp"));
    let text = reply.str("/error_message");
    assert_eq!((reply.str("/error/message"), reply.str("/detail")), (text.clone(), text));
    let shapes = reply.at("/error/shapes");
    let mut known: Vec<_> = shapes
        .as_array()
        .expect("a list")
        .iter()
        .map(|shape| (shape["protocol"].as_str(), shape["path"].as_str()))
        .collect();
    known.sort_unstable();
    let wanted = [("registry", "/registry/register"), ("relay", "/relay/register")];
    assert_eq!(known, wanted.map(|(id, path)| (Some(id), Some(path))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_goes_where_its_shape_says() {
    let hub = TestHub::serve(&[]).await;
    for (body, id) in [
        (json!({"agent_id": "x@y"}), "x@y"),
        (json!({"agent_id": "short", "agent_card": card()}), "short@chorus"),
        (registration("my-agent@chorus"), "my-agent@chorus"),
    ] {
        let reply = hub.post("/register", None, &body).await.expect(201);
        assert_eq!(reply.str("/data/agent_id"), id);
        assert_eq!(hub.record(id).await["protocol"], "relay");
    }
    for body in [
        json!({"agent_name": "n", "owner_id": "o", "skills": []}),
        json!({"agent_name": "n", "owner_id": "p", "agent_id": UUID}),
    ] {
        let reply = hub.post("/register", None, &body).await.expect(201);
        assert_eq!(reply.str("/status"), "registered");
        assert!(reply.str("/api_key").starts_with("rk_"));
    }
    // Once the form selects a protocol, that protocol names the error.
    assert_bad(&hub.post("/register", None, &json!({"agent_id": "x@y@z"})).await, "/agent_id");
    assert_bad(&hub.post("/register", None, &json!({"agent_card": card()})).await, "/agent_id");
    let reply = hub.post("/register", None, &json!({"agent_id": "z@y", "agent_card": {}})).await;
    assert_bad(&reply, "/agent_card/card_version");
    assert_malformed(&hub.post("/register", None, &json!({"agent_id": UUID})).await, "/owner_id");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_fits_neither_or_both_is_shown_both() {
    let hub = TestHub::serve(&[]).await;
    let before = state(&hub).await;
    for body in [
        json!({"agent_id": "bob"}),
        json!({}),
        json!({"agent_card": {}, "owner_id": "o"}),
        json!({"agent_id": "x@y", "agent_name": "n"}),
        json!({"agent_id": "x@y", "skills": []}),
        json!({"agent_id": UUID, "agent_card": card()}),
        json!({"agent_id": ["x@y"]}),
        json!([]),
        Value::Null,
    ] {
        assert_fits_nobody(&hub.post("/register", None, &body).await);
    }
    assert_fits_nobody(&hub.post_text("/register", None, "{\"agent_id\":").await);
    assert_eq!(state(&hub).await, before);
    // With the prefix the protocol is clear.
    hub.post("/relay/register", None, &json!({"agent_id": "bob"})).await.expect(201);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_examples_work_where_they_say() {
    let hub = TestHub::serve(&[]).await;
    let reply = hub.post("/register", None, &json!({})).await;
    for shape in reply.at("/error/shapes").as_array().expect("a list") {
        let path = shape["path"].as_str().expect("a path");
        hub.post(path, None, &shape["example"]).await.expect(201);
        if shape["protocol"] == "relay" {
            assert_eq!(shape["example"], registration("my-agent@chorus"));
        }
    }
    hub.stop().await;
    // At the root, each by its own form.
    let hub = TestHub::serve(&[]).await;
    for shape in reply.at("/error/shapes").as_array().expect("a list") {
        hub.post("/register", None, &shape["example"]).await.expect(201);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_and_health_are_the_relays_and_discover_the_registrys() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let worker = hub.agent("acme", "analyze_text", "0", None).await;
    let agents = hub.get("/agents", None).await.expect(200);
    assert_eq!(agents.at("/data").as_array().expect("a list").len(), 2);
    assert_eq!(hub.get("/agents/ada", None).await.expect(200).str("/data/agent_id"), ada.id);
    // A registry id is unknown here, but valid at the registry's own path.
    let theirs = hub.get(&format!("/agents/{}", worker.id), None).await;
    assert_error(&theirs, 404, "ERR_AGENT_NOT_FOUND");
    let own = hub.get(&format!("/registry/agents/{}", worker.id), None).await.expect(200);
    assert_eq!(own.str("/agent_id"), worker.id);
    assert!(hub.get("/health", None).await.expect(200).at("/data/inbox_connections").is_u64());
    assert!(hub.get("/registry/health", None).await.expect(200).json().get("data").is_none());

    assert_malformed(&hub.get("/discover", None).await, "?skill");
    let found = hub.get("/discover?skill=analyze_text", None).await.expect(200);
    assert_eq!(found.json().get("success"), None);
    assert_error(&hub.get("/relay/discover", None).await, 404, "ERR_NOT_FOUND");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_repeats_count_at_the_root_as_under_the_prefix() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let body = registration("ada@chorus");
    assert_error(&hub.post("/register", None, &body).await, 409, "ERR_AGENT_ID_TAKEN");
    assert_error(&hub.post("/register", Some("ca_x"), &body).await, 401, "ERR_UNAUTHORIZED");
    let reply = hub.post("/register", Some(&ada.key), &body).await.expect(200);
    assert_eq!(reply.str("/data/api_key"), ada.key);
    hub.stop().await;
}
