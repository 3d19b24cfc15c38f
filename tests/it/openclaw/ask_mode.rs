//! Agents that confirm requests themselves: nine seconds, one response, and always an answer to the
//! requester (R52, R53, R54, R55, R63).

use std::time::Instant;

use rialto_core::time::Millis;
use serde_json::{Value, json};
use uuid::Uuid;

use super::kit::{Hub, Node, assert_error, assert_rejected, assert_violation, fresh_id, with};
use super::scene::{COLLABORATIONS, work};
use crate::kit::eventually;

const ASKS: &str = "ask";
const WINDOW: Millis = Millis::seconds(9);

async fn cast(hub: &Hub) -> (Node, Node) {
    let worker = hub.node_with("worker", json!({"response_mode": ASKS})).await;
    (hub.node("asker").await, worker)
}

fn id_of(request: &Value) -> &str {
    request["request_id"].as_str().expect("an id")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_never_replies_is_answered_for_within_ten_seconds_of_real_time() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let asked = Instant::now();
    let reply = hub.hire(&asker, &worker, json!({})).await;
    let waited = asked.elapsed();
    assert!(waited.as_secs() < 10, "{waited:?}");
    assert!(waited.as_secs() >= 9, "the wait was shorter than nine seconds: {waited:?}");
    assert_rejected(&reply, "resource_exhausted");
    assert_eq!(reply.str("/responder_agent_id"), worker.id);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_ends_with_the_nine_seconds_and_a_later_word_is_a_conflict() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut works = hub.stream(&worker, "").await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let mut id = String::new();
    let reply = hub.meanwhile(&asker, &request, async || {
        let told = works.until("collaboration_request").await;
        assert_eq!(told.data["accepted"], false);
        id = told.data["collaboration_id"].as_str().expect("an id").to_owned();
        hub.pass(WINDOW);
    });
    let reply = reply.await;
    assert_rejected(&reply, "resource_exhausted");
    assert_eq!(reply.at("/correlation_id"), request["correlation_id"]);
    let gone = works.until("collaboration_cancelled").await;
    assert_eq!(gone.data["request_id"], request["request_id"]);
    let shown = async || with(&hub.view(&asker, id_of(&request)).await, json!({"timestamp": null}));
    let before = shown().await;
    assert_eq!(before["state"], "rejected");
    let path = format!("{COLLABORATIONS}/{id}/response");
    let late = hub.post(&path, Some(&worker.key), &hub.yes(&worker, &request, json!({}))).await;
    assert_error(&late, 409, "CONFLICT");
    assert_eq!(shown().await, before);
    // Work that was never accepted counts for neither party.
    assert_eq!(hub.entry(&worker.id).await["trust_signals"]["total_collaborations"], 0);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_passed_on_with_the_id_and_the_estimate_the_agent_chose() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let (own, ready) = (fresh_id(), hub.time(60_000));
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let yes = json!({"collaboration_id": own, "estimated_completion": ready});
    let reply = hub.meanwhile(&asker, &request, async || {
        let given = hub.respond(&worker, &request, yes).await.expect(200);
        assert_eq!(given.str("/status"), "delivered");
        assert_eq!(given.at("/correlation_id"), request["correlation_id"]);
    });
    let reply = reply.await.expect(200);
    assert_eq!(reply.str("/response_status"), "accepted");
    assert_eq!(reply.str("/collaboration_id"), own);
    assert_eq!(reply.str("/estimated_completion"), ready);
    assert_eq!(reply.at("/request_id"), request["request_id"]);
    assert_eq!(reply.at("/correlation_id"), request["correlation_id"]);
    assert_eq!(reply.str("/responder_agent_id"), worker.id);
    assert_eq!(hub.view(&worker, &own).await["state"], "running");
    // A second response changes nothing.
    let second = hub.respond(&worker, &request, json!({"collaboration_id": own})).await;
    assert_error(&second, 409, "CONFLICT");
    let done = hub.result(&work(&own, &request, &worker), json!({})).await.expect(200);
    assert_eq!(done.str("/collaboration_id"), own);
    let shown = hub.view(&asker, &own).await;
    assert_eq!(shown["result"]["collaboration_id"], own);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_is_passed_on_in_the_agents_words_with_any_of_the_five_codes() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    for code in [
        "capability_not_available",
        "invalid_input",
        "resource_exhausted",
        "policy_violation",
        "deadline_too_soon",
    ] {
        let reason = json!({"code": code, "message": "not today", "details": {"why": [code]},
            "retry_after_seconds": 7});
        let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
        let no = json!({"response_status": "rejected", "rejection_reason": reason,
            "collaboration_id": null});
        let reply = hub.meanwhile(&asker, &request, async || {
            hub.respond(&worker, &request, no).await.expect(200);
        });
        let reply = reply.await.expect(200);
        assert_eq!(reply.str("/response_status"), "rejected");
        assert_eq!(reply.str("/rejection_reason/code"), code);
        assert_eq!(reply.str("/rejection_reason/message"), "not today");
        assert_eq!(reply.at("/rejection_reason/details"), json!({"why": [code]}));
        assert_eq!(reply.at("/rejection_reason/retryable"), code == "resource_exhausted");
        assert_eq!(hub.state(&asker, id_of(&request)).await, "rejected");
    }
    assert_eq!(hub.entry(&worker.id).await["trust_signals"]["total_collaborations"], 0);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_is_passed_on_and_the_agent_is_asked_again_then() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let mut hears = hub.stream(&asker, "").await;
    let mut works = hub.stream(&worker, "").await;
    let until = hub.time(30_000);
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let later = json!({"response_status": "deferred", "deferred_until": until,
        "collaboration_id": null});
    let reply = hub.meanwhile(&asker, &request, async || {
        works.until("collaboration_request").await;
        hub.respond(&worker, &request, later).await.expect(200);
    });
    let reply = reply.await.expect(200);
    assert_eq!(reply.str("/response_status"), "deferred");
    assert_eq!(reply.str("/deferred_until"), until);
    assert_eq!(hub.state(&asker, id_of(&request)).await, "deferred");
    hub.pass(Millis::seconds(31));
    let told = works.until("collaboration_request").await;
    assert_eq!(told.data["request_id"], request["request_id"]);
    hub.respond(&worker, &request, json!({})).await.expect(200);
    let second = hears.until("collaboration_response").await;
    assert_eq!(second.data["response_status"], "accepted");
    assert_eq!(second.data["correlation_id"], request["correlation_id"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_has_its_members_and_belongs_to_its_request() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let stranger = hub.node_with("stranger", json!({"response_mode": ASKS})).await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let taken = hub.accepted(&asker, &hub.node("other").await, json!({})).await.id;
    let reply = hub.meanwhile(&asker, &request, async || {
        let before = hub.held().await;
        let path = format!("{COLLABORATIONS}/{}/response", id_of(&request));
        let right = hub.yes(&worker, &request, json!({}));
        let refused = async |body: &Value| hub.post(&path, Some(&worker.key), body).await;
        for member in ["request_id", "responder_agent_id", "response_status", "correlation_id", "timestamp"] {
            let mut absent = right.clone();
            absent.as_object_mut().expect("an object").remove(member);
            assert_violation(&refused(&absent).await, &format!("{member} is required"));
        }
        for (more, names) in [
            (json!({"response_status": "perhaps"}), "response_status"),
            (json!({"collaboration_id": null}), "collaboration_id"),
            (json!({"collaboration_id": "x"}), "collaboration_id"),
            (json!({"response_status": "rejected"}), "rejection_reason"),
            (json!({"response_status": "rejected", "rejection_reason": {"message": "m"}}), "code"),
            (json!({"response_status": "rejected", "rejection_reason": {"code": "policy_violation"}}), "message"),
            (json!({"response_status": "rejected", "rejection_reason": {"code": "tired", "message": "m"}}), "code"),
            (json!({"response_status": "deferred"}), "deferred_until"),
            (json!({"response_status": "deferred", "deferred_until": "later"}), "deferred_until"),
            (json!({"response_status": "deferred", "deferred_until": hub.time(-1)}), ""),
            (json!({"request_id": fresh_id()}), "request_id"),
            (json!({"correlation_id": fresh_id()}), "correlation_id"),
            (json!({"collaboration_id": taken}), "collaboration_id"),
        ] {
            let reply = refused(&with(&right, more.clone())).await;
            assert_error(&reply, 400, "VALIDATION_ERROR");
            assert!(reply.text.contains(names), "{more}: {}", reply.text);
        }
        // For any other agent there is no such request.
        let theirs = hub.yes(&stranger, &request, json!({}));
        assert_error(&hub.post(&path, Some(&stranger.key), &theirs).await, 404, "NOT_FOUND");
        let own = hub.yes(&asker, &request, json!({}));
        assert_error(&hub.post(&path, Some(&asker.key), &own).await, 404, "NOT_FOUND");
        assert_error(&hub.post(&path, Some(&stranger.key), &right).await, 403, "FORBIDDEN");
        assert_error(&hub.post(&path, None, &right).await, 401, "UNAUTHORIZED");
        assert_eq!(hub.held().await, before);
        hub.post(&path, Some(&worker.key), &right).await.expect(200);
    });
    assert_eq!(reply.await.str("/response_status"), "accepted");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_answers_for_agents_of_other_protocols_and_its_answer_is_final() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = hub.accepted(&asker, &worker, json!({})).await;
    assert!(work.id.parse::<Uuid>().is_ok());
    let no = json!({"response_status": "rejected", "collaboration_id": null,
        "rejection_reason": {"code": "policy_violation", "message": "no"}});
    assert_error(&hub.respond(&worker, &work.request, no).await, 409, "CONFLICT");
    assert_eq!(hub.state(&asker, &work.id).await, "running");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_endpoints_that_never_reply_delay_no_other() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = cast(&hub).await;
    let quick = hub.node("quick").await;
    let silent = crate::kit::together((0..50).map(|_| hub.hire(&asker, &worker, json!({}))));
    let rest = async {
        let all = async || hub.entry(&worker.id).await["active_collaborations"] == 0;
        let asked = || hub.engine.with_world(|world| world.live_jobs().count());
        eventually(async || asked() == 50).await;
        assert!(all().await, "unanswered requests are not running");
        let work = hub.accepted(&asker, &quick, json!({})).await;
        hub.result(&work, json!({})).await.expect(200);
        assert_eq!(asked(), 50, "the hub did not wait");
        hub.pass(WINDOW);
    };
    let (silent, ()) = tokio::join!(silent, rest);
    silent.iter().for_each(|reply| assert_rejected(reply, "resource_exhausted"));
    hub.0.stop().await;
}
