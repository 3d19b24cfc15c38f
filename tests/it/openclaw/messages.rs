//! One path for all six message types, told apart by their members (R90).

use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_rejected, fresh_id, identity, with};
use crate::kit::{Reply, eventually, snapshot};

const MESSAGES: &str = "/openclaw/messages";

impl Hub {
    async fn message(&self, by: &Node, body: &Value) -> Reply {
        self.post(MESSAGES, Some(&by.key), body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_the_six_does_what_it_does_at_its_own_path() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let body = with(&identity("worker", hub.now()), json!({"response_mode": "ask"}));
    let published = hub.post(MESSAGES, None, &body).await.expect(201);
    let worker = Node {
        id: published.str("/agent_id"),
        key: published.str("/api_key"),
        identity: body.clone(),
    };
    hub.message(&worker, &body).await.expect(200);
    let update = json!({"current_status": "idle", "status_timestamp": hub.time(0)});
    let status = json!({"agent_id": worker.id, "status_update": update,
        "correlation_id": fresh_id(), "timestamp": hub.time(0)});
    assert_eq!(hub.message(&worker, &status).await.expect(200).at("/applied"), true);
    let update = json!({"update_type": "periodic_update", "reputation_score": 0.5, "update_timestamp": hub.time(0)});
    let claim = json!({"agent_id": worker.id, "reputation_update": update,
        "correlation_id": fresh_id(), "timestamp": hub.time(0)});
    assert_eq!(hub.message(&worker, &claim).await.expect(200).str("/status"), "recorded_as_claim");
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let respond = async {
        let yes = hub.yes(&worker, &request, json!({}));
        eventually(async || hub.message(&worker, &yes).await.status == 200).await;
    };
    let (answer, ()) = tokio::join!(hub.message(&asker, &request), respond);
    assert_eq!(answer.str("/response_status"), "accepted", "{}", answer.text);
    assert!(answer.header("rialto-job").is_some());
    let work = super::scene::work(&answer.str("/collaboration_id"), &request, &worker);
    let reply = hub.message(&worker, &hub.done(&work, json!({}))).await.expect(200);
    assert_eq!(
        (reply.str("/status"), reply.at("/output_valid")),
        ("published".to_owned(), json!(true))
    );
    assert_eq!(hub.view(&asker, &work.id).await["state"], "completed");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_of_no_kind_or_of_two_is_told_the_six_sets_of_keys() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let before = snapshot(&hub).await;
    let request = hub.request(&node, json!({}));
    let correlation_id = request["correlation_id"].clone();
    let bodies = [
        json!({"correlation_id": correlation_id}),
        json!({"capabilities": {}, "correlation_id": correlation_id}),
        json!({"agent_name": "chimera-x", "requester_agent_id": node.id, "correlation_id": correlation_id}),
        with(&request, json!({"status_update": {}})),
        with(&request, json!({"response_status": "accepted"})),
        with(&request, json!({"result_status": "completed", "reputation_update": {}})),
    ];
    for body in bodies {
        let reply = hub.message(&node, &body).await;
        assert_error(&reply, 400, "VALIDATION_ERROR");
        assert_eq!(reply.at("/correlation_id"), correlation_id);
        let sets = reply.at("/error/details/validation_errors");
        assert_eq!(
            sets,
            json!([
                "identity has capabilities and agent_name",
                "status_update has status_update",
                "reputation_update has reputation_update",
                "collaboration_request has requester_agent_id and capability_id",
                "collaboration_response has response_status",
                "collaboration_result has result_status",
            ])
        );
    }
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_held_to_the_rules_of_its_kind() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let request = hub.request(&node, json!({"responder_agent_id": other.id}));
    let before = snapshot(&hub).await;
    let wrong = with(&request, json!({"priority": 11}));
    assert_error(&hub.message(&node, &wrong).await, 400, "VALIDATION_ERROR");
    assert_error(&hub.message(&other, &request).await, 403, "FORBIDDEN");
    assert_error(&hub.post(MESSAGES, None, &request).await, 401, "UNAUTHORIZED");
    assert_error(&hub.post(MESSAGES, Some("rk_x"), &request).await, 401, "UNAUTHORIZED");
    assert_error(&hub.post(MESSAGES, Some(&hub.operator), &request).await, 403, "FORBIDDEN");
    assert_error(&hub.post(MESSAGES, None, &node.identity).await, 409, "CONFLICT");
    let unknown = json!({"collaboration_id": fresh_id(), "request_id": fresh_id(),
        "responder_agent_id": node.id, "result_status": "cancelled", "correlation_id": fresh_id(),
        "timestamp": hub.time(0)});
    assert_error(&hub.message(&node, &unknown).await, 404, "NOT_FOUND");
    assert_eq!(snapshot(&hub).await, before);
    let nothing = with(&request, json!({"capability_id": "sing"}));
    assert_rejected(&hub.message(&node, &nothing).await, "capability_not_available");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newcomers_are_counted_here_as_well() {
    let hub = Hub::serve(&[("limits.registrations_per_minute", "2")]).await;
    let node = hub.publish(&identity("first", hub.now())).await;
    hub.post(MESSAGES, None, &identity("second", hub.now())).await.expect(201);
    let before = snapshot(&hub).await;
    for path in [MESSAGES, "/openclaw/identity"] {
        let reply = hub.post(path, None, &identity("third", hub.now())).await;
        assert_error(&reply, 429, "RATE_LIMITED");
        let wait = reply.at("/error/retry_after_seconds").as_u64().expect("seconds");
        assert_eq!(reply.header("retry-after"), Some(wait.to_string().as_str()));
    }
    assert_eq!(snapshot(&hub).await, before);
    // A known identity is not registered again.
    hub.message(&node, &node.identity).await.expect(200);
    hub.0.stop().await;
}
