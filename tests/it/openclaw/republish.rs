//! Publishing again: what is replaced, what continues, and who may do it (R24, R27).

use serde_json::{Value, json};

use super::kit::{Hub, assert_error, assert_rejected, capability, identity, with};
use super::spoil::put;
use crate::kit::snapshot;

const IDENTITY: &str = "/openclaw/identity";

/// The same agent with one capability of this name.
fn able_to(body: &Value, name: &str) -> Value {
    let capabilities = json!({"advertised_capabilities": [capability(name, json!({}))],
        "input_schemas": {}, "output_schemas": {}});
    put(body, "/capabilities", Some(capabilities))
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_again_replaces_the_identity_and_running_work_finishes() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let before = hub.entry(&worker.id).await;
    let body = with(&able_to(&worker.identity, "sing"), json!({"version": "2.0.0"}));
    let reply = hub.post(IDENTITY, Some(&worker.key), &body).await.expect(200);
    assert!(reply.json().get("api_key").is_none(), "a key is issued only once: {}", reply.text);
    let shown = hub.entry(&worker.id).await;
    assert_eq!(
        (&shown["version"], &shown["capabilities"]),
        (&json!("2.0.0"), &body["capabilities"])
    );
    assert_eq!(shown["registered_at"], before["registered_at"]);
    // A removed capability is refused, a new one is accepted, and running work continues.
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "capability_not_available");
    hub.accepted(&asker, &worker, json!({"capability_id": "sing"})).await;
    let found = hub.get("/openclaw/agents?capability=sum", None).await.expect(200);
    assert_eq!(
        found.at("/agents").as_array().map(Vec::len),
        Some(1),
        "only the requester is listed"
    );
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.view(&asker, &work.id).await["state"], "completed");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_input_schema_counts_from_then_on() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    hub.accepted(&asker, &worker, json!({})).await;
    let schema = json!({"type": "object", "required": ["b"]});
    let body = put(&worker.identity, "/capabilities/input_schemas/sum", Some(schema));
    hub.post(IDENTITY, Some(&worker.key), &body).await.expect(200);
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "invalid_input");
    hub.accepted(&asker, &worker, json!({"input_data": {"b": 1}})).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_exists_is_its_keys_alone() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let body = with(&node.identity, json!({"agent_name": "chimera-stolen"}));
    let before = snapshot(&hub).await;
    assert_error(&hub.post(IDENTITY, None, &body).await, 409, "CONFLICT");
    assert_error(&hub.post(IDENTITY, Some(&other.key), &body).await, 401, "UNAUTHORIZED");
    assert_error(&hub.post(IDENTITY, Some("rk_nonsense"), &body).await, 401, "UNAUTHORIZED");
    // The same id in upper case is the same id.
    let id = node.id.to_uppercase();
    let shouted = with(&body, json!({"agent_id": id}));
    assert_error(&hub.post(IDENTITY, None, &shouted).await, 409, "CONFLICT");
    assert_eq!(snapshot(&hub).await, before);
    assert_eq!(hub.entry(&node.id).await["agent_name"], "chimera-node");
    // The operator may change it, and the key stays the same.
    hub.post(IDENTITY, Some(&hub.operator), &body).await.expect(200);
    assert_eq!(hub.entry(&node.id).await["agent_name"], "chimera-stolen");
    hub.report(&node, "idle", json!({})).await.expect(200);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_update_changes_nothing() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let before = snapshot(&hub).await;
    let schema = json!({"$ref": "https://schemas.example/x"});
    for (pointer, value) in [
        ("/version", json!("2")),
        ("/capabilities/input_schemas/sum", schema),
        ("/status", json!({})),
    ] {
        let body = put(&node.identity, pointer, Some(value));
        assert_error(&hub.post(IDENTITY, Some(&node.key), &body).await, 400, "VALIDATION_ERROR");
    }
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_left_is_gone_and_only_its_former_key_brings_it_back() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let path = format!("/openclaw/agents/{}", node.id);
    assert_error(&hub.call("DELETE", &path, Some(&other.key), None).await, 404, "NOT_FOUND");
    assert_error(&hub.call("DELETE", &path, None, None).await, 401, "UNAUTHORIZED");
    let reply = hub.call("DELETE", &path, Some(&node.key), None).await.expect(200);
    assert_eq!(
        (reply.str("/status"), reply.str("/agent_id")),
        ("unregistered".to_owned(), node.id.clone())
    );
    for path in [path.clone(), format!("{path}/status"), format!("{path}/reputation")] {
        assert_error(&hub.get(&path, None).await, 404, "NOT_FOUND");
    }
    let listed = hub.get("/openclaw/agents", None).await.expect(200);
    assert!(!listed.text.contains(&node.id));
    assert_rejected(&hub.hire(&other, &node, json!({})).await, "capability_not_available");
    // Its key is only valid for registering again; other keys are refused.
    let before = snapshot(&hub).await;
    assert_error(&hub.report(&node, "idle", json!({})).await, 401, "UNAUTHORIZED");
    assert_error(&hub.post(IDENTITY, None, &node.identity).await, 409, "CONFLICT");
    assert_error(&hub.post(IDENTITY, Some(&other.key), &node.identity).await, 401, "UNAUTHORIZED");
    assert_error(&hub.call("DELETE", &path, Some(&hub.operator), None).await, 404, "NOT_FOUND");
    assert_eq!(snapshot(&hub).await, before);
    hub.post(IDENTITY, Some(&node.key), &node.identity).await.expect(200);
    hub.accepted(&other, &node, json!({})).await;
    let reply = hub.call("DELETE", &path, Some(&hub.operator), None).await.expect(200);
    assert_eq!(reply.str("/status"), "unregistered");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_itself_after_a_restart() {
    let hub = Hub::serve(&[]).await;
    let body =
        with(&identity("node", hub.now()), json!({"resource_limits": {"max_concurrent_tasks": 1}}));
    let node = hub.publish(&body).await;
    let before = hub.entry(&node.id).await;
    let hub = hub.restart(&[]).await;
    let after = hub.entry(&node.id).await;
    for name in ["agent_name", "capabilities", "resource_limits", "registered_at", "status"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    hub.report(&node, "idle", json!({})).await.expect(200);
    hub.0.stop().await;
}
