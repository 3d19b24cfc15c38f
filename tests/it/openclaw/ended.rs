//! An ended collaboration stays readable for both parties, by either of its ids, and a further
//! message about it is a conflict (R55, R61, R73).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, with};
use super::scene::{COLLABORATIONS, work};

fn id_of(request: &Value) -> &str {
    request["request_id"].as_str().expect("an id")
}

/// An answered request, and its answer.
async fn asked(hub: &Hub, asker: &Node, worker: &Node) -> (Value, Value) {
    let request = hub.request(asker, json!({"responder_agent_id": worker.id}));
    let reply = hub.ask(asker, &request).await.expect(200);
    (request, reply.json())
}

/// Every message about an ended request is a conflict, and both parties read how it ended.
async fn assert_over(hub: &Hub, (asker, worker): (&Node, &Node), request: &Value, state: &str) {
    let id = id_of(request);
    let shown = hub.view(asker, id).await;
    assert_eq!(shown["state"], state, "{shown}");
    let own = shown["collaboration_id"].as_str().expect("an id").to_owned();
    for id in [id, own.as_str()] {
        for party in [asker, worker] {
            let seen = hub.view(party, id).await;
            assert_eq!((&seen["state"], &seen["request"]), (&shown["state"], &shown["request"]));
        }
        for key in [&worker.key, &hub.operator] {
            assert_error(&hub.approve(key, id, true).await, 409, "CONFLICT");
            assert_error(&hub.approve(key, id, false).await, 409, "CONFLICT");
        }
        let path = format!("{COLLABORATIONS}/{id}/response");
        let yes = hub.yes(worker, request, json!({"collaboration_id": own}));
        assert_error(&hub.post(&path, Some(&worker.key), &yes).await, 409, "CONFLICT");
        let path = format!("{COLLABORATIONS}/{id}/result");
        let failed = json!({"result_status": "failed", "output_data": null,
            "error": {"code": "E", "message": "late"}});
        let late = hub.done(&work(&own, request, worker), failed);
        assert_error(&hub.post(&path, Some(&worker.key), &late).await, 409, "CONFLICT");
        // The requester has nothing to approve, and for other agents it does not exist.
        assert_error(&hub.approve(&asker.key, id, true).await, 404, "NOT_FOUND");
        let stranger = hub.node("stranger").await;
        let path = format!("{COLLABORATIONS}/{id}");
        assert_error(&hub.get(&path, Some(&stranger.key)).await, 404, "NOT_FOUND");
        assert_error(&hub.approve(&stranger.key, id, true).await, 404, "NOT_FOUND");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_or_called_off_is_read_and_settled_by_the_requests_own_id() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let (done, answer) = asked(&hub, &asker, &worker).await;
    let id = answer["collaboration_id"].as_str().expect("an id");
    hub.result(&work(id, &done, &worker), json!({})).await.expect(200);
    let (off, _) = asked(&hub, &asker, &worker).await;
    hub.cancel(&asker, id_of(&off), &json!({})).await.expect(200);
    for hub in [hub.restart(&[]).await] {
        assert_over(&hub, (&asker, &worker), &done, "completed").await;
        assert_over(&hub, (&asker, &worker), &off, "cancelled").await;
        hub.0.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rejected_stays_readable_for_its_responder() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let asks = hub.node_with("asks", json!({"response_mode": "ask"})).await;
    let request = hub.request(&asker, json!({"responder_agent_id": asks.id}));
    let no = json!({"response_status": "rejected", "collaboration_id": null,
        "rejection_reason": {"code": "policy_violation", "message": "no"}});
    hub.meanwhile(&asker, &request, async || {
        hub.respond(&asks, &request, no).await.expect(200);
    })
    .await
    .expect(200);
    assert_over(&hub, (&asker, &asks), &request, "rejected").await;
    // A request without approval: refused, or not answered for an hour.
    let careful = hub.able_node("careful", json!({"requires_approval": true})).await;
    let (refused, _) = asked(&hub, &asker, &careful).await;
    hub.approve(&careful.key, id_of(&refused), false).await.expect(200);
    assert_over(&hub, (&asker, &careful), &refused, "rejected").await;
    let (silent, _) = asked(&hub, &asker, &careful).await;
    hub.pass(Millis::hours(1));
    hub.becomes(&asker, id_of(&silent), "rejected").await;
    assert_over(&hub, (&asker, &careful), &silent, "rejected").await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_hub_shows_what_has_ended_by_the_requests_own_id() {
    let hub = Hub::open(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let reply = hub.post(COLLABORATIONS, None, &request).await.expect(200);
    let path = format!("{COLLABORATIONS}/{}", id_of(&request));
    let body = hub.done(&work(&reply.str("/collaboration_id"), &request, &worker), json!({}));
    hub.post(&format!("{path}/result"), None, &body).await.expect(200);
    assert_eq!(hub.get(&path, None).await.expect(200).str("/state"), "completed");
    let late = hub.post(&format!("{path}/approve"), None, &json!({"approved": true})).await;
    assert_error(&late, 409, "CONFLICT");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requesters_that_use_one_id_read_their_own_and_the_responder_says_which_it_means() {
    let hub = Hub::serve(&[]).await;
    let (one, two, worker) =
        (hub.node("one").await, hub.node("two").await, hub.node("worker").await);
    let first = hub.request(&one, json!({"responder_agent_id": worker.id}));
    let second = with(&first, json!({"requester_agent_id": two.id}));
    let mut ids = Vec::new();
    for (by, request) in [(&one, &first), (&two, &second)] {
        let reply = hub.ask(by, request).await.expect(200);
        let id = reply.str("/collaboration_id");
        hub.result(&work(&id, request, &worker), json!({})).await.expect(200);
        ids.push(id);
    }
    for (by, id) in [(&one, &ids[0]), (&two, &ids[1])] {
        assert_eq!(hub.view(by, id_of(&first)).await["collaboration_id"], **id);
        assert_eq!(hub.view(&worker, id).await["state"], "completed");
    }
    let path = format!("{COLLABORATIONS}/{}", id_of(&first));
    assert_error(&hub.get(&path, Some(&worker.key)).await, 404, "NOT_FOUND");
    hub.0.stop().await;
}
