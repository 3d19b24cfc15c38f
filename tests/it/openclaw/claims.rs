//! Reputation updates by agents: validated strictly, stored as claims, and never used (R38–R42,
//! R47, R48).

use rialto_core::time::Millis;
use rialto_protocols::openclaw::Kind;
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_violation, fresh_id, with};
use super::spoil::{example, examples, identity_example, put};
use crate::kit::{Reply, digits, snapshot};

const REPUTATION: &str = "/openclaw/reputation";

/// Posts a claim.
async fn claim(hub: &Hub, of: &Node, score: Value) -> Reply {
    let update = json!({"update_type": "periodic_update", "reputation_score": score,
        "update_timestamp": hub.time(0)});
    let body = json!({"agent_id": of.id, "reputation_update": update,
        "correlation_id": fresh_id(), "timestamp": hub.time(0)});
    hub.post(REPUTATION, Some(&of.key), &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_two_updates_of_the_spec_are_recorded_as_claims_unchanged() {
    let hub = Hub::serve(&[]).await;
    let node = hub.publish(&identity_example()).await;
    let path = format!("/openclaw/agents/{}/reputation", node.id);
    assert_eq!(hub.get(&path, None).await.expect(200).at("/claimed"), Value::Null);
    let all = examples(Kind::Reputation);
    assert_eq!(all.len(), 2);
    for (name, body) in all {
        let reply = hub.post(REPUTATION, Some(&node.key), &body).await.expect(200);
        assert_eq!(reply.str("/status"), "recorded_as_claim", "{name}");
        assert_eq!(reply.at("/claimed_score"), body["reputation_update"]["reputation_score"]);
        assert_eq!((reply.at("/hub_score"), reply.at("/differs")), (Value::Null, json!(false)));
        assert_eq!(reply.at("/correlation_id"), body["correlation_id"]);
        let shown = hub.get(&path, None).await.expect(200);
        assert_eq!(shown.at("/claimed"), body, "{name}");
        assert_eq!(shown.json().get("reputation_update"), None, "the hub has not scored it");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_required_member_of_a_claim_is_missed_by_its_name() {
    let hub = Hub::serve(&[]).await;
    let node = hub.publish(&identity_example()).await;
    let body = example(Kind::Reputation, "Collaboration Completed");
    let before = snapshot(&hub).await;
    let needed = [
        "/agent_id",
        "/reputation_update",
        "/correlation_id",
        "/timestamp",
        "/reputation_update/update_type",
        "/reputation_update/reputation_score",
        "/reputation_update/update_timestamp",
    ];
    hub.needs_each(REPUTATION, Some(&node.key), &body, &needed).await;
    let metric = |name: &str| format!("/reputation_update/metrics/{name}");
    let counts = [
        "total_collaborations",
        "successful_collaborations",
        "failed_collaborations",
        "average_response_time_ms",
    ]
    .map(metric);
    let rates = ["success_rate", "on_time_completion_rate"].map(metric);
    let mut wrong = vec![
        ("/agent_id", Some(json!("me"))),
        ("/reputation_update/update_type", Some(json!("yearly_update"))),
        ("/reputation_update/reputation_score", Some(json!(1.000_001))),
        ("/reputation_update/reputation_score", Some(json!(-0.1))),
        ("/reputation_update/update_timestamp", Some(json!("now"))),
        ("/reputation_update/collaboration_id", Some(json!("aa0e"))),
    ];
    for pointer in &counts {
        wrong.extend([json!(-1), json!(0.5), json!("5")].map(|one| (pointer.as_str(), Some(one))));
    }
    for pointer in &rates {
        wrong
            .extend([json!(-0.1), json!(1.1), json!("1")].map(|one| (pointer.as_str(), Some(one))));
    }
    hub.refuses_each(REPUTATION, Some(&node.key), &body, &wrong).await;
    assert_eq!(snapshot(&hub).await, before);
    let shown = hub.get(&format!("/openclaw/agents/{}/reputation", node.id), None).await;
    assert_eq!(shown.at("/claimed"), Value::Null);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_about_a_collaboration_names_it() {
    let hub = Hub::serve(&[]).await;
    let node = hub.publish(&identity_example()).await;
    for kind in ["collaboration_completed", "collaboration_failed"] {
        let body = example(Kind::Reputation, "Periodic Update");
        let body = put(&body, "/reputation_update/update_type", Some(json!(kind)));
        let says =
            format!("reputation_update.collaboration_id is required when update_type is {kind}");
        assert_violation(&hub.post(REPUTATION, Some(&node.key), &body).await, &says);
        let body = put(&body, "/reputation_update/collaboration_id", Some(json!(fresh_id())));
        hub.post(REPUTATION, Some(&node.key), &body).await.expect(200);
    }
    // Metrics are optional, and so is each of them.
    for metrics in [None, Some(json!({})), Some(json!({"success_rate": 0}))] {
        let body = put(
            &example(Kind::Reputation, "Periodic Update"),
            "/reputation_update/metrics",
            metrics,
        );
        hub.post(REPUTATION, Some(&node.key), &body).await.expect(200);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_for_another_agent_or_an_unknown_one_is_refused() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let before = snapshot(&hub).await;
    let borrowed = Node { key: other.key, ..node.clone() };
    assert_error(&claim(&hub, &borrowed, json!(1)).await, 403, "FORBIDDEN");
    let unknown = Node { id: fresh_id(), ..node };
    assert_error(&claim(&hub, &unknown, json!(1)).await, 404, "NOT_FOUND");
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_differs_when_it_is_more_than_a_hundredth_off() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = hub.accepted(&asker, &worker, json!({})).await;
    // Slower than ten seconds, so that speed adds nothing: 0.6 + 0.3.
    hub.pass(Millis::seconds(12));
    hub.result(&work, json!({})).await.expect(200);
    for (score, differs) in [
        (json!(0.9), false),
        (json!(0.91), false),
        (json!(0.89), false),
        (json!(0.910_001), true),
        (json!(0.889_999), true),
        (json!(1), true),
    ] {
        let reply = claim(&hub, &worker, score.clone()).await.expect(200);
        assert_eq!(digits(&reply.text, "hub_score"), "0.9");
        assert_eq!(reply.at("/differs"), differs, "{score}");
    }
    // Whatever it claims, the hub's score is unchanged.
    let shown = hub.entry(&worker.id).await;
    assert_eq!(shown["trust_signals"]["reputation_score"], 0.9);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobodys_own_word_moves_a_rank() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.publish(&put(&identity_example(), "/agent_id", Some(json!(fresh_id())))).await;
    // It registered first and claims a high score, in its identity and later.
    let boaster = hub
        .node_with("boaster", json!({"trust_signals": {"reputation_score": 1, "success_rate": 1}}))
        .await;
    claim(&hub, &boaster, json!(1)).await.expect(200);
    let humble = hub.node_with("humble", json!({"trust_signals": {"reputation_score": 0}})).await;
    let work = hub.accepted(&asker, &humble, json!({})).await;
    hub.result(&work, json!({})).await.expect(200);
    claim(&hub, &humble, json!(0)).await.expect(200);
    let reply = hub.ask(&asker, &hub.request(&asker, json!({}))).await.expect(200);
    assert_eq!(reply.str("/responder_agent_id"), humble.id, "0.9 and more before 0.5");
    // An agent without outcomes ranks before one that failed (R87).
    hub.result(
        &super::scene::work(
            &reply.str("/collaboration_id"),
            &json!({
        "request_id": reply.at("/request_id"), "correlation_id": reply.at("/correlation_id")}),
            &humble,
        ),
        failed(),
    )
    .await
    .expect(200);
    for _ in 0..3 {
        let work = hub.accepted(&asker, &humble, json!({})).await;
        hub.result(&work, failed()).await.expect(200);
    }
    let reply = hub.ask(&asker, &hub.request(&asker, json!({}))).await.expect(200);
    assert_eq!(reply.str("/responder_agent_id"), boaster.id, "0.5 before less");
    hub.0.stop().await;
}

fn failed() -> Value {
    with(
        &json!({}),
        json!({"result_status": "failed", "output_data": null,
        "error": {"code": "X", "message": "broke"}}),
    )
}
