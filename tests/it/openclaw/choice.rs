//! The hub's choice for a request without a responder: idle before busy, then the better score,
//! then the earlier registration; without a candidate, the most hopeful reason (R84, R87).

use rialto_core::time::Millis;
use rialto_protocols::openclaw::Kind;
use serde_json::{Value, json};

use super::kit::{Hub, Node, able, assert_rejected, identity, with};
use super::scene::limits;

/// The agent chosen for a request without a responder.
async fn chosen(hub: &Hub, asker: &Node, more: Value) -> String {
    let reply = hub.ask(asker, &hub.request(asker, more)).await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted", "{}", reply.text);
    let id = reply.str("/collaboration_id");
    let responder = reply.str("/responder_agent_id");
    hub.cancel(asker, &id, &json!({})).await.expect(200);
    responder
}

/// Sends a request that no agent can do.
async fn nobody(hub: &Hub, asker: &Node, more: Value, code: &str) -> Value {
    let before = hub.held().await;
    let reply = hub.ask(asker, &hub.request(asker, more)).await;
    assert_rejected(&reply, code);
    let health = hub.get("/openclaw/health", None).await.expect(200);
    assert_eq!(reply.str("/responder_agent_id"), health.str("/hub_id"));
    let after = hub.held().await;
    assert_eq!((&after.0.kept, &after.1), (&before.0.kept, &before.1));
    reply.at("/rejection_reason")
}

/// Lets an agent do one job, with success or not.
async fn does(hub: &Hub, asker: &Node, worker: &Node, well: bool) {
    let work = hub.accepted(asker, worker, json!({})).await;
    let failed = json!({"result_status": "failed", "output_data": null,
        "error": {"code": "E", "message": "it broke"}});
    hub.result(&work, if well { json!({}) } else { failed }).await.expect(200);
}

/// An agent that only requests: it has another skill.
async fn asker(hub: &Hub) -> Node {
    let mut other = identity("asker", hub.now());
    other["capabilities"] = json!({"advertised_capabilities": [super::kit::capability("ask", json!({}))],
        "input_schemas": {}, "output_schemas": {}});
    hub.publish(&other).await
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_invited_in_registration_order_and_never_for_their_own_request() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    let (one, two) = (hub.node("one").await, hub.node("two").await);
    assert_eq!(chosen(&hub, &asker, json!({})).await, one.id);
    assert_eq!(chosen(&hub, &one, json!({})).await, two.id);
    assert_eq!(chosen(&hub, &two, json!({})).await, one.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_better_score_comes_before_an_earlier_registration_and_a_worse_one_after_none() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    let (bad, new, good) = (hub.node("bad").await, hub.node("new").await, hub.node("good").await);
    does(&hub, &asker, &bad, false).await;
    does(&hub, &asker, &good, true).await;
    assert_eq!(chosen(&hub, &asker, json!({})).await, good.id);
    // A self-reported reputation has no effect.
    let claim = json!({"agent_id": bad.id, "correlation_id": super::kit::fresh_id(),
        "timestamp": hub.time(0), "reputation_update": {"update_type": "periodic_update",
        "reputation_score": 1.0, "update_timestamp": hub.time(0)}});
    hub.post("/openclaw/reputation", Some(&bad.key), &claim).await.expect(200);
    assert_eq!(chosen(&hub, &asker, json!({})).await, good.id);
    let gone = async |node: &Node| {
        let path = format!("/openclaw/agents/{}", node.id);
        hub.call("DELETE", &path, Some(&node.key), None).await.expect(200);
    };
    gone(&good).await;
    assert_eq!(chosen(&hub, &asker, json!({})).await, new.id, "it has no outcomes: 0.5");
    gone(&new).await;
    assert_eq!(chosen(&hub, &asker, json!({})).await, bad.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_comes_before_busy_whatever_the_score() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    let (good, plain) = (hub.node("good").await, hub.node("plain").await);
    does(&hub, &asker, &good, true).await;
    let work = hub.accepted(&asker, &good, json!({})).await;
    assert_eq!(chosen(&hub, &asker, json!({})).await, plain.id, "by the hub's own count");
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(chosen(&hub, &asker, json!({})).await, good.id);
    hub.report(&good, "busy", json!({"active_tasks": 1})).await.expect(200);
    assert_eq!(chosen(&hub, &asker, json!({})).await, plain.id, "by its own report");
    hub.report(&plain, "busy", json!({"active_tasks": 9})).await.expect(200);
    assert_eq!(chosen(&hub, &asker, json!({})).await, good.id, "busy agents can be chosen, too");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_any_check_is_skipped() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    hub.fund(&asker, "3").await;
    let error = |kind| json!({"error_code": "E", "error_message": "e", "error_type": kind});
    let node =
        async |name: &str, more: Value| hub.publish(&able(&identity(name, hub.now()), more)).await;
    let broken = hub.node("broken").await;
    hub.report(&broken, "error", error("permanent")).await.expect(200);
    let troubled = hub.node("troubled").await;
    hub.report(&troubled, "error", error("transient")).await.expect(200);
    let away = hub.node("away").await;
    let until = json!({"maintenance_until": hub.time(600_000)});
    hub.report(&away, "maintenance", until).await.expect(200);
    let mut picky = identity("picky", hub.now());
    picky["capabilities"]["input_schemas"]["sum"]["required"] = json!(["a", "b"]);
    hub.publish(&picky).await;
    let full = hub.node_with("full", limits(1, 100)).await;
    hub.accepted(&asker, &full, json!({})).await;
    let spent = hub.node_with("spent", limits(100, 1)).await;
    does(&hub, &asker, &spent, true).await;
    node("slow", json!({"estimated_duration_ms": 600_000})).await;
    node("dear", json!({"price": 2})).await;
    node("dearest", json!({"price": 4})).await;
    let careful = node("careful", json!({"requires_approval": true})).await;
    let last = hub.node("last").await;
    let request = json!({"deadline": hub.time(60_000), "budget": 1});
    assert_eq!(chosen(&hub, &asker, request.clone()).await, last.id);
    // If there is no other candidate, one that needs approval is chosen.
    let path = format!("/openclaw/agents/{}", last.id);
    hub.call("DELETE", &path, Some(&last.key), None).await.expect(200);
    let asked = hub.ask(&asker, &hub.request(&asker, request)).await.expect(200);
    assert_eq!(asked.str("/response_status"), "deferred");
    assert_eq!(asked.str("/responder_agent_id"), careful.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_no_candidate_left_the_most_retryable_reason_is_the_answer() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    nobody(&hub, &asker, json!({}), "capability_not_available").await;
    let broken = hub.node("broken").await;
    let error = json!({"error_code": "E", "error_message": "e", "error_type": "permanent"});
    hub.report(&broken, "error", error).await.expect(200);
    nobody(&hub, &asker, json!({}), "capability_not_available").await;
    let flawed = json!({"input_data": {"a": 2}});
    let dear = json!({"price": 2, "estimated_duration_ms": 5_000});
    hub.publish(&able(&identity("dear", hub.now()), dear)).await;
    let told = nobody(&hub, &asker, flawed, "invalid_input").await;
    assert_eq!(told["details"]["validation_errors"].as_array().map(Vec::len), Some(1));
    nobody(&hub, &asker, json!({}), "policy_violation").await;
    nobody(&hub, &asker, json!({"deadline": hub.time(1_000)}), "deadline_too_soon").await;
    let full = hub.node_with("full", limits(1, 100)).await;
    hub.accepted(&asker, &full, json!({})).await;
    let told = nobody(&hub, &asker, json!({}), "resource_exhausted").await;
    assert_eq!(told["details"], json!({"current_tasks": 1, "max_tasks": 1}));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_silent_is_not_chosen() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    let worker = hub.node("worker").await;
    hub.pass(Millis::seconds(91));
    let told = nobody(&hub, &asker, json!({}), "resource_exhausted").await;
    assert_eq!(told["retry_after_seconds"], 60);
    hub.report(&worker, "idle", json!({})).await.expect(200);
    assert_eq!(chosen(&hub, &asker, json!({})).await, worker.id);
    hub.0.stop().await;
}

/// Reports an agent as offline for this long, and returns the time of its return.
async fn away(hub: &Hub, node: &Node, for_ms: i64) -> String {
    let until = hub.time(for_ms);
    let details = json!({"maintenance_until": until});
    hub.report(node, "maintenance", details).await.expect(200);
    until
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_in_maintenance_defers_named_and_unnamed_requests_alike() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    let worker = hub.node("worker").await;
    let until = away(&hub, &worker, 600_000).await;
    let mut hears = hub.stream(&asker, "").await;
    // An invalid request, too, is answered once the agent is back.
    let flawed = json!({"input_data": {"a": 2}});
    for more in [json!({}), flawed] {
        for named in [json!({"responder_agent_id": worker.id}), json!({})] {
            let request = hub.request(&asker, with(&more, named));
            let reply = hub.ask(&asker, &request).await.expect(200);
            assert_eq!(reply.str("/response_status"), "deferred", "{}", reply.text);
            assert_eq!(reply.str("/deferred_until"), until);
            assert_eq!(reply.str("/responder_agent_id"), worker.id);
        }
    }
    hub.report(&worker, "idle", json!({})).await.expect(200);
    for wanted in ["accepted", "accepted", "rejected", "rejected"] {
        let second = hears.until("collaboration_response").await.data;
        assert_eq!(second["response_status"], wanted, "{second}");
    }
    hub.0.stop().await;
}

/// The spec's request as printed, except for its deadline, which is past.
#[tokio::test(flavor = "multi_thread")]
async fn the_specs_request_names_no_receiver_and_is_deferred_by_its_only_provider() {
    let hub = Hub::serve(&[]).await;
    let printed = super::spoil::example(Kind::Request, "Example");
    let asks = json!({"agent_id": printed["requester_agent_id"]});
    let asker = hub.node_with("asker", asks).await;
    let worker = hub.publish(&super::spoil::identity_example()).await;
    let until = away(&hub, &worker, 600_000).await;
    let request = with(&printed, json!({"deadline": hub.time(3_600_000)}));
    let reply = hub.ask(&asker, &request).await.expect(200);
    assert_eq!(reply.str("/response_status"), "deferred", "{}", reply.text);
    assert_eq!(reply.str("/deferred_until"), until);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_in_maintenance_the_first_back_defers_unless_another_may_be_asked_sooner() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    let (late, soon) = (hub.node("late").await, hub.node("soon").await);
    away(&hub, &late, 900_000).await;
    let until = away(&hub, &soon, 600_000).await;
    let reply = hub.ask(&asker, &hub.request(&asker, json!({}))).await.expect(200);
    assert_eq!(reply.str("/response_status"), "deferred", "{}", reply.text);
    assert_eq!(reply.str("/responder_agent_id"), soon.id);
    assert_eq!(reply.str("/deferred_until"), until);
    let full = hub.node_with("full", limits(1, 100)).await;
    hub.accepted(&asker, &full, json!({})).await;
    nobody(&hub, &asker, json!({}), "resource_exhausted").await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_simultaneous_jobs_fill_every_agent_up_to_its_limit() {
    let hub = Hub::serve(&[]).await;
    let asker = asker(&hub).await;
    let mut workers = Vec::new();
    for name in ["one", "two", "three"] {
        workers.push(hub.node_with(name, limits(4, 1_000)).await);
    }
    let ask = async |_| hub.ask(&asker, &hub.request(&asker, json!({}))).await;
    let replies = crate::kit::together((0..60).map(ask)).await;
    for worker in &workers {
        let by = replies.iter().filter(|one| {
            one.at("/response_status") == "accepted" && one.str("/responder_agent_id") == worker.id
        });
        assert_eq!(by.count(), 4);
    }
    let refused = replies.iter().filter(|one| one.at("/response_status") == "rejected");
    refused.for_each(|one| assert_rejected(one, "resource_exhausted"));
    hub.0.stop().await;
}
