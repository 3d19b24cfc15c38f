//! The header `Idempotency-Key` on every POST (C9).

use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, identity, with};
use crate::kit::{Reply, counted, snapshot};

impl Hub {
    async fn once(&self, path: &str, key: Option<&str>, once: &str, body: &Value) -> Reply {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let mut headers = vec![("idempotency-key", once)];
        headers.extend(bearer.iter().map(|key| ("authorization", key.as_str())));
        self.send("POST", path, &headers, body.to_string().as_bytes()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_post_twice_has_one_effect_and_one_answer() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let path = "/openclaw/collaborations";
    let first = hub.once(path, Some(&asker.key), "one", &request).await.expect(200);
    let work = super::scene::work(&first.str("/collaboration_id"), &request, &worker);
    let done = hub.done(&work, json!({}));
    let result = format!("{path}/{}/result", work.id);
    let published = hub.once(&result, Some(&worker.key), "one", &done).await.expect(200);
    let before = snapshot(&hub).await;
    for (path, by, body, first) in
        [(path, &asker, &request, &first), (result.as_str(), &worker, &done, &published)]
    {
        let again = hub.once(path, Some(&by.key), "one", body).await.expect(200);
        assert_eq!(again.text, first.text);
        assert_eq!(again.header("idempotency-replayed"), Some("true"));
        assert_eq!(first.header("idempotency-replayed"), None);
    }
    assert_eq!(snapshot(&hub).await, before);
    // The same key at another path, or of another agent, is another key.
    let status = json!({"agent_id": asker.id, "correlation_id": request["correlation_id"], "timestamp": hub.time(0),
        "status_update": {"current_status": "idle", "status_timestamp": hub.time(0)}});
    hub.once("/openclaw/status", Some(&asker.key), "one", &status).await.expect(200);
    let other = hub.request(&worker, json!({"responder_agent_id": asker.id}));
    let reply = hub.once(path, Some(&worker.key), "one", &other).await.expect(200);
    assert_eq!(reply.header("idempotency-replayed"), None);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_with_another_body_is_refused() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let path = "/openclaw/collaborations";
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    hub.once(path, Some(&asker.key), "one", &request).await.expect(200);
    let before = snapshot(&hub).await;
    let other = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let reply = hub.once(path, Some(&asker.key), "one", &other).await;
    assert_error(&reply, 422, "IDEMPOTENCY_CONFLICT");
    assert_eq!(reply.at("/error/retryable"), false);
    assert_error(&hub.once(path, Some(&asker.key), "", &other).await, 400, "VALIDATION_ERROR");
    let long = "k".repeat(257);
    assert_error(&hub.once(path, Some(&asker.key), &long, &other).await, 400, "VALIDATION_ERROR");
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_however_often_it_is_asked_for() {
    let hub = Hub::serve(&[]).await;
    let body = with(&identity("node", hub.now()), json!({"endpoint": "http://127.0.0.1:9/"}));
    let path = "/openclaw/identity";
    let first = hub.once(path, None, "one", &body).await.expect(201);
    assert!(first.str("/api_key").starts_with("rk_"));
    let before = counted(&hub);
    let again = hub.once(path, None, "one", &body).await.expect(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.str("/agent_id"), first.str("/agent_id"));
    assert!(!again.text.contains("rk_") && !again.text.contains("whsec_"), "{}", again.text);
    assert_eq!(counted(&hub), before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_before_it_began_may_be_put_right() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let path = "/openclaw/identity";
    let wrong = with(&node.identity, json!({"version": "1"}));
    let reply = hub.once(path, Some(&node.key), "one", &wrong).await;
    assert_error(&reply, 400, "VALIDATION_ERROR");
    hub.once(path, Some(&node.key), "one", &node.identity).await.expect(200);
    // An invalid credential does not get a saved answer.
    let bad = Node { key: "rk_no".to_owned(), ..node.clone() };
    let reply = hub.once(path, Some(&bad.key), "one", &node.identity).await;
    assert_error(&reply, 401, "UNAUTHORIZED");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_an_open_hub_a_key_belongs_to_who_the_body_says_it_is() {
    let hub = Hub::open(&[]).await;
    let (asker, other) = (hub.node("asker").await, hub.node("other").await);
    let path = "/openclaw/collaborations";
    for by in [&asker, &other] {
        let request = hub.request(by, json!({"responder_agent_id": asker.id}));
        let first = hub.once(path, None, "one", &request).await.expect(200);
        assert_eq!(first.header("idempotency-replayed"), None, "another requester's key");
        let again = hub.once(path, None, "one", &request).await.expect(200);
        assert_eq!(
            (again.header("idempotency-replayed"), &again.text),
            (Some("true"), &first.text)
        );
    }
    hub.0.stop().await;
}
