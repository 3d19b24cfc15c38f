//! Cancelling: by either party until there is a result, with the money released and no failure
//! counted (R89).

use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_rejected, fresh_id};
use super::scene::{COLLABORATIONS, credits};

async fn cast(hub: &Hub) -> (Node, Node) {
    let asker = hub.node("asker").await;
    hub.fund(&asker, "10").await;
    (asker, hub.able_node("worker", json!({"price": 3})).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn either_party_calls_it_off_and_the_other_is_told() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    let mut works = hub.stream(&worker, "").await;
    for by_asker in [true, false] {
        let work = hub.accepted(&asker, &worker, json!({"budget": 4})).await;
        works.until("collaboration_request").await;
        assert_eq!(hub.account(&asker).await, credits("6.00", "4.00"));
        let by = if by_asker { &asker } else { &worker };
        let reply = hub.cancel(by, &work.id, &json!({"reason": "rain"})).await.expect(200);
        assert_eq!(reply.str("/result_status"), "cancelled");
        assert_eq!(reply.str("/reason"), "rain");
        assert_eq!(reply.str("/collaboration_id"), work.id);
        assert_eq!(reply.at("/request_id"), work.request["request_id"]);
        assert_eq!(reply.at("/correlation_id"), work.request["correlation_id"]);
        assert_eq!(reply.str("/responder_agent_id"), worker.id);
        let other = if by_asker { &mut works } else { &mut hears };
        // The requester also has the notice of the first round.
        let told = loop {
            let told = other.until("collaboration_cancelled").await.data;
            if told["collaboration_id"] == work.id.as_str() {
                break told;
            }
        };
        assert_eq!(
            (&told["result_status"], &told["reason"]),
            (&json!("cancelled"), &json!("rain"))
        );
        assert_eq!(told["correlation_id"], work.request["correlation_id"]);
        assert_eq!(hub.account(&asker).await, credits("10.00", "0.00"));
        assert_eq!(hub.account(&worker).await, credits("0.00", "0.00"));
        for party in [&asker, &worker] {
            assert_eq!(hub.view(party, &work.id).await["state"], "cancelled");
        }
        // It has ended: a result, a response or another cancel is refused.
        let before = hub.held().await;
        assert_error(&hub.result(&work, json!({})).await, 409, "CONFLICT");
        for party in [&asker, &worker] {
            assert_error(&hub.cancel(party, &work.id, &json!({})).await, 409, "CONFLICT");
        }
        assert_eq!(hub.held().await, before);
    }
    let shown = hub.entry(&worker.id).await;
    assert_eq!(
        shown["trust_signals"]["total_collaborations"], 0,
        "a cancellation is not a failure"
    );
    assert_eq!(shown["trust_signals"]["reputation_score"], Value::Null);
    assert_eq!(shown["effective_status"], "idle");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_job_stays_and_only_its_requester_cancels() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let stranger = hub.node("stranger").await;
    let work = hub.accepted(&asker, &worker, json!({"budget": 3})).await;
    let before = hub.held().await;
    assert_error(&hub.cancel(&stranger, &work.id, &json!({})).await, 404, "NOT_FOUND");
    assert_error(&hub.cancel(&asker, &fresh_id(), &json!({})).await, 404, "NOT_FOUND");
    let path = format!("{COLLABORATIONS}/{}/cancel", work.id);
    assert_error(&hub.post(&path, Some(&hub.operator), &json!({})).await, 404, "NOT_FOUND");
    assert_error(&hub.post(&path, None, &json!({})).await, 401, "UNAUTHORIZED");
    let long = json!({"reason": "x".repeat(10_001)});
    assert_error(&hub.cancel(&asker, &work.id, &long).await, 400, "VALIDATION_ERROR");
    assert_error(
        &hub.cancel(&asker, &work.id, &json!({"reason": 5})).await,
        400,
        "VALIDATION_ERROR",
    );
    assert_eq!(hub.held().await, before);
    hub.result(&work, json!({})).await.expect(200);
    let before = hub.held().await;
    for party in [&asker, &worker] {
        assert_error(&hub.cancel(party, &work.id, &json!({})).await, 409, "CONFLICT");
    }
    assert_eq!(hub.held().await, before);
    assert_eq!(hub.account(&worker).await, credits("3.00", "0.00"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_need_not_be_given_and_the_requests_own_id_will_do() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let work = hub.accepted(&asker, &worker, json!({"budget": 3})).await;
    let id = work.request["request_id"].as_str().expect("an id");
    let path = format!("{COLLABORATIONS}/{id}/cancel");
    let reply = hub.call("POST", &path, Some(&asker.key), None).await.expect(200);
    assert_eq!(reply.str("/collaboration_id"), work.id);
    assert_eq!(reply.str("/result_status"), "cancelled");
    // Repeated with its idempotency key, the request gets its first answer.
    let again = hub.ask(&asker, &work.request).await.expect(200);
    assert_eq!(again.str("/result/result_status"), "cancelled");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_for_an_answer_is_called_off_and_answered() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", json!({"response_mode": "ask"})).await;
    let mut works = hub.stream(&worker, "").await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let id = request["request_id"].as_str().expect("an id");
    let reply = hub.meanwhile(&asker, &request, async || {
        works.until("collaboration_request").await;
        hub.cancel(&asker, id, &json!({})).await.expect(200);
    });
    assert_rejected(&reply.await, "policy_violation");
    works.until("collaboration_cancelled").await;
    assert_error(&hub.respond(&worker, &request, json!({})).await, 409, "CONFLICT");
    assert_eq!(hub.state(&asker, id).await, "cancelled");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_result_and_a_cancellation_at_once_one_counts() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    hub.fund(&asker, "30").await;
    let worker = hub.able_node("worker", json!({"price": 3})).await;
    for _ in 0..10 {
        let (before, _) = hub.account(&asker).await;
        let work = hub.accepted(&asker, &worker, json!({"budget": 3})).await;
        let nothing = json!({});
        let (done, off) =
            tokio::join!(hub.result(&work, json!({})), hub.cancel(&asker, &work.id, &nothing));
        let state = hub.state(&asker, &work.id).await;
        let (after, held) = hub.account(&asker).await;
        assert_eq!(held, "0.00");
        match (done.status, off.status) {
            (200, 409) => assert_eq!((state.as_str(), after != before), ("completed", true)),
            (409, 200) => assert_eq!((state.as_str(), after == before), ("cancelled", true)),
            other => panic!("{other:?} {} {}", done.text, off.text),
        }
    }
    hub.0.stop().await;
}
