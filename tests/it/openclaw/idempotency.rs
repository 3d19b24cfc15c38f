//! Repeats: one key means one collaboration, for a day (R64, R65, R66, D11, D12).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_rejected, fresh_id, with};
use super::scene::limits;
use crate::kit::{Reply, together};

const MINUTE: Millis = Millis::minutes(1);

/// A request with this key, and new ids each time.
async fn keyed(hub: &Hub, by: &Node, of: &Node, key: &str, more: Value) -> Reply {
    hub.hire(by, of, with(&json!({"idempotency_key": key}), more)).await
}

fn mismatch(reply: &Reply) -> Option<&str> {
    reply.header("idempotency-mismatch")
}

/// Both agents report again after a silent time.
async fn back(hub: &Hub, nodes: &[&Node]) {
    for node in nodes {
        hub.report(node, "idle", json!({})).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_gets_the_same_collaboration_under_its_own_ids_and_the_result_once_there_is_one() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let mut works = hub.stream(&worker, "").await;
    let key = json!({"idempotency_key": "k"});
    let work = hub.accepted(&asker, &worker, key.clone()).await;
    assert_eq!(works.until("collaboration_request").await.data["collaboration_id"], work.id);
    let before = hub.counted();
    let request = hub.request(&asker, with(&key, json!({"responder_agent_id": worker.id})));
    let again = hub.ask(&asker, &request).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), work.id);
    assert_eq!(again.at("/request_id"), request["request_id"]);
    assert_eq!(again.at("/correlation_id"), request["correlation_id"]);
    assert_eq!((again.json().get("result"), mismatch(&again)), (None, None));
    assert_eq!(hub.counted(), before, "nothing is written for a repeat");
    hub.result(&work, json!({"output_data": {"r": 42}})).await.expect(200);
    let again = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), work.id);
    assert_eq!(again.at("/result/output_data"), json!({"r": 42}));
    assert_eq!(again.str("/result/result_status"), "completed");
    // It was handed over once: the next request the worker gets is another one.
    let other = hub.accepted(&asker, &worker, json!({})).await;
    assert_eq!(works.until("collaboration_request").await.data["collaboration_id"], other.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_body_still_gets_the_first_and_is_told_that_it_differs() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let other = hub.node("other").await;
    let first = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    let before = hub.counted();
    for more in [
        json!({"input_data": {"a": 0.25}}),
        json!({"input_data": {"a": 7}}),
        json!({"capability_id": "fly"}),
        json!({"priority": 1}),
        json!({"responder_agent_id": other.id}),
    ] {
        let again = keyed(&hub, &asker, &worker, "k", more).await.expect(200);
        assert_eq!(again.str("/collaboration_id"), first.str("/collaboration_id"));
        assert_eq!(mismatch(&again), Some("true"), "{}", again.text);
    }
    // The same content in another spelling is the same.
    let same = keyed(&hub, &asker, &worker, "k", json!({"input_data": {"a": 5e-1}, "priority": 5}));
    assert_eq!(mismatch(&same.await), None);
    assert_eq!(hub.counted(), before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_its_requesters_own() {
    let hub = Hub::serve(&[]).await;
    let (one, two) = (hub.node("one").await, hub.node("two").await);
    let worker = hub.node("worker").await;
    let first = keyed(&hub, &one, &worker, "k", json!({})).await.expect(200);
    let second = keyed(&hub, &two, &worker, "k", json!({})).await.expect(200);
    assert_ne!(first.str("/collaboration_id"), second.str("/collaboration_id"));
    let third = keyed(&hub, &one, &worker, "K", json!({})).await.expect(200);
    assert_ne!(first.str("/collaboration_id"), third.str("/collaboration_id"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_lasts_a_day_and_not_longer_also_across_a_restart() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let first = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    let first = first.str("/collaboration_id");
    hub.pass(Millis(24 * 3_600_000 - MINUTE.0));
    back(&hub, &[&asker, &worker]).await;
    let again = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), first, "a minute before");
    hub.pass(Millis(MINUTE.0 - 5));
    hub.pass(Millis(6));
    back(&hub, &[&asker, &worker]).await;
    let at = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_ne!(at.str("/collaboration_id"), first, "a day has passed");
    hub.pass(MINUTE);
    let after = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(after.str("/collaboration_id"), at.str("/collaboration_id"), "a new day began");
    // The hub keeps its clock and its saved answers over a restart.
    let hub = hub.restart(&[]).await;
    back(&hub, &[&asker, &worker]).await;
    let restarted = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(restarted.str("/collaboration_id"), at.str("/collaboration_id"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_forgets_no_key_and_no_rejection_that_stands() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let first = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    let flaw = keyed(&hub, &asker, &worker, "f", json!({"input_data": {}})).await;
    assert_rejected(&flaw, "invalid_input");
    let hub = hub.restart(&[]).await;
    let again = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), first.str("/collaboration_id"));
    // Even if the new request is valid.
    let mended = keyed(&hub, &asker, &worker, "f", json!({})).await;
    assert_rejected(&mended, "invalid_input");
    assert_eq!(mismatch(&mended), Some("true"));
    assert_eq!(mended.at("/rejection_reason"), flaw.at("/rejection_reason"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_not_remembered() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", limits(1, 100)).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let full = keyed(&hub, &asker, &worker, "k", json!({})).await;
    assert_rejected(&full, "resource_exhausted");
    hub.result(&work, json!({})).await.expect(200);
    let now = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(now.str("/response_status"), "accepted");
    let again = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), now.str("/collaboration_id"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_gave_no_answer_is_asked_again_under_the_same_key() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", json!({"response_mode": "ask"})).await;
    let key = json!({"idempotency_key": "k", "responder_agent_id": worker.id});
    for _ in 0..2 {
        let request = hub.request(&asker, key.clone());
        let silent = hub.meanwhile(&asker, &request, async || hub.pass(Millis::seconds(9))).await;
        assert_rejected(&silent, "resource_exhausted");
    }
    let request = hub.request(&asker, key.clone());
    let reply = hub.meanwhile(&asker, &request, async || {
        hub.respond(&worker, &request, json!({})).await.expect(200);
    });
    let reply = reply.await;
    assert_eq!(reply.str("/response_status"), "accepted");
    let again = hub.ask(&asker, &hub.request(&asker, key)).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), reply.str("/collaboration_id"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_request_is_told_as_it_stands_when_it_is_repeated() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let until = json!({"maintenance_until": hub.time(60_000)});
    hub.report(&worker, "maintenance", until).await.expect(200);
    let first = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(first.str("/response_status"), "deferred");
    hub.report(&worker, "idle", json!({})).await.expect(200);
    let again = keyed(&hub, &asker, &worker, "k", json!({})).await.expect(200);
    assert_eq!(again.str("/response_status"), "accepted");
    let list = hub.list(&worker, "?role=responder").await.expect(200);
    assert_eq!(list.at("/collaborations").as_array().map(Vec::len), Some(1), "once");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_the_requests_own_id_makes_it_a_repeat_and_other_content_a_conflict() {
    let hub = Hub::serve(&[]).await;
    let (asker, other) = (hub.node("asker").await, hub.node("other").await);
    let worker = hub.node("worker").await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let first = hub.ask(&asker, &request).await.expect(200);
    let before = hub.held().await;
    let later = with(&request, json!({"timestamp": hub.time(1_000), "correlation_id": fresh_id()}));
    for same in [&request, &later] {
        let again = hub.ask(&asker, same).await.expect(200);
        assert_eq!(again.str("/collaboration_id"), first.str("/collaboration_id"));
        assert_eq!(again.at("/correlation_id"), same["correlation_id"]);
    }
    let conflict = with(&request, json!({"input_data": {"a": 1}}));
    assert_error(&hub.ask(&asker, &conflict).await, 422, "IDEMPOTENCY_CONFLICT");
    assert_eq!(hub.held().await, before);
    // The id belongs to its requester, and does not expire.
    let theirs = with(&request, json!({"requester_agent_id": other.id}));
    let theirs = hub.ask(&other, &theirs).await.expect(200);
    assert_ne!(theirs.str("/collaboration_id"), first.str("/collaboration_id"));
    hub.pass(Millis::hours(25));
    let again = hub.ask(&asker, &request).await.expect(200);
    assert_eq!(again.str("/collaboration_id"), first.str("/collaboration_id"));
    assert_error(&hub.ask(&asker, &conflict).await, 422, "IDEMPOTENCY_CONFLICT");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_with_one_key_are_one_collaboration() {
    for named in [true, false] {
        let hub = Hub::serve(&[]).await;
        let asker = hub.node("asker").await;
        let workers = [hub.node("one").await, hub.node("two").await, hub.node("three").await];
        let ask = async |_| {
            let more = json!({"idempotency_key": "k", "responder_agent_id":
                if named { json!(workers[0].id) } else { Value::Null }});
            hub.ask(&asker, &hub.request(&asker, more)).await
        };
        let replies = together((0..50).map(ask)).await;
        let id = replies[0].str("/collaboration_id");
        for reply in &replies {
            assert_eq!(reply.status, 200, "{}", reply.text);
            assert_eq!(reply.str("/collaboration_id"), id);
        }
        let list = hub.list(&asker, "?role=requester").await.expect(200);
        assert_eq!(list.at("/collaborations").as_array().map(Vec::len), Some(1));
        let work = hub.engine.with_world(|world| world.live_jobs().count());
        assert_eq!(work, 1, "and no other job");
        hub.0.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_for_an_agent_that_answers_itself_wait_for_one_answer() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let worker = hub.node_with("worker", json!({"response_mode": "ask"})).await;
    let key = json!({"idempotency_key": "k"});
    let all = together((0..50).map(|_| hub.hire(&asker, &worker, key.clone())));
    let mut works = hub.stream(&worker, "").await;
    let answer = async {
        let told = works.until("collaboration_request").await.data;
        hub.respond(&worker, &told, json!({"collaboration_id": told["collaboration_id"]}))
            .await
            .expect(200);
        told["collaboration_id"].as_str().expect("an id").to_owned()
    };
    let (replies, id) = tokio::join!(all, answer);
    for reply in &replies {
        assert_eq!(reply.str("/collaboration_id"), id, "{}", reply.text);
    }
    hub.0.stop().await;
}
