//! Results: who may send one, that it counts once, its required members, and who is notified (R56
//! to R61, R69, R70).

use serde_json::{Value, json};

use super::kit::{Hub, Node, Work, assert_error, assert_violation, fresh_id, with};
use super::scene::COLLABORATIONS;

async fn cast(hub: &Hub) -> (Node, Node) {
    (hub.node("asker").await, hub.node("worker").await)
}

fn failed(more: Value) -> Value {
    let error = with(&json!({"code": "NO_SOURCE", "message": "it broke"}), more);
    json!({"result_status": "failed", "output_data": null, "error": error})
}

fn path(work: &Work) -> String {
    format!("{COLLABORATIONS}/{}/result", work.id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_has_its_members_and_its_conditions() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let other = hub.accepted(&asker, &worker, json!({})).await;
    let right = hub.done(&work, json!({}));
    let before = hub.held().await;
    for member in [
        "collaboration_id",
        "request_id",
        "responder_agent_id",
        "result_status",
        "correlation_id",
        "timestamp",
    ] {
        let mut absent = right.clone();
        absent.as_object_mut().expect("an object").remove(member);
        let reply = hub.post(&path(&work), Some(&worker.key), &absent).await;
        assert_violation(&reply, &format!("{member} is required"));
    }
    for (more, names) in [
        (json!({"result_status": "done"}), "result_status"),
        (json!({"output_data": null}), "output_data"),
        (json!({"output_data": [1]}), "output_data"),
        (json!({"result_status": "failed"}), "error"),
        (json!({"result_status": "failed", "error": {"message": "m"}}), "code"),
        (json!({"result_status": "failed", "error": {"code": "c"}}), "message"),
        (failed(json!({"error_type": "odd"})), "error_type"),
        (failed(json!({"details": 5})), "details"),
        (json!({"execution_duration_ms": -1}), "execution_duration_ms"),
        (json!({"execution_duration_ms": 1.5}), "execution_duration_ms"),
        (json!({"completed_at": "now"}), "completed_at"),
        (json!({"request_id": fresh_id()}), "request_id"),
        (json!({"request_id": other.request["request_id"]}), "request_id"),
        (json!({"correlation_id": fresh_id()}), "correlation_id"),
        (json!({"collaboration_id": fresh_id()}), "collaboration_id"),
        (json!({"collaboration_id": other.id}), "collaboration_id"),
    ] {
        let reply = hub.post(&path(&work), Some(&worker.key), &with(&right, more.clone())).await;
        assert_error(&reply, 400, "VALIDATION_ERROR");
        assert!(reply.text.contains(names), "{more}: {}", reply.text);
    }
    assert_eq!(hub.held().await, before);
    hub.post(&path(&work), Some(&worker.key), &right).await.expect(200);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_reaches_the_requester_with_all_that_was_said() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let at = hub.time(-5_000);
    let more =
        json!({"execution_duration_ms": 1_234, "completed_at": at, "made_up": {"x": [1.50]}});
    let reply = hub.result(&work, more).await.expect(200);
    assert_eq!(reply.str("/status"), "published");
    assert_eq!(reply.str("/collaboration_id"), work.id);
    assert_eq!(reply.at("/output_valid"), true);
    assert_eq!(reply.at("/correlation_id"), work.request["correlation_id"]);
    let told = hears.until("collaboration_result").await.data;
    assert_eq!(told["result_status"], "completed");
    assert_eq!(told["output_data"], json!({"r": 1}));
    assert_eq!(told["execution_duration_ms"], 1_234);
    assert_eq!(told["completed_at"], at);
    assert_eq!(told["made_up"], json!({"x": [1.5]}));
    assert_eq!(told["request_id"], work.request["request_id"]);
    assert_eq!(told["correlation_id"], work.request["correlation_id"]);
    assert_eq!(told["responder_agent_id"], worker.id);
    assert_eq!(told["protocol_version"], "1.0.0");
    let shown = hub.view(&asker, &work.id).await;
    assert_eq!(shown["state"], "completed");
    assert_eq!(shown["result"], told, "the same in every read");
    assert_eq!(shown["request"], work.request);
    assert_eq!(shown["response"]["response_status"], "accepted");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_reaches_the_requester_with_its_error_and_whether_to_try_again() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    for (kind, retryable) in [("transient", true), ("permanent", false)] {
        let work = hub.accepted(&asker, &worker, json!({})).await;
        let details = json!({"error_type": kind, "details": {"error_type": "system_error"}});
        let reply = hub.result(&work, failed(details)).await.expect(200);
        assert_eq!(reply.at("/output_valid"), true, "a missing output is valid");
        let told = hears.until("collaboration_result").await.data;
        assert_eq!(told["result_status"], "failed");
        assert_eq!(
            told["error"],
            json!({"code": "NO_SOURCE", "message": "it broke",
            "error_type": kind, "details": {"error_type": "system_error"}, "retryable": retryable})
        );
        assert_eq!(told.get("output_data"), None);
        assert_eq!(hub.state(&asker, &work.id).await, "failed");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_breaks_its_schema_counts_as_failed_and_the_requester_has_it_all_the_same() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.able_node("worker", json!({"price": 2})).await;
    hub.fund(&asker, "5").await;
    let mut hears = hub.stream(&asker, "").await;
    let work = hub.accepted(&asker, &worker, json!({"budget": 2})).await;
    let broken = json!({"output_data": {"s": "no r"}});
    let reply = hub.result(&work, broken.clone()).await.expect(200);
    assert_eq!(reply.at("/output_valid"), false);
    let told = hears.until("collaboration_result").await.data;
    assert_eq!(told["result_status"], "failed");
    assert_eq!(told["output_valid"], false);
    assert_eq!(told["output_data"], json!({"s": "no r"}));
    let errors = told["error"]["details"]["validation_errors"].as_array().expect("a list");
    assert_eq!(errors, &[json!("r is required")]);
    let metrics = hub.metrics(&worker).await;
    assert_eq!(
        (&metrics["failed_collaborations"], &metrics["success_rate"]),
        (&json!(1), &json!(0.0))
    );
    assert_eq!(hub.account(&asker).await, super::scene::credits("5.00", "0.00"), "and is not paid");
    // It cannot be corrected, and a repeat changes nothing.
    let again = hub.result(&work, broken).await.expect(200);
    assert_eq!(again.at("/output_valid"), false);
    assert_error(&hub.result(&work, json!({})).await, 409, "CONFLICT");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_its_responders_and_there_is_one() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let stranger = hub.node("stranger").await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let before = hub.held().await;
    for other in [&asker, &stranger] {
        let theirs = hub.done(&work, json!({"responder_agent_id": other.id}));
        let reply = hub.post(&path(&work), Some(&other.key), &theirs).await;
        assert_error(&reply, 404, "NOT_FOUND");
        let forged = hub.post(&path(&work), Some(&other.key), &hub.done(&work, json!({}))).await;
        assert_error(&forged, 403, "FORBIDDEN");
    }
    let forged = hub.post(&path(&work), Some(&hub.operator), &hub.done(&work, json!({}))).await;
    assert_error(&forged, 403, "FORBIDDEN");
    assert_error(
        &hub.post(&path(&work), None, &hub.done(&work, json!({}))).await,
        401,
        "UNAUTHORIZED",
    );
    assert_eq!(hub.held().await, before);
    hub.result(&work, json!({})).await.expect(200);
    let before = hub.held().await;
    // The same result later, in another order and with other spellings of numbers.
    let same = hub.result(&work, json!({"timestamp": hub.time(9_000), "output_data": {"r": 1.0}}));
    let same = same.await.expect(200);
    assert_eq!(
        (same.str("/status"), same.at("/output_valid")),
        ("published".to_owned(), json!(true))
    );
    assert_error(&hub.result(&work, json!({"output_data": {"r": 2}})).await, 409, "CONFLICT");
    assert_error(&hub.result(&work, failed(json!({}))).await, 409, "CONFLICT");
    assert_eq!(hub.held().await, before);
    assert_eq!(hub.metrics(&worker).await["total_collaborations"], 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_different_results_at_once_are_one_result() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let say = |n: i32| hub.result(&work, json!({"output_data": {"r": n}}));
    let replies = crate::kit::together((0..10).map(say)).await;
    let taken: Vec<_> = (0..10).filter(|n| replies[*n].status == 200).collect();
    assert_eq!(taken.len(), 1);
    for (n, reply) in replies.iter().enumerate() {
        if n != taken[0] {
            assert_error(reply, 409, "CONFLICT");
        }
    }
    assert_eq!(hub.view(&asker, &work.id).await["result"]["output_data"]["r"], taken[0]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_result_of_what_was_never_begun() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.able_node("worker", json!({"requires_approval": true})).await;
    let mut works = hub.stream(&worker, "").await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    hub.ask(&asker, &request).await.expect(200);
    let told = works.until("collaboration_request").await.data;
    let id = told["collaboration_id"].as_str().expect("an id");
    let work = super::scene::work(id, &request, &worker);
    let before = hub.held().await;
    assert_error(&hub.result(&work, json!({})).await, 409, "CONFLICT");
    assert_eq!(hub.held().await, before);
    hub.approve(&worker.key, id, false).await.expect(200);
    assert_error(&hub.result(&work, json!({})).await, 409, "CONFLICT");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_every_result_a_reputation_is_published() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut works = hub.stream(&worker, "").await;
    let mut watches = hub.stream(&asker, "?watch=all").await;
    for (more, kind, total) in [
        (json!({}), "collaboration_completed", 1),
        (failed(json!({})), "collaboration_failed", 2),
        (json!({"output_data": {}}), "collaboration_failed", 3),
        (json!({}), "collaboration_completed", 4),
    ] {
        let work = hub.accepted(&asker, &worker, json!({})).await;
        hub.result(&work, more).await.expect(200);
        for stream in [&mut works, &mut watches] {
            let told = stream.until("reputation_update").await.data;
            let update = &told["reputation_update"];
            assert_eq!(told["agent_id"], worker.id);
            assert_eq!(update["update_type"], kind);
            assert_eq!(update["collaboration_id"], work.id);
            assert_eq!(update["metrics"]["total_collaborations"], total);
        }
    }
    // A cancellation is not a result (R46).
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let cancelled = json!({"result_status": "cancelled", "output_data": null, "reason": "no more"});
    hub.result(&work, cancelled).await.expect(200);
    assert_eq!(hub.state(&asker, &work.id).await, "cancelled");
    let next = hub.accepted(&asker, &worker, json!({})).await;
    hub.result(&next, json!({})).await.expect(200);
    let told = works.until("reputation_update").await.data;
    assert_eq!(told["reputation_update"]["collaboration_id"], next.id);
    assert_eq!(told["reputation_update"]["metrics"]["total_collaborations"], 5);
    hub.0.stop().await;
}
