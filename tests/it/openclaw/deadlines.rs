//! Deadlines: work that cannot be done in time is refused, work that is not done in time fails, and
//! which results are on time (R67, R82, R86).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, Work, able, assert_error, assert_rejected, identity};
use crate::kit::eventually;

async fn cast(hub: &Hub, capability: Value) -> (Node, Node) {
    (hub.node("asker").await, hub.able_node("worker", capability).await)
}

/// The collaboration runs, and fails when this time has passed.
async fn runs_out(hub: &Hub, asker: &Node, work: &Work, after: Millis) {
    hub.pass(Millis(after.0 - 5_000));
    assert_eq!(hub.state(asker, &work.id).await, "running");
    hub.pass(Millis::seconds(5));
    hub.becomes(asker, &work.id, "failed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_has_to_leave_the_time_that_the_work_takes() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub, json!({"estimated_duration_ms": 5_000})).await;
    let before = hub.held().await;
    for past in [-86_400_000, -1, 4_900] {
        let late = hub.hire(&asker, &worker, json!({"deadline": hub.time(past)})).await;
        assert_rejected(&late, "deadline_too_soon");
    }
    let after = hub.held().await;
    assert_eq!((&after.0.kept, &after.1), (&before.0.kept, &before.1));
    // The request takes time to arrive; retry until it arrives within a tenth of a second.
    eventually(async || {
        let reply = hub.hire(&asker, &worker, json!({"deadline": hub.time(5_100)})).await;
        reply.at("/response_status") == "accepted"
    })
    .await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_its_deadline_work_without_a_result_has_failed_and_counts_against_its_agent() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub, json!({})).await;
    let mut hears = hub.stream(&asker, "").await;
    let mut works = hub.stream(&worker, "").await;
    let work = hub.accepted(&asker, &worker, json!({"deadline": hub.time(60_000)})).await;
    // Silence counts only after the worker has had the work for a while.
    works.until("collaboration_request").await;
    runs_out(&hub, &asker, &work, Millis::minutes(1)).await;
    let told = hears.until("collaboration_result").await.data;
    assert_eq!(told["result_status"], "failed");
    assert_eq!(told["error"]["code"], "DEADLINE_EXCEEDED");
    assert_eq!(told["error"]["error_type"], "transient");
    assert_eq!(told["error"]["retryable"], true);
    assert_eq!(told["correlation_id"], work.request["correlation_id"]);
    let judged = works.until("reputation_update").await.data;
    assert_eq!(judged["reputation_update"]["update_type"], "collaboration_failed");
    let metrics = hub.metrics(&worker).await;
    assert_eq!(
        (&metrics["failed_collaborations"], &metrics["success_rate"]),
        (&json!(1), &json!(0.0))
    );
    assert_eq!(metrics["on_time_completion_rate"], 0.0);
    let before = hub.held().await;
    assert_error(&hub.result(&work, json!({})).await, 409, "CONFLICT");
    assert_error(&hub.cancel(&asker, &work.id, &json!({})).await, 409, "CONFLICT");
    assert_eq!(hub.held().await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_deadline_there_are_ten_minutes_after_the_estimate_and_without_that_an_hour() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub, json!({"estimated_duration_ms": 30_000})).await;
    let estimated = hub.accepted(&asker, &worker, json!({})).await;
    runs_out(&hub, &asker, &estimated, Millis(30_000 + 600_000)).await;
    let plain = hub.node("plain").await;
    let open = hub.accepted(&asker, &plain, json!({})).await;
    runs_out(&hub, &asker, &open, Millis::hours(1)).await;
    hub.0.stop().await;
    let hub = Hub::serve(&[("jobs.lease", "2m")]).await;
    let (asker, worker) = cast(&hub, json!({})).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    runs_out(&hub, &asker, &work, Millis::minutes(2)).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_estimates_itself_counts_from_then_on() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", json!({"response_mode": "ask"})).await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let ready = json!({"estimated_completion": hub.time(7_200_000)});
    let reply = hub.meanwhile(&asker, &request, async || {
        hub.respond(&worker, &request, ready).await.expect(200);
    });
    let id = reply.await.str("/collaboration_id");
    let work = super::scene::work(&id, &request, &worker);
    runs_out(&hub, &asker, &work, Millis(7_200_000 + 600_000)).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passed_while_the_hub_was_down_is_kept() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub, json!({})).await;
    let work = hub.accepted(&asker, &worker, json!({"deadline": hub.time(60_000)})).await;
    let hub = hub.restart(&[]).await;
    assert_eq!(hub.state(&asker, &work.id).await, "running");
    hub.pass(Millis::minutes(1));
    hub.becomes(&asker, &work.id, "failed").await;
    hub.0.stop().await;
}

/// Rates after one collaboration that took this long.
async fn rates(
    hub: &Hub,
    capability: Value,
    deadline: Option<i64>,
    took: i64,
    more: Value,
) -> Value {
    let asker = hub.node("asker").await;
    let worker = hub.publish(&able(&identity("worker", hub.now()), capability)).await;
    let deadline = deadline.map_or(Value::Null, |from_now| hub.time(from_now).into());
    let work = hub.accepted(&asker, &worker, json!({"deadline": deadline})).await;
    hub.pass(Millis(took));
    hub.result(&work, more).await.expect(200);
    hub.metrics(&worker).await
}

#[tokio::test(flavor = "multi_thread")]
async fn on_time_is_by_the_deadline_else_by_the_estimate_else_always_and_never_for_what_failed() {
    let hub = Hub::serve(&[]).await;
    let estimate = || json!({"estimated_duration_ms": 10_000});
    let failed = || {
        json!({"result_status": "failed", "output_data": null,
            "error": {"code": "E", "message": "it broke"}})
    };
    for (capability, deadline, took, more, success, on_time) in [
        (estimate(), None, 0, json!({}), 1.0, 1.0),
        (estimate(), None, 11_000, json!({}), 1.0, 0.0),
        (estimate(), Some(60_000), 11_000, json!({}), 1.0, 1.0),
        (json!({}), None, 3_000_000, json!({}), 1.0, 1.0),
        (json!({}), Some(60_000), 0, failed(), 0.0, 0.0),
        (json!({}), None, 0, failed(), 0.0, 0.0),
    ] {
        let case = format!("{capability} {deadline:?} {took}");
        let shown = rates(&hub, capability, deadline, took, more).await;
        assert_eq!(shown["success_rate"], success, "{case}");
        assert_eq!(shown["on_time_completion_rate"], on_time, "{case}");
        // From acceptance to result by the hub's clock, whatever the worker reports.
        let average = shown["average_response_time_ms"].as_i64().expect("a number");
        assert!((took..took + 30_000).contains(&average), "{case}: {average}");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_response_shows_when_it_is_likely_to_be_done() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub, json!({"estimated_duration_ms": 90_000})).await;
    let earliest = hub.time(90_000);
    let reply = hub.hire(&asker, &worker, json!({})).await.expect(200);
    let shown = reply.str("/estimated_completion");
    assert!(shown >= earliest && shown <= hub.time(90_000), "{shown}");
    let reply = hub.hire(&asker, &hub.node("plain").await, json!({})).await.expect(200);
    assert_eq!(reply.json().get("estimated_completion"), None);
    hub.0.stop().await;
}
