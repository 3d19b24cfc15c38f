//! Agents that are away: which requests are deferred, which are not, and the second response (R35,
//! R72).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, able, assert_rejected, fresh_id, identity, with};
use super::scene::{credits, limits, work};

async fn cast(hub: &Hub) -> (Node, Node) {
    (hub.node("asker").await, hub.node("worker").await)
}

async fn away(hub: &Hub, worker: &Node, for_ms: i64) -> String {
    let until = hub.time(for_ms);
    let details = json!({"maintenance_until": until, "maintenance_reason": "paint"});
    hub.report(worker, "maintenance", details).await.expect(200);
    until
}

/// A deferred request, and its `request_id`.
async fn deferred(hub: &Hub, asker: &Node, worker: &Node, more: Value) -> (Value, String) {
    let request = hub.request(asker, with(&json!({"responder_agent_id": worker.id}), more));
    let reply = hub.ask(asker, &request).await.expect(200);
    assert_eq!(reply.str("/response_status"), "deferred", "{}", reply.text);
    assert_eq!(reply.at("/request_id"), request["request_id"]);
    assert_eq!(reply.at("/correlation_id"), request["correlation_id"]);
    (request, reply.str("/deferred_until"))
}

fn id_of(request: &Value) -> &str {
    request["request_id"].as_str().expect("an id")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_passes_silence_and_one_that_does_not_are_different_answers() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let error = |kind| json!({"error_code": "E", "error_message": "e", "error_type": kind});
    hub.report(&worker, "error", error("transient")).await.expect(200);
    let before = hub.held().await;
    let reply = hub.hire(&asker, &worker, json!({})).await;
    assert_rejected(&reply, "resource_exhausted");
    assert_eq!(reply.at("/rejection_reason/retry_after_seconds"), 60);
    assert_eq!(hub.held().await, before);
    hub.report(&worker, "error", error("permanent")).await.expect(200);
    assert_rejected(&hub.hire(&asker, &worker, json!({})).await, "capability_not_available");
    hub.report(&worker, "idle", json!({})).await.expect(200);
    hub.accepted(&asker, &worker, json!({})).await;
    hub.pass(Millis::seconds(89));
    hub.accepted(&asker, &worker, json!({})).await;
    hub.pass(Millis::seconds(2));
    let stale = hub.hire(&asker, &worker, json!({})).await;
    assert_rejected(&stale, "resource_exhausted");
    assert_eq!(stale.at("/rejection_reason/retry_after_seconds"), 60);
    hub.report(&worker, "busy", json!({"active_tasks": 2})).await.expect(200);
    hub.accepted(&asker, &worker, json!({})).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn maintenance_defers_and_being_back_early_brings_the_second_response() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    let mut works = hub.stream(&worker, "").await;
    let until = away(&hub, &worker, 600_000).await;
    let (request, told) = deferred(&hub, &asker, &worker, json!({})).await;
    assert_eq!(told, until);
    for party in [&asker, &worker] {
        assert_eq!(hub.view(party, id_of(&request)).await["state"], "deferred");
    }
    hub.report(&worker, "idle", json!({})).await.expect(200);
    let second = hears.until("collaboration_response").await.data;
    assert_eq!(second["response_status"], "accepted");
    assert_eq!(second["request_id"], request["request_id"]);
    assert_eq!(second["correlation_id"], request["correlation_id"]);
    let work = works.until("collaboration_request").await.data;
    assert_eq!(work["collaboration_id"], second["collaboration_id"]);
    assert_eq!(work["accepted"], true);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_moment_itself_the_hub_looks_again_also_after_a_restart() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    away(&hub, &worker, 60_000).await;
    let (request, _) = deferred(&hub, &asker, &worker, json!({})).await;
    let hub = hub.restart(&[]).await;
    let mut hears = hub.stream(&asker, "").await;
    assert_eq!(hub.state(&asker, id_of(&request)).await, "deferred");
    hub.pass(Millis::minutes(1));
    // The worker was silent since, so it is offline; a later request may succeed.
    let second = hears.until("collaboration_response").await.data;
    assert_eq!(second["response_status"], "rejected");
    assert_eq!(second["rejection_reason"]["code"], "resource_exhausted");
    assert_eq!(second["rejection_reason"]["retryable"], true);
    assert_eq!(second["correlation_id"], request["correlation_id"]);
    assert_eq!(hub.state(&asker, id_of(&request)).await, "rejected");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_it_is_told_when_the_agent_is_back() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.able_node("worker", json!({"price": 3, "estimated_duration_ms": 5_000})).await;
    hub.fund(&asker, "2").await;
    let mut hears = hub.stream(&asker, "").await;
    away(&hub, &worker, 60_000).await;
    for (more, code) in [
        (json!({"input_data": {"a": 9}}), "invalid_input"),
        (json!({"budget": 2}), "policy_violation"),
        (json!({"budget": 3}), "resource_exhausted"),
        (json!({"deadline": hub.time(4_000)}), "deadline_too_soon"),
    ] {
        deferred(&hub, &asker, &worker, more.clone()).await;
        assert_eq!(hub.account(&asker).await, credits("2.00", "0.00"), "nothing is held meanwhile");
        hub.report(&worker, "idle", json!({})).await.expect(200);
        let second = hears.until("collaboration_response").await.data;
        assert_eq!(second["rejection_reason"]["code"], code, "{more}: {second}");
        if code == "invalid_input" {
            let errors = &second["rejection_reason"]["details"]["validation_errors"];
            assert!(errors[0].as_str().is_some_and(|text| text.starts_with("a must")), "{errors}");
        }
        away(&hub, &worker, 60_000).await;
    }
    assert_eq!(hub.account(&asker).await, credits("2.00", "0.00"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_meanwhile_ends_the_waiting() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    away(&hub, &worker, 600_000).await;
    let (request, _) = deferred(&hub, &asker, &worker, json!({"deadline": hub.time(60_000)})).await;
    hub.pass(Millis::minutes(1));
    let second = hears.until("collaboration_response").await.data;
    assert_eq!(second["rejection_reason"]["code"], "deadline_too_soon", "{second}");
    assert_eq!(hub.state(&worker, id_of(&request)).await, "rejected");
    assert_eq!(hub.entry(&worker.id).await["trust_signals"]["total_collaborations"], 0);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_that_waited_the_most_urgent_are_taken_as_far_as_there_is_room() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", limits(2, 100)).await;
    away(&hub, &worker, 60_000).await;
    let mut ids = Vec::new();
    for priority in [7, 2, 9, 1] {
        let (request, _) = deferred(&hub, &asker, &worker, json!({"priority": priority})).await;
        ids.push((priority, id_of(&request).to_owned()));
    }
    hub.report(&worker, "idle", json!({})).await.expect(200);
    for (priority, id) in ids {
        let wanted = if priority <= 2 { "running" } else { "rejected" };
        assert_eq!(hub.state(&asker, &id).await, wanted, "{priority}");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_may_be_called_off() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    away(&hub, &worker, 60_000).await;
    let (request, _) = deferred(&hub, &asker, &worker, json!({})).await;
    let reply = hub.cancel(&asker, id_of(&request), &json!({"reason": "enough"})).await.expect(200);
    assert_eq!(reply.str("/result_status"), "cancelled");
    hub.report(&worker, "idle", json!({})).await.expect(200);
    assert_eq!(hub.state(&asker, id_of(&request)).await, "cancelled");
    assert_eq!(hub.entry(&worker.id).await["active_collaborations"], 0);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agreed_price_survives_a_deferral_a_new_profile_and_a_restart() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    hub.fund(&asker, "50").await;
    let priced = |price: u32| json!({"price": price});
    let asks = json!({"response_mode": "ask"});
    let published = with(&able(&identity("worker", hub.now()), priced(1)), asks.clone());
    let worker = hub.publish(&published).await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id, "budget": 40}));
    let until = hub.time(60_000);
    let later =
        json!({"response_status": "deferred", "deferred_until": until, "collaboration_id": null});
    let reply = hub.meanwhile(&asker, &request, async || {
        hub.respond(&worker, &request, later).await.expect(200);
    });
    assert_eq!(reply.await.str("/response_status"), "deferred");
    hub.again(&worker, &able(&published, priced(20))).await;
    let hub = hub.restart(&[]).await;
    hub.report(&worker, "idle", json!({})).await.expect(200);
    hub.pass(Millis(60_000));
    hub.becomes(&asker, id_of(&request), "awaiting_response").await;
    let own = fresh_id();
    let yes = json!({"collaboration_id": own});
    hub.respond(&worker, &request, yes).await.expect(200);
    let work = work(&own, &request, &worker);
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.account(&worker).await, credits("1.00", "0.00"));
    assert_eq!(hub.account(&asker).await, credits("49.00", "0.00"));
    hub.0.stop().await;
}
