//! The response envelope and its codes, on every path and for every refusal (R69–R71, R76).

use serde_json::{Value, json};

use super::kit::{
    BOTH, assert_bad, assert_error, assert_rejected, assert_wrapped, message, registration, state,
    with,
};
use crate::kit::{Behaviour, ClosedPort, TestHub, Worker};

#[tokio::test(flavor = "multi_thread")]
async fn the_eight_operations_have_the_specs_methods_paths_keys_and_codes() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let path = |path: &str| format!("{prefix}{path}");
        // Self-register: POST /register, no key, 201.
        let ada = hub.post(&path("/register"), None, &registration("ada@chorus")).await.expect(201);
        let key = ada.str("/data/api_key");
        // Inbox: GET /agent/inbox, agent key, 200 and a stream.
        let inbox = hub.http.get(format!("{}{prefix}/agent/inbox", hub.url)).bearer_auth(&key);
        let inbox = inbox.send().await.expect("an answer");
        assert_eq!(
            (inbox.status().as_u16(), &inbox.headers()["content-type"]),
            (200, &reqwest::header::HeaderValue::from_static("text/event-stream"))
        );
        // Register as operator: POST /agents, operator key, 201 then 200.
        let body =
            with(&registration("bob@chorus"), "/endpoint", Some(json!("https://bob.example")));
        for status in [201, 200] {
            hub.post(&path("/agents"), Some(&hub.operator), &body).await.expect(status);
        }
        // Discover: GET /agents and GET /agents/:id, no key, 200.
        hub.get(&path("/agents"), None).await.expect(200);
        hub.get(&path("/agents/bob%40chorus"), None).await.expect(200);
        // Send: POST /messages, agent or operator key, 200.
        for key in [&key, &hub.operator] {
            let body = message("ada@chorus", "ada@chorus", "note to self");
            hub.post(&path("/messages"), Some(key), &body).await.expect(200);
        }
        // Health: GET /health, no key, 200.
        hub.get(&path("/health"), None).await.expect(200);
        // Unregister: DELETE /agents/:id, agent or operator key, 200.
        hub.call("DELETE", &path("/agents/ada%40chorus"), Some(&key), None).await.expect(200);
        hub.call("DELETE", &path("/agents/bob%40chorus"), Some(&hub.operator), None)
            .await
            .expect(200);
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_is_opened_by_its_agents_key_and_no_other() {
    let hub = TestHub::serve(&[]).await;
    hub.join("ada").await;
    for prefix in BOTH {
        let made_up = "ca_0123456789abcdef0123456789abcdef012345674195f880";
        for key in [None, Some("x"), Some(made_up), Some(hub.operator.as_str())] {
            for path in ["/agent/inbox", "/agent/messages", "/agent/blocks"] {
                let reply = hub.get(&format!("{prefix}{path}"), key).await;
                assert_error(&reply, 401, "ERR_UNAUTHORIZED");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            }
        }
        let in_url = hub.get(&format!("{prefix}/agent/inbox?token=x"), None).await;
        assert_error(&in_url, 401, "ERR_UNAUTHORIZED");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_path_or_method_is_refused_in_the_same_form() {
    let hub = TestHub::serve(&[]).await;
    for path in [
        "/relay/nothing",
        "/relay",
        "/relay/",
        "/nothing",
        "/",
        "/agent",
        "/relay/agents/a/b/c",
        "/agents/a/b/c",
    ] {
        for method in ["GET", "POST", "DELETE"] {
            assert_error(&hub.call(method, path, None, None).await, 404, "ERR_NOT_FOUND");
        }
    }
    for prefix in BOTH {
        for (method, path, allowed) in [
            ("PUT", "/agents", "POST"),
            ("PATCH", "/agents/ada", "DELETE"),
            ("POST", "/agent/inbox", "GET"),
            ("GET", "/messages", "POST"),
            ("POST", "/health", "GET"),
            ("POST", "/.well-known/chorus.json", "GET"),
            ("GET", "/agents/ada/key", "POST"),
            ("POST", "/agent/blocks/ada", "PUT"),
        ] {
            let reply = hub.call(method, &format!("{prefix}{path}"), None, None).await;
            assert_error(&reply, 405, "ERR_METHOD_NOT_ALLOWED");
            let allow = reply.header("allow").unwrap_or_default();
            assert!(allow.contains(allowed), "{method} {prefix}{path}: {allow}");
        }
    }
    let get = hub.get("/relay/register", None).await;
    assert_error(&get, 405, "ERR_METHOD_NOT_ALLOWED");
    hub.stop().await;
}

/// Every path that takes a body.
const BODIES: [&str; 4] = ["/relay/register", "/messages", "/agents", "/agent/inbox/ack"];

fn unreadable() -> Vec<(&'static str, Vec<u8>)> {
    let with = |member: &str| format!(r#"{{"agent_id":"eve@chorus",{member}}}"#).into_bytes();
    let deep = format!(r#""x":{}{}"#, "[".repeat(64), "]".repeat(64));
    let wide = format!(r#""x":[{}]"#, vec!["0"; 10_000].join(","));
    vec![
        ("nothing", Vec::new()),
        ("a byte order mark", [b"\xef\xbb\xbf", with(r#""x":1"#).as_slice()].concat()),
        ("bytes that are not UTF-8", b"{\"agent_id\":\"\xff\"}".to_vec()),
        ("text after the value", [with(r#""x":1"#).as_slice(), b" x"].concat()),
        ("a name twice", with(r#""agent_id":"b@c""#)),
        ("half a surrogate pair", with(r#""x":"\ud800""#)),
        ("65 levels", with(&deep)),
        ("10,001 members and items", with(&wide)),
        ("an end too early", br#"{"agent_id":"eve@chorus""#.to_vec()),
        ("a list", b"[]".to_vec()),
        ("a text", b"\"agent_id\"".to_vec()),
        ("null", b"null".to_vec()),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_read_in_one_way_only_is_refused_without_effect() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let before = state(&hub).await;
    for (what, body) in unreadable() {
        for path in BODIES.iter().flat_map(|path| [(*path).to_owned(), format!("/relay{path}")]) {
            let path = path.replace("/relay/relay", "/relay");
            let key = if path.ends_with("/agents") { &hub.operator } else { &ada.key };
            let bearer = format!("Bearer {key}");
            let reply = hub.send("POST", &path, &[("authorization", &bearer)], &body).await;
            assert_eq!(reply.status, 400, "{what} at {path}: {}", reply.text);
            assert_bad(&reply, "");
            if path.ends_with("/messages") {
                assert_rejected(&reply, 400, "ERR_VALIDATION");
            }
            let example = reply.at("/error/example");
            assert!(example.as_object().is_some_and(|members| !members.is_empty()), "{path}");
        }
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_json_whatever_its_content_type_says_and_is_not_unpacked() {
    let hub = TestHub::serve(&[]).await;
    let types = [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/json; charset=latin1",
    ];
    for (n, kind) in types.into_iter().enumerate() {
        let body = registration(&format!("agent{n}x@chorus")).to_string();
        for (path, status) in [("/relay/register", 201), ("/register", 409)] {
            let reply = hub.send("POST", path, &[("content-type", kind)], body.as_bytes()).await;
            assert_eq!(reply.status, status, "{kind}: {}", reply.text);
        }
    }
    let ada = hub.join("ada").await;
    let before = state(&hub).await;
    let bearer = format!("Bearer {}", ada.key);
    for prefix in BOTH {
        for path in ["/messages", "/agent/inbox/ack"] {
            for coding in ["gzip", "br", "identity, gzip"] {
                let headers = [
                    ("authorization", bearer.as_str()),
                    ("content-encoding", coding),
                    ("connection", "close"),
                ];
                let reply =
                    hub.send("POST", &format!("{prefix}{path}"), &headers, b"\x1f\x8b").await;
                assert_error(&reply, 415, "ERR_UNSUPPORTED_ENCODING");
            }
        }
    }
    let headers = [("content-encoding", "gzip"), ("connection", "close")];
    let reply = hub.send("POST", "/relay/register", &headers, b"\x1f\x8b").await;
    assert_error(&reply, 415, "ERR_UNSUPPORTED_ENCODING");
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_but_the_exceptions_is_wrapped_and_dated_in_utc() {
    for prefix in BOTH {
        let hub = TestHub::open(&[]).await;
        let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        let sent = hub.say(&ada, &bob, "hi").await;
        let trace = sent.str("/data/trace_id");
        let (key, operator) = (Some(ada.key.as_str()), Some(hub.operator.as_str()));
        for (method, path, key, body) in [
            ("POST", "/register", None, registration("carol@chorus")),
            ("POST", "/register", key, registration("ada@chorus")),
            (
                "POST",
                "/agents",
                operator,
                json!({"agent_id": "dora", "endpoint": "https://dora.example"}),
            ),
            ("POST", "/agents/dora/key", operator, json!({})),
            ("GET", "/agents", None, Value::Null),
            ("GET", "/agents/ada", None, Value::Null),
            ("POST", "/messages", key, message("ada@chorus", "bob", "hi again")),
            ("GET", &format!("/messages/{trace}"), key, Value::Null),
            ("GET", "/agent/messages", key, Value::Null),
            ("POST", "/agent/inbox/ack", key, json!({"up_to": 0})),
            ("PUT", "/agent/blocks/bob", key, Value::Null),
            ("GET", "/agent/blocks", key, Value::Null),
            ("DELETE", "/agent/blocks/bob", key, Value::Null),
            ("GET", "/health", None, Value::Null),
            ("DELETE", "/agents/dora", operator, Value::Null),
        ] {
            let body = body.to_string();
            let body = (body != "null").then_some(body.as_str());
            let reply = hub.call(method, &format!("{prefix}{path}"), key, body).await;
            assert!(reply.status < 300, "{method} {path}: {}", reply.text);
            assert_wrapped(&reply, true);
            let members: Vec<String> =
                reply.json().as_object().expect("an object").keys().cloned().collect();
            assert_eq!(members, ["data", "metadata", "success"], "{method} {path}");
        }
        // The exceptions: the document, the stream and the receive endpoint.
        let document =
            hub.get(&format!("{prefix}/.well-known/chorus.json"), None).await.expect(200);
        assert!(document.json().get("success").is_none());
        let received = hub.post("/relay/receive/ada", None, &json!({})).await.expect(400);
        assert_eq!(received.str("/status"), "error");
        assert!(received.json().get("success").is_none());
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_specs_six_codes_have_their_statuses_and_say_whether_to_retry() {
    let closed = ClosedPort::take();
    let worker = Worker::start(Behaviour::Dawdle(std::time::Duration::from_secs(600))).await;
    let flags = [("relay.failed_status", "error"), ("egress.timeout", "300ms")];
    let hub = TestHub::serve(&flags).await;
    let ada = hub.join("ada").await;
    hub.join_at("closed", &closed.url).await;
    hub.join_at("silent", &worker.url).await;
    for (from, to, key, status, code, retryable) in [
        ("ada@chorus", "a b", Some(&ada.key), 400, "ERR_VALIDATION", false),
        ("ada@chorus", "carol", Some(&ada.key), 404, "ERR_AGENT_NOT_FOUND", false),
        ("ada@chorus", "closed", Some(&ada.key), 502, "ERR_AGENT_UNREACHABLE", true),
        ("ada@chorus", "silent", Some(&ada.key), 504, "ERR_TIMEOUT", true),
        ("ada@chorus", "closed", None, 401, "ERR_UNAUTHORIZED", false),
        ("carol@chorus", "closed", Some(&ada.key), 400, "ERR_SENDER_NOT_REGISTERED", false),
    ] {
        let body = message(from, to, code);
        let reply = hub.post("/messages", key.map(String::as_str), &body).await;
        assert_eq!(reply.status, status, "{}", reply.text);
        assert_wrapped(&reply, false);
        assert_eq!(reply.str("/error/code"), code);
        assert_eq!(reply.at("/error/retryable"), retryable, "{code}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_message_and_another_agents_message_are_both_not_found() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
    let eve = hub.join("eve").await;
    let trace = hub.say(&ada, &bob, "hi").await.expect(202).str("/data/trace_id");
    let made_up = "00000000-0000-8000-8000-000000000000";
    for prefix in BOTH {
        let theirs = hub.get(&format!("{prefix}/messages/{trace}"), Some(&eve.key)).await;
        assert_error(&theirs, 404, "ERR_NOT_FOUND");
        for id in [made_up, "x", "%FF"] {
            let reply = hub.get(&format!("{prefix}/messages/{id}"), Some(&eve.key)).await;
            assert_eq!(reply.at("/error"), theirs.at("/error"), "{id} is as unknown as another's");
        }
    }
    hub.stop().await;
}
