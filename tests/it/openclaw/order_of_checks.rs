//! The order of checks: of two errors, the earlier one is returned (R83).

use serde_json::json;

use super::kit::{Hub, able, assert_error, assert_rejected, identity, with};
use super::scene::limits;

#[tokio::test(flavor = "multi_thread")]
async fn schema_then_identity_then_repeats() {
    let hub = Hub::serve(&[]).await;
    let (asker, other) = (hub.node("asker").await, hub.node("other").await);
    let worker = hub.node("worker").await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let wrong = with(&request, json!({"priority": 0}));
    assert_error(&hub.ask(&other, &wrong).await, 400, "VALIDATION_ERROR");
    let first = hub.ask(&asker, &request).await.expect(200);
    assert_error(&hub.ask(&other, &request).await, 403, "FORBIDDEN");
    assert_error(&hub.ask(&asker, &wrong).await, 400, "VALIDATION_ERROR");
    // A repeat is not affected by what is wrong now.
    hub.report(
        &worker,
        "error",
        json!({"error_code": "E", "error_message": "e", "error_type": "permanent"}),
    )
    .await
    .expect(200);
    let again = hub.ask(&asker, &request).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), first.str("/collaboration_id"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capability_then_status_then_input() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let problem = json!({"error_code": "E", "error_message": "e", "error_type": "transient"});
    hub.report(&worker, "error", problem).await.expect(200);
    let flawed = json!({"input_data": {"a": 2}});
    let unknown = hub.hire(&asker, &worker, with(&flawed, json!({"capability_id": "fly"}))).await;
    assert_rejected(&unknown, "capability_not_available");
    assert_rejected(&hub.hire(&asker, &worker, flawed.clone()).await, "resource_exhausted");
    hub.report(&worker, "idle", json!({})).await.expect(200);
    assert_rejected(&hub.hire(&asker, &worker, flawed).await, "invalid_input");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_then_rate_then_capacity_then_deadline() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", limits(1, 2)).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let late = json!({"deadline": hub.time(-1_000)});
    // The rate allows another start, but the concurrency limit is reached.
    let full = hub.hire(&asker, &worker, late.clone()).await;
    assert_rejected(&full, "resource_exhausted");
    assert_eq!(full.at("/rejection_reason/details"), json!({"current_tasks": 1, "max_tasks": 1}));
    hub.result(&work, json!({})).await.expect(200);
    let work = hub.accepted(&asker, &worker, json!({})).await;
    // Neither the rate nor the concurrency limit allows another: the rate comes first.
    let fast = hub.hire(&asker, &worker, late.clone()).await;
    assert_rejected(&fast, "resource_exhausted");
    assert_eq!(fast.json().pointer("/rejection_reason/details"), None, "{}", fast.text);
    let flawed = hub.hire(&asker, &worker, with(&late, json!({"input_data": {}}))).await;
    assert_rejected(&flawed, "invalid_input");
    hub.result(&work, json!({})).await.expect(200);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_then_price_then_approval() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let dear = able(&identity("worker", hub.now()), json!({"price": 5, "requires_approval": true}));
    let worker = hub.publish(&dear).await;
    let before = hub.held().await;
    let late = hub.hire(&asker, &worker, json!({"deadline": hub.time(-1_000)})).await;
    assert_rejected(&late, "deadline_too_soon");
    assert_rejected(&hub.hire(&asker, &worker, json!({"budget": 4})).await, "policy_violation");
    let poor = hub.hire(&asker, &worker, json!({"budget": 5})).await;
    assert_rejected(&poor, "resource_exhausted");
    assert_eq!(poor.at("/rejection_reason/details"), json!({"reason": "insufficient_credits"}));
    let after = hub.held().await;
    assert_eq!((&after.0.kept, &after.1), (&before.0.kept, &before.1));
    hub.fund(&asker, "5").await;
    let asked = hub.hire(&asker, &worker, json!({"budget": 5})).await.expect(200);
    assert_eq!(asked.str("/response_status"), "deferred");
    hub.0.stop().await;
}
