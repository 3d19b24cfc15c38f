//! Regression tests for faults that a reviewer found by attacking a running hub.

use serde_json::{Value, json};

use super::kit::{Hub, assert_error, capability, fresh_id, identity, with};

/// A text of this many bytes.
fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_members_are_kept_but_cannot_fill_the_hub() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let ask = async |extra: usize| hub.hire(&asker, &worker, json!({"extra": long(extra)})).await;
    assert_eq!(ask(60_000).await.expect(200).str("/response_status"), "accepted");
    assert_error(&ask(70_000).await, 400, "VALIDATION_ERROR");
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let refused = hub.result(&work, json!({"extra": long(70_000)})).await;
    assert_error(&refused, 400, "VALIDATION_ERROR");
    // The output of a job may be as long as a body.
    let done = hub.result(&work, json!({"output_data": {"r": long(500_000)}})).await;
    assert_eq!(done.expect(200).at("/output_valid"), true);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_to_every_watcher_is_short() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let update = json!({"agent_id": node.id, "correlation_id": fresh_id(),
        "timestamp": hub.time(0), "extra": long(70_000),
        "status_update": {"current_status": "idle", "status_timestamp": hub.time(0)}});
    let reply = hub.post("/openclaw/status", Some(&node.key), &update).await;
    assert_error(&reply, 413, "TOO_LARGE");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_clock_is_ahead_is_not_stuck_with_what_it_said() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let broken = json!({"agent_id": node.id, "correlation_id": fresh_id(),
        "timestamp": hub.time(0), "status_update": {
            "current_status": "error", "status_timestamp": "9999-01-01T00:00:00Z",
            "status_details": {"error_code": "E", "error_message": "no", "error_type": "transient"}}});
    hub.post("/openclaw/status", Some(&node.key), &broken).await.expect(200);
    assert_eq!(hub.entry(&node.id).await["effective_status"], "error");
    hub.clock.advance(rialto_core::time::Millis(1));
    let back = hub.report(&node, "idle", json!({})).await.expect(200);
    assert_eq!(back.at("/applied"), true);
    assert_eq!(hub.entry(&node.id).await["effective_status"], "idle");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calling_off_twice_is_calling_off_once() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let off = json!({"result_status": "cancelled", "output_data": null});
    for _ in 0..2 {
        hub.result(&work, off.clone()).await.expect(200);
    }
    assert_eq!(hub.view(&asker, &work.id).await["state"], "cancelled");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_cannot_pretend_that_work_waits_for_approval() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut works = hub.stream(&worker, "").await;
    hub.accepted(&asker, &worker, json!({"awaiting_approval": true})).await;
    let told = works.until("collaboration_request").await;
    assert_eq!(told.data.get("awaiting_approval"), None);
    assert_eq!(told.data["accepted"], true);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_has_a_limited_number_of_capabilities_and_they_are_found_by_category() {
    let hub = Hub::serve(&[]).await;
    let many = |count: usize| -> Value {
        let all: Vec<_> = (0..count)
            .map(|n| capability(&format!("c{n}"), json!({"category": "trend_analysis"})))
            .collect();
        json!({"advertised_capabilities": all, "input_schemas": {}, "output_schemas": {}})
    };
    let with_many =
        |count| with(&identity("many", hub.now()), json!({"capabilities": many(count)}));
    let refused = hub.post("/openclaw/identity", None, &with_many(129)).await;
    assert_error(&refused, 400, "VALIDATION_ERROR");
    let node = hub.publish(&with_many(128)).await;
    let ids = async |category: &str| {
        let path = format!("/openclaw/agents?category={category}");
        let listed = hub.get(&path, None).await.expect(200).at("/agents");
        let listed = listed.as_array().expect("a list").clone();
        listed.iter().map(|one| one["agent_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids("trend_analysis").await, [json!(node.id)]);
    assert!(ids("content_validation").await.is_empty());
    hub.0.stop().await;
}
