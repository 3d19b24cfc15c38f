//! A collaboration is visible to its two parties only (R91, R61, R89).

use serde_json::{Value, json};

use super::kit::{Hub, Node, Work, fresh_id, with};
use super::scene::COLLABORATIONS;
use crate::kit::Reply;

/// An answer without what differs between calls.
fn plain(reply: &Reply) -> (u16, Value) {
    let nothing = json!({"timestamp": null, "correlation_id": null});
    (reply.status, with(&reply.json(), nothing))
}

/// Every message about a collaboration.
async fn tries(hub: &Hub, by: &Node, work: &Work, id: &str) -> Vec<(u16, Value)> {
    let own = json!({"responder_agent_id": by.id, "collaboration_id": id});
    let mut all = Vec::new();
    for (verb, body) in [
        ("response", hub.yes(by, &work.request, json!({"collaboration_id": fresh_id()}))),
        ("result", hub.done(work, own)),
        ("approve", json!({"approved": true})),
        ("cancel", json!({"reason": "mine"})),
    ] {
        let path = format!("{COLLABORATIONS}/{id}/{verb}");
        all.push(plain(&hub.post(&path, Some(&by.key), &body).await));
    }
    all.push(plain(&hub.get(&format!("{COLLABORATIONS}/{id}"), Some(&by.key)).await));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn to_a_stranger_it_is_as_if_it_had_never_been_in_any_state() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let stranger = hub.node("stranger").await;
    let registered = hub.orchestrator("acme").await;
    let running = hub.accepted(&asker, &worker, json!({})).await;
    let done = hub.accepted(&asker, &worker, json!({})).await;
    hub.result(&done, json!({})).await.expect(200);
    let off = hub.accepted(&asker, &worker, json!({})).await;
    hub.cancel(&asker, &off.id, &json!({})).await.expect(200);
    let before = hub.held().await;
    for work in [&running, &done, &off] {
        let unknown = tries(&hub, &stranger, work, &fresh_id()).await;
        assert!(unknown.iter().all(|(status, _)| *status == 404), "{unknown:?}");
        assert_eq!(tries(&hub, &stranger, work, &work.id).await, unknown);
        let request = work.request["request_id"].as_str().expect("an id");
        assert_eq!(tries(&hub, &stranger, work, request).await, unknown);
        let path = format!("{COLLABORATIONS}/{}", work.id);
        for key in [&registered.key, &hub.operator] {
            let seen = hub.get(&path, Some(key)).await;
            assert_eq!(plain(&seen), unknown[4], "the operator cannot read it either");
        }
        assert_eq!(hub.get(&path, None).await.status, 401);
    }
    assert_eq!(hub.held().await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_and_output_are_shown_to_the_two_and_nowhere_else() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let stranger = hub.node("stranger").await;
    let work =
        hub.accepted(&asker, &worker, json!({"input_data": {"a": 0.25, "note": "hushhush"}})).await;
    hub.result(&work, json!({"output_data": {"r": "hushhush"}})).await.expect(200);
    for party in [&asker, &worker] {
        let shown = hub.view(party, &work.id).await;
        assert_eq!(shown["request"]["input_data"]["note"], "hushhush");
        assert_eq!(shown["result"]["output_data"]["r"], "hushhush");
    }
    for path in [
        "/openclaw/agents".to_owned(),
        "/openclaw/health".to_owned(),
        format!("/openclaw/agents/{}", worker.id),
        format!("/openclaw/agents/{}/status", worker.id),
        format!("/openclaw/agents/{}/reputation", worker.id),
        COLLABORATIONS.to_owned(),
    ] {
        let reply = hub.get(&path, Some(&stranger.key)).await.expect(200);
        assert!(!reply.text.contains("hushhush"), "{path}: {}", reply.text);
    }
    let list = hub.list(&stranger, "").await.expect(200);
    assert_eq!(list.at("/collaborations"), json!([]));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_party_finds_it_by_the_requests_own_id_also_when_it_is_over() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let request = work.request["request_id"].as_str().expect("an id");
    for party in [&asker, &worker] {
        assert_eq!(hub.view(party, request).await["collaboration_id"], work.id);
    }
    hub.result(&work, json!({})).await.expect(200);
    assert_eq!(hub.view(&asker, request).await["state"], "completed");
    // The same id of another requester is another request.
    let other = hub.node("other").await;
    let theirs = hub.accepted(&other, &worker, json!({"request_id": request})).await;
    assert_eq!(hub.view(&other, request).await["collaboration_id"], theirs.id);
    assert_eq!(hub.view(&asker, request).await["collaboration_id"], work.id);
    hub.0.stop().await;
}
