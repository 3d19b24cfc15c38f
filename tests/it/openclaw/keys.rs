//! Keys: their owners, what keys of other protocols open here, and which are refused (C2, C3).

use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::random::{OsRandom, RandomSource};
use serde_json::{Value, json};

use super::kit::{Hub, Node, assert_error, assert_rejected, fresh_id};
use crate::kit::{Reply, snapshot};

/// The agent of another protocol with this key under its id here, listed or not.
async fn known(hub: &Hub, key: &str) -> Node {
    let me = hub.get("/v1/me", Some(key)).await.expect(200);
    let id = me.str("/agent/names/openclaw");
    Node { id, key: key.to_owned(), identity: Value::Null }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_registry_or_the_relay_is_its_agent_here_too() {
    let hub = Hub::serve(&[]).await;
    let worker = hub.node("worker").await;
    let registry = hub.orchestrator("acme").await;
    let relay = hub.join("alice").await;
    for key in [&registry.key, &relay.key] {
        let guest = known(&hub, key).await;
        let mut stream = hub.stream(&guest, "").await;
        let work = hub.accepted(&guest, &worker, json!({})).await;
        hub.result(&work, json!({})).await.expect(200);
        let told = stream.until("collaboration_result").await.data;
        assert_eq!(told["output_data"], json!({"r": 1}));
        assert_eq!(hub.view(&guest, &work.id).await["state"], "completed");
        let own = hub.list(&guest, "?role=requester").await.expect(200);
        assert_eq!(own.at("/collaborations").as_array().map(Vec::len), Some(1));
        // Only under its id here; its native id is refused, too.
        let before = snapshot(&hub).await;
        for id in [worker.id.clone(), fresh_id()] {
            let request = hub.request(
                &guest,
                json!({"requester_agent_id": id, "responder_agent_id": worker.id}),
            );
            assert_error(&hub.ask(&guest, &request).await, 403, "FORBIDDEN");
        }
        assert_eq!(snapshot(&hub).await, before);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_from_here_is_its_agent_in_the_registry() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let me = hub.get("/v1/me", Some(&node.key)).await.expect(200);
    assert!(me.text.contains(&node.id), "{}", me.text);
    hub.get(&format!("/registry/accounts/openclaw:{}", node.id), Some(&node.key)).await.expect(200);
    hub.0.stop().await;
}

/// Every route that needs a key, with a body that is not read.
fn guarded(node: &Node) -> Vec<(&'static str, String)> {
    let id = fresh_id();
    let posts = ["/status", "/reputation", "/collaborations"].map(str::to_owned).into_iter();
    let ends = ["response", "approve", "result", "cancel"].into_iter();
    let ends = ends.map(|end| format!("/collaborations/{id}/{end}"));
    let asked = std::iter::once(format!("/agents/{}/collaborations", node.id));
    let posts = posts.chain(ends).chain(asked).map(|path| ("POST", path));
    let gets =
        ["/collaborations".to_owned(), format!("/collaborations/{id}"), "/stream".to_owned()];
    let gets = gets.into_iter().map(|path| ("GET", path));
    posts.chain(gets).chain([("DELETE", format!("/agents/{}", node.id))]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_unknown_and_former_keys_get_one_and_the_same_answer_before_the_body_is_read() {
    let hub = Hub::serve(&[]).await;
    let (node, gone) = (hub.node("node").await, hub.node("gone").await);
    hub.call("DELETE", &format!("/openclaw/agents/{}", gone.id), Some(&gone.key), None)
        .await
        .expect(200);
    let before = snapshot(&hub).await;
    let mut cut = node.key.clone();
    cut.pop();
    let unknown = |kind| Key::from_random(kind, OsRandom.new_key_bytes()).expose().to_owned();
    let wrong =
        [unknown(KeyPrefix::AGENT), unknown(KeyPrefix::OPERATOR), gone.key, cut, "x".to_owned()];
    let words = |reply: &Reply| {
        let error = reply.at("/error");
        (reply.status, error)
    };
    for (method, path) in guarded(&node) {
        let (path, body) = (format!("/openclaw{path}"), (method == "POST").then_some("{nonsense"));
        let missing = hub.call(method, &path, None, body).await;
        assert_error(&missing, 401, "UNAUTHORIZED");
        for key in &wrong {
            let reply = hub.call(method, &path, Some(key), body).await;
            assert_eq!(words(&reply), words(&missing), "{method} {path}");
        }
    }
    // Where no key is needed, an invalid one is refused all the same.
    for path in ["/openclaw/identity", "/openclaw/messages"] {
        let reply = hub.post_text(path, Some(&wrong[0]), "{nonsense").await;
        assert_error(&reply, 401, "UNAUTHORIZED");
    }
    assert_eq!(snapshot(&hub).await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_token_of_agora_is_no_key_here() {
    let hub = Hub::serve(&[]).await;
    let speaker = crate::agora::kit::Key::of(1);
    let did = hub.get("/agora", None).await.expect(200).str("/hub");
    let own = rialto_protocols::kit::ed25519::PublicKey::parse(&did).expect("a key");
    let hello = speaker.sign_for(
        rialto_protocols::agora::MessageType::Hello,
        &json!({"inbox": true}),
        Some(own),
    );
    let welcome = hub.call("POST", "/agora/envelopes", None, Some(&hello.text)).await.expect(200);
    let token = welcome.str("/payload/inbox_token");
    assert_error(&hub.get("/openclaw/collaborations", Some(&token)).await, 401, "UNAUTHORIZED");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_look_at_a_collaboration_is_a_look_at_nothing() {
    let hub = Hub::serve(&[]).await;
    let (asker, worker) = (hub.node("asker").await, hub.node("worker").await);
    let stranger = hub.node("stranger").await;
    let work = hub.accepted(&asker, &worker, json!({"input_data": {"a": 0.123}})).await;
    hub.result(&work, json!({"output_data": {"r": "secret"}})).await.expect(200);
    let there = format!("/openclaw/collaborations/{}", work.id);
    let nowhere = format!("/openclaw/collaborations/{}", fresh_id());
    let said = |reply: Reply| (reply.status, reply.at("/error"));
    for key in [&stranger.key, &hub.operator] {
        let (seen, unseen) = (hub.get(&there, Some(key)).await, hub.get(&nowhere, Some(key)).await);
        assert_eq!(seen.status, 404);
        assert_eq!(said(seen), said(unseen));
    }
    let request = work.request["request_id"].as_str().expect("an id");
    let by_request = format!("/openclaw/collaborations/{request}");
    assert_error(&hub.get(&by_request, Some(&stranger.key)).await, 404, "NOT_FOUND");
    for (end, body) in [("cancel", json!({})), ("approve", json!({"approved": true}))] {
        let (a, b) = (format!("{there}/{end}"), format!("{nowhere}/{end}"));
        let seen = hub.post(&a, Some(&stranger.key), &body).await;
        let unseen = hub.post(&b, Some(&stranger.key), &body).await;
        assert_eq!(said(seen), said(unseen), "{end}");
    }
    assert_eq!(hub.list(&stranger, "").await.expect(200).at("/collaborations"), json!([]));
    // It is in no public event either.
    let stream = hub.stream(&stranger, "?watch=all").await;
    let id = &worker.id;
    for path in [
        "/openclaw/agents",
        &format!("/openclaw/agents/{id}"),
        &format!("/openclaw/agents/{id}/status"),
        &format!("/openclaw/agents/{id}/reputation"),
    ] {
        let shown = hub.get(path, None).await.expect(200).text;
        assert!(!shown.contains("0.123") && !shown.contains("secret"), "{shown}");
    }
    drop(stream);
    // Its two parties see it completely.
    for party in [&asker, &worker] {
        let view: Value = hub.view(party, &work.id).await;
        assert_eq!(view["request"]["input_data"], json!({"a": 0.123}));
        assert_eq!(view["result"]["output_data"], json!({"r": "secret"}));
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_is_no_agent() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let operator = Node { key: hub.operator.clone(), ..node.clone() };
    let before = snapshot(&hub).await;
    let request = hub.request(&node, json!({"responder_agent_id": node.id}));
    assert_error(&hub.ask(&operator, &request).await, 403, "FORBIDDEN");
    assert_error(&hub.list(&operator, "").await, 403, "FORBIDDEN");
    assert_error(&hub.get("/openclaw/stream", Some(&operator.key)).await, 403, "FORBIDDEN");
    assert_eq!(snapshot(&hub).await, before);
    assert_rejected(&hub.ask(&node, &request).await, "policy_violation");
    hub.0.stop().await;
}
