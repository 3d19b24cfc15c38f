//! A hub without keys: it accepts claimed identities, for agents of this protocol only.

use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, fresh_id, identity, with};
use crate::kit::{Reply, snapshot};

const REQUESTS: &str = "/openclaw/collaborations";

async fn said(hub: &Hub, path: &str, body: &Value) -> Reply {
    hub.post(path, None, body).await
}

fn status(hub: &Hub, id: &str) -> Value {
    let update = json!({"current_status": "busy", "status_timestamp": hub.time(0),
        "status_details": {"active_tasks": 1}});
    json!({"agent_id": id, "status_update": update, "correlation_id": fresh_id(), "timestamp": hub.time(0)})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collaboration_goes_from_the_asking_to_the_score_without_a_key() {
    let hub = Hub::open(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let again = said(&hub, "/openclaw/identity", &worker.identity).await.expect(200);
    assert!(again.json().get("api_key").is_none());
    said(&hub, "/openclaw/status", &status(&hub, &worker.id)).await.expect(200);
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let reply = said(&hub, REQUESTS, &request).await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted", "{}", reply.text);
    let work = super::scene::work(&reply.str("/collaboration_id"), &request, &worker);
    let path = format!("{REQUESTS}/{}", work.id);
    assert_eq!(hub.get(&path, None).await.expect(200).str("/state"), "running");
    said(&hub, &format!("{path}/result"), &hub.done(&work, json!({}))).await.expect(200);
    assert_eq!(hub.get(&path, None).await.expect(200).str("/state"), "completed");
    assert_eq!(hub.metrics(&worker).await["total_collaborations"], 1);
    // Where nothing else names the caller, a query parameter does.
    assert_error(&hub.get(REQUESTS, None).await, 400, "VALIDATION_ERROR");
    let own = hub.get(&format!("{REQUESTS}?agent_id={}", worker.id), None).await.expect(200);
    assert_eq!(own.at("/collaborations").as_array().map(Vec::len), Some(1));
    let stream = hub.http.get(format!("{}/openclaw/stream?agent_id={}", hub.url, asker.id));
    assert_eq!(stream.send().await.expect("an answer").status(), 200);
    assert_error(&hub.get("/openclaw/stream", None).await, 400, "VALIDATION_ERROR");
    let path = format!("/openclaw/agents/{}", worker.id);
    hub.call("DELETE", &path, None, None).await.expect(200);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_published_may_ask_for_what_is_free() {
    let hub = Hub::open(&[]).await;
    let worker = hub.node("worker").await;
    let guest = Node { id: fresh_id(), key: String::new(), identity: Value::Null };
    let request = hub.request(&guest, json!({"responder_agent_id": worker.id}));
    let reply = said(&hub, REQUESTS, &request).await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted", "{}", reply.text);
    // A waiting request is cancelled by its own id, as long as it has no other.
    let approval = hub.able_node("careful", json!({"requires_approval": true})).await;
    let request = hub.request(&guest, json!({"responder_agent_id": approval.id}));
    let reply = said(&hub, REQUESTS, &request).await.expect(200);
    assert_eq!(reply.str("/response_status"), "deferred", "{}", reply.text);
    let path = format!("{REQUESTS}/{}", request["request_id"].as_str().expect("an id"));
    assert_eq!(hub.get(&path, None).await.expect(200).str("/state"), "deferred");
    said(&hub, &format!("{path}/approve"), &json!({"approved": true})).await.expect(200);
    assert_eq!(hub.get(&path, None).await.expect(200).str("/state"), "running");
    let off = said(&hub, &format!("{path}/cancel"), &json!({})).await.expect(200);
    assert_eq!(off.str("/result_status"), "cancelled");
    // A guest cannot pay.
    let dear = hub.able_node("dear", json!({"price": 1})).await;
    let request = hub.request(&guest, json!({"responder_agent_id": dear.id, "budget": 1}));
    let reply = said(&hub, REQUESTS, &request).await;
    super::kit::assert_rejected(&reply, "resource_exhausted");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_another_protocol_cannot_be_impersonated_by_naming_it() {
    let hub = Hub::open(&[]).await;
    let worker = hub.node("worker").await;
    let native = hub.orchestrator("acme").await;
    let id = hub.get("/v1/me", Some(&native.key)).await.expect(200).str("/agent/names/openclaw");
    let before = snapshot(&hub).await;
    let alias = Node { id: id.clone(), key: native.key.clone(), identity: Value::Null };
    let request = hub.request(&alias, json!({"responder_agent_id": worker.id}));
    assert_error(&said(&hub, REQUESTS, &request).await, 403, "FORBIDDEN");
    assert_error(&said(&hub, "/openclaw/status", &status(&hub, &id)).await, 404, "NOT_FOUND");
    let published = with(&identity("thief", hub.now()), json!({"agent_id": id}));
    assert_error(&said(&hub, "/openclaw/identity", &published).await, 409, "CONFLICT");
    let path = format!("/openclaw/agents/{id}");
    assert_error(&hub.call("DELETE", &path, None, None).await, 404, "NOT_FOUND");
    let list = format!("{REQUESTS}?agent_id={id}");
    assert_error(&hub.get(&list, None).await, 404, "NOT_FOUND");
    assert_eq!(snapshot(&hub).await, before);
    // With its key it may, and only it sees its request.
    let work = hub.accepted(&alias, &worker, json!({})).await;
    assert_eq!(hub.view(&alias, &work.id).await["state"], "running");
    let cancel = format!("{REQUESTS}/{}/cancel", work.id);
    assert_error(&said(&hub, &cancel, &json!({})).await, 404, "NOT_FOUND");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_shown_must_work_and_says_who_it_is() {
    let hub = Hub::open(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let before = snapshot(&hub).await;
    let body = status(&hub, &node.id);
    let path = "/openclaw/status";
    assert_error(&hub.post(path, Some("rk_nonsense"), &body).await, 401, "UNAUTHORIZED");
    assert_error(&hub.post(path, Some(&other.key), &body).await, 403, "FORBIDDEN");
    let reply = hub.post("/openclaw/identity", Some(&other.key), &node.identity).await;
    assert_error(&reply, 401, "UNAUTHORIZED");
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}
