//! Errors: every code of section 5, its status and its details (R4, R5, R77, R79–R81).

use serde_json::{Value, json};
use uuid::Uuid;

use super::kit::{Hub, Node, assert_error, fresh_id, identity, with};
use super::spoil::put;
use crate::kit::{Reply, counted, snapshot};

const REQUESTS: &str = "/openclaw/collaborations";

/// An error for which a retry does not help.
#[track_caller]
fn assert_final(reply: &Reply, status: u16, code: &str) {
    assert_error(reply, status, code);
    assert_eq!(reply.at("/error/retryable"), false, "{}", reply.text);
    assert!(reply.json().pointer("/error/retry_after_seconds").is_none(), "{}", reply.text);
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

/// An error that says when to retry.
#[track_caller]
fn assert_later(reply: &Reply, status: u16, code: &str) {
    assert_error(reply, status, code);
    assert_eq!(reply.at("/error/retryable"), true, "{}", reply.text);
    let wait = reply.at("/error/retry_after_seconds").as_u64().expect("seconds");
    assert_eq!(reply.header("retry-after"), Some(wait.to_string().as_str()), "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_wrong_with_a_message_is_told_at_once_and_nothing_is_stored() {
    let hub = Hub::serve(&[]).await;
    let before = snapshot(&hub).await;
    let mut body = identity("wrong", hub.now());
    for (pointer, value) in [
        ("/agent_name", json!("Chimera")),
        ("/version", json!("1")),
        ("/status/current_status", json!("busy")),
        ("/trust_signals", json!({"success_rate": 3})),
        ("/response_mode", json!("x")),
        ("/capabilities/input_schemas/x", json!({"$ref": "https://example.com/s"})),
    ] {
        body = put(&body, pointer, Some(value));
    }
    let body = put(&put(&body, "/agent_type", None), "/correlation_id", Some(json!(fresh_id())));
    let reply = hub.post("/openclaw/identity", None, &body).await;
    assert_final(&reply, 400, "VALIDATION_ERROR");
    let told = reply.at("/error/details/validation_errors");
    let told: Vec<&str> =
        told.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for part in [
        "agent_name ",
        "version ",
        "status.status_details.active_tasks ",
        "response_mode ",
        "trust_signals.success_rate ",
        "capabilities.input_schemas.x ",
        "agent_type ",
    ] {
        assert!(told.iter().any(|one| one.starts_with(part)), "{part}: {told:?}");
    }
    assert_eq!(told.len(), 7, "{told:?}");
    assert_eq!(reply.at("/correlation_id"), body["correlation_id"]);
    assert_eq!(snapshot(&hub).await, before);
    // The example in the error is valid.
    let example = reply.at("/error/details/example");
    hub.post("/openclaw/identity", None, &example).await.expect(201);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_json_are_too_long_or_packed_are_refused_with_an_id_of_the_hubs() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("node").await;
    let key = format!("Bearer {}", node.key);
    let before = counted(&hub);
    let paths = [
        "/openclaw/identity",
        "/openclaw/status",
        "/openclaw/reputation",
        "/openclaw/messages",
        REQUESTS,
    ]
    .map(str::to_owned)
    .to_vec();
    let id = fresh_id();
    let more = ["response", "approve", "result"].map(|end| format!("{REQUESTS}/{id}/{end}"));
    for path in paths.iter().chain(&more) {
        let key = [("authorization", key.as_str())];
        for body in [&b"{"[..], b"", b"\xff", b"[]", br#"{"a":1,"a":2}"#, br#"{"a":"\ud800"}"#] {
            let reply = hub.send("POST", path, &key, body).await;
            assert_final(&reply, 400, "VALIDATION_ERROR");
        }
        // Such a body is not read to its end, so the connection cannot be reused.
        let close = ("connection", "close");
        let long = vec![b' '; 1_048_577];
        let reply = hub.send("POST", path, &[key[0], close], &long).await;
        assert_final(&reply, 413, "TOO_LARGE");
        let packed = [key[0], close, ("content-encoding", "gzip")];
        assert_final(&hub.send("POST", path, &packed, b"{}").await, 415, "UNSUPPORTED_ENCODING");
    }
    assert_eq!(counted(&hub), before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_ids_and_conflicts_have_their_codes_and_the_requests_correlation_id() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let work = hub.accepted(&other, &node, json!({})).await;
    let done = hub.done(&work, json!({}));
    let request = hub.request(&node, json!({"responder_agent_id": other.id}));
    let result = format!("{REQUESTS}/{}/result", work.id);
    let before = snapshot(&hub).await;
    let named = |reply: Reply, body: &Value| {
        assert_eq!(reply.at("/correlation_id"), body["correlation_id"], "{}", reply.text);
        reply
    };
    let no_key = hub.post(REQUESTS, None, &request).await;
    assert_final(&no_key, 401, "UNAUTHORIZED");
    assert!(no_key.str("/correlation_id").parse::<Uuid>().is_ok(), "the body was not read");
    assert_final(&hub.post(REQUESTS, Some("rk_no"), &request).await, 401, "UNAUTHORIZED");
    let reply = hub.post(REQUESTS, Some(&other.key), &request).await;
    assert_final(&named(reply, &request), 403, "FORBIDDEN");
    let reply = hub.post(REQUESTS, Some(&hub.operator), &request).await;
    assert_final(&named(reply, &request), 403, "FORBIDDEN");
    let nowhere = format!("{REQUESTS}/{}/result", fresh_id());
    let reply = hub.post(&nowhere, Some(&node.key), &done).await;
    assert_final(&named(reply, &done), 404, "NOT_FOUND");
    let major = with(&request, json!({"protocol_version": "2.0.0"}));
    let reply = hub.post(REQUESTS, Some(&node.key), &major).await;
    assert_final(&named(reply, &major), 400, "UNSUPPORTED_PROTOCOL_VERSION");
    let taken = with(&node.identity, json!({"correlation_id": fresh_id()}));
    let reply = hub.post("/openclaw/identity", None, &taken).await;
    assert_final(&named(reply, &taken), 409, "CONFLICT");
    let reply = hub.approve(&node.key, &work.id, true).await;
    assert_final(&reply, 409, "CONFLICT");
    assert_eq!(snapshot(&hub).await, before);
    hub.post(&result, Some(&node.key), &done).await.expect(200);
    let second = with(&done, json!({"output_data": {"r": 2}}));
    let reply = hub.post(&result, Some(&node.key), &second).await;
    assert_final(&named(reply, &second), 409, "CONFLICT");
    hub.ask(&node, &request).await.expect(200);
    let changed = with(&request, json!({"input_data": {"a": 0.75}}));
    let reply = hub.ask(&node, &changed).await;
    assert_final(&named(reply, &changed), 422, "IDEMPOTENCY_CONFLICT");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_and_methods_there_are_not_are_told_in_the_same_form() {
    let hub = Hub::serve(&[]).await;
    for (method, path) in [("GET", "/openclaw/nowhere"), ("POST", "/openclaw/collaborations/x/y/z")]
    {
        assert_final(&hub.call(method, path, None, None).await, 404, "NOT_FOUND");
    }
    for (method, path) in [("PUT", "/openclaw/identity"), ("DELETE", "/openclaw/agents")] {
        assert_final(&hub.call(method, path, None, None).await, 405, "METHOD_NOT_ALLOWED");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn above_the_rate_is_told_when_to_come_back() {
    let hub = Hub::serve(&[("limits.writes_per_minute", "3")]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    for _ in 0..3 {
        hub.report(&node, "idle", json!({})).await.expect(200);
    }
    let before = counted(&hub);
    assert_later(&hub.report(&node, "idle", json!({})).await, 429, "RATE_LIMITED");
    assert_eq!(counted(&hub), before);
    hub.report(&other, "idle", json!({})).await.expect(200);
    hub.get(REQUESTS, Some(&node.key)).await.expect(200);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_cannot_write_says_so_and_goes_on_reading() {
    let hub = Hub::serve(&[]).await;
    let (node, other) = (hub.node("node").await, hub.node("other").await);
    let work = hub.accepted(&other, &node, json!({})).await;
    hub.engine.stop().await;
    let tries = [
        hub.report(&node, "idle", json!({})).await,
        hub.result(&work, json!({})).await,
        hub.hire(&node, &other, json!({})).await,
        hub.post("/openclaw/identity", None, &identity("late", hub.now())).await,
        hub.cancel(&other, &work.id, &json!({})).await,
    ];
    for reply in tries {
        assert_later(&reply, 503, "UNAVAILABLE");
    }
    assert_eq!(hub.view(&other, &work.id).await["state"], "running");
    assert_eq!(hub.entry(&node.id).await["active_collaborations"], 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_shows_a_key_a_file_path_or_an_agents_address() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let at = "http://127.0.0.1:9/inside";
    let worker = hub.node_with("worker", json!({"endpoint": at})).await;
    let stranger = Node { key: "rk_0123456789".to_owned(), ..asker.clone() };
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let said = "at /home/me, ask root@10.0.0.1";
    let failed = json!({"result_status": "failed", "output_data": null, "error": {"code": "X", "message": said}});
    hub.result(&work, failed).await.expect(200);
    let answers = [
        hub.ask(&stranger, &request).await,
        hub.ask(&worker, &request).await,
        hub.ask(&asker, &with(&request, json!({"priority": "high"}))).await,
        hub.post_text(REQUESTS, Some(&asker.key), "{").await,
        hub.get("/openclaw/agents", None).await,
        hub.get(&format!("/openclaw/agents/{}", worker.id), None).await,
        hub.get(&format!("/openclaw/agents/{}/status", worker.id), None).await,
        hub.get("/openclaw/nowhere?key=rk_1", None).await,
    ];
    let dir = hub.dir.path().display().to_string();
    for reply in answers {
        for word in [
            asker.key.as_str(),
            &worker.key,
            &stranger.key,
            &hub.operator,
            at,
            &dir,
            "src/",
            ".rs:",
            "panicked",
            "SELECT",
            "127.0.0.1",
        ] {
            assert!(!reply.text.contains(word), "{word} is in {}", reply.text);
        }
    }
    // An agent's own error is forwarded unchanged.
    let view = hub.view(&asker, &work.id).await;
    assert_eq!(view["result"]["error"]["message"], said);
    hub.0.stop().await;
}
