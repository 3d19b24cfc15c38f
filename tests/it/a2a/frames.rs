//! JSON-RPC requests and their errors (R18–R22), and the same errors over HTTP+JSON.

use serde_json::{Value, json};

use super::kit::{HUB, TaskWorker, id, rpc, state, text_message};
use crate::kit::{Reply, TestHub};

struct Scene {
    hub: TestHub,
    key: String,
}

impl Scene {
    async fn set() -> Self {
        let hub = TestHub::serve(&[]).await;
        let key = hub.a2a_client("client").await.key;
        Self { hub, key }
    }

    /// A body as it is.
    async fn post(&self, more: &[(&str, &str)], body: &str) -> Reply {
        self.hub.request(("POST", HUB), &self.key, more, body).await
    }
}

/// The code of an error, its id, and the rest of its form.
#[track_caller]
fn check(reply: &Reply, code: i64, reason: &str, id: &Value) {
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.str("/jsonrpc"), "2.0");
    assert_eq!((&reply.at("/id"), &reply.at("/error/code")), (id, &json!(code)), "{}", reply.text);
    let info = reply.at("/error/data/0");
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    assert_eq!((&info["reason"], &info["domain"]), (&json!(reason), &json!("a2a-protocol.org")));
    assert!(info["metadata"].is_object());
    assert!(!reply.str("/error/message").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_returned_digit_by_digit() {
    let scene = Scene::set().await;
    for id in ["1", "0", "-7", "12345678901234567890", "\"r-1\"", "\"\"", "\"\\u00e9\\n\"", "null"]
    {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ListTasks"}}"#);
        let reply = scene.post(&[], &body).await.expect(200);
        assert!(reply.text.contains(&format!(r#""id":{id},"#)), "{id}: {}", reply.text);
        assert!(reply.at("/result/tasks").is_array());
    }
    let reply = scene.post(&[], r#"{"jsonrpc":"2.0","method":"ListTasks"}"#).await;
    assert_eq!(reply.at("/id"), Value::Null);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_refused_with_what_is_known_of_its_id() {
    let scene = Scene::set().await;
    let seven = json!(7);
    for (body, code, reason, id) in [
        (
            r#"[{"jsonrpc":"2.0","id":7,"method":"ListTasks"}]"#,
            -32600,
            "INVALID_REQUEST",
            json!(null),
        ),
        (r#""hello""#, -32600, "INVALID_REQUEST", json!(null)),
        (
            r#"{"jsonrpc":"1.0","id":7,"method":"ListTasks"}"#,
            -32600,
            "INVALID_REQUEST",
            seven.clone(),
        ),
        (
            r#"{"jsonrpc":2.0,"id":7,"method":"ListTasks"}"#,
            -32600,
            "INVALID_REQUEST",
            seven.clone(),
        ),
        (r#"{"id":7,"method":"ListTasks"}"#, -32600, "INVALID_REQUEST", seven.clone()),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600, "INVALID_REQUEST", seven.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":8}"#, -32600, "INVALID_REQUEST", seven.clone()),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ListTasks"}"#,
            -32600,
            "INVALID_REQUEST",
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ListTasks"}"#,
            -32600,
            "INVALID_REQUEST",
            json!(null),
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"ListTasks"}"#,
            -32600,
            "INVALID_REQUEST",
            json!(null),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"Dance"}"#, -32601, "METHOD_NOT_FOUND", seven.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":""}"#, -32601, "METHOD_NOT_FOUND", seven.clone()),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"sendmessage"}"#,
            -32601,
            "METHOD_NOT_FOUND",
            seven.clone(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":[]}"#,
            -32602,
            "INVALID_PARAMS",
            seven.clone(),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":"x"}"#,
            -32602,
            "INVALID_PARAMS",
            seven.clone(),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"GetTask"}"#, -32602, "INVALID_PARAMS", seven.clone()),
        (r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#, -32601, "METHOD_NOT_FOUND", seven.clone()),
        ("{", -32700, "PARSE_ERROR", json!(null)),
        ("", -32700, "PARSE_ERROR", json!(null)),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":7,"method":"ListTasks"}"#,
            -32700,
            "PARSE_ERROR",
            json!(null),
        ),
    ] {
        check(&scene.post(&[], body).await, code, reason, &id);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_is_json_whatever_its_type_says_and_the_type_is_named_only_if_it_is_not() {
    let scene = Scene::set().await;
    let good = rpc(1, "ListTasks", json!({})).to_string();
    for kind in ["text/plain", "application/xml", "application/json; charset=utf-8"] {
        let reply = scene.post(&[("content-type", kind)], &good).await.expect(200);
        assert!(reply.at("/result/tasks").is_array(), "{kind}");
    }
    let bad = "<hello/>";
    let null = json!(null);
    for (kind, code, reason) in [
        ("text/xml", -32005, "CONTENT_TYPE_NOT_SUPPORTED"),
        ("application/json", -32700, "PARSE_ERROR"),
        ("APPLICATION/JSON", -32700, "PARSE_ERROR"),
        ("application/a2a+json", -32700, "PARSE_ERROR"),
    ] {
        let reply = scene.post(&[("content-type", kind)], bad).await;
        check(&reply, code, reason, &null);
        let path = "/a2a/message:send";
        let more = [("content-type", kind)];
        let http = scene.hub.request(("POST", path), &scene.key, &more, bad).await.expect(400);
        assert_eq!(http.str("/error/details/0/reason"), reason);
        assert_eq!(http.str("/error/status"), "INVALID_ARGUMENT");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameters_are_reported_all_at_once_with_their_places() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let params = json!({
        "message": {
            "messageId": "x".repeat(257), "role": "ROLE_AGENT", "contextId": "c\u{202e}",
            "parts": [{"text": "a", "url": "b"}, {}, {"text": 1}, {"raw": "§"}],
            "metadata": {"urn:rialto:a2a:hire:v1": {"budget": "1.0000001", "queue": "yes", "key": "", "hop": -1}},
            "extensions": [1],
        },
        "configuration": {"historyLength": -1, "returnImmediately": "no",
            "taskPushNotificationConfig": {"token": 7}},
    });
    let mut expected = [
        "message.messageId",
        "message.role",
        "message.contextId",
        "message.parts[0]",
        "message.parts[1]",
        "message.parts[2].text",
        "message.parts[3].raw",
        "message.metadata.urn:rialto:a2a:hire:v1.budget",
        "message.metadata.urn:rialto:a2a:hire:v1.queue",
        "message.metadata.urn:rialto:a2a:hire:v1.key",
        "message.metadata.urn:rialto:a2a:hire:v1.hop",
        "message.extensions[0]",
        "configuration.historyLength",
        "configuration.returnImmediately",
        "configuration.taskPushNotificationConfig.url",
        "configuration.taskPushNotificationConfig.token",
    ];
    expected.sort_unstable();
    let fields = |violations: &Value| {
        let all = violations.as_array().expect("violations").iter();
        let mut all: Vec<String> = all
            .map(|one| {
                assert!(one["description"].as_str().is_some_and(|text| !text.is_empty()), "{one}");
                one["field"].as_str().expect("a place").to_owned()
            })
            .collect();
        all.sort_unstable();
        all
    };
    let reply = scene.hub.rpc(&worker.base, &scene.key, "SendMessage", params.clone()).await;
    check(&reply, -32602, "INVALID_PARAMS", &json!(1));
    assert_eq!(reply.str("/error/data/1/@type"), "type.googleapis.com/google.rpc.BadRequest");
    assert_eq!(fields(&reply.at("/error/data/1/fieldViolations")), expected);
    let path = format!("{}/message:send", worker.base);
    let http = scene.hub.request(("POST", &path), &scene.key, &[], &params.to_string()).await;
    let http = http.expect(400);
    assert_eq!(fields(&http.at("/error/details/1/fieldViolations")), expected);
    // A client is told the one role that it has.
    for role in ["ROLE_AGENT", "ROLE_ROBOT"] {
        let message = json!({"messageId": "m", "role": role, "parts": [{"text": "hi"}]});
        let params = json!({ "message": message });
        let reply = scene.hub.rpc(&worker.base, &scene.key, "SendMessage", params).await;
        assert_eq!(reply.str("/error/message"), "message.role must be ROLE_USER");
    }
    // 0.3 has them beside the reason.
    let old = json!({"message": {"role": "agent", "parts": [{"kind": "video"}]}, "metadata": 7});
    let old = rpc(1, "message/send", old).to_string();
    let reply = scene.hub.request(("POST", &worker.base), &scene.key, &[("a2a-version", "")], &old);
    let reply = reply.await.expect(200);
    assert_eq!(
        (reply.at("/error/code"), reply.at("/error/data/reason")),
        (json!(-32602), json!("INVALID_PARAMS"))
    );
    let places = fields(&reply.at("/error/data/fieldViolations"));
    assert_eq!(places, ["message.messageId", "message.parts[0].kind", "message.role", "metadata"]);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_has_the_code_the_status_and_the_details_of_the_table() {
    let scene = Scene::set().await;
    let hub = &scene.hub;
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.key.as_str());
    let (done, _) = tokio::join!(
        hub.result(base, key, "SendMessage", json!({"message": text_message("m-1", "hi")})),
        worker.work(json!({"text": "done"}))
    );
    let done = done["task"]["id"].as_str().expect("an id").to_owned();
    let unknown = "00000000-0000-4000-8000-000000000000";
    let image = json!({"messageId": "m", "role": "ROLE_USER",
        "parts": [{"raw": "AA==", "mediaType": "image/png"}]});
    for (method, params, http, code, reason, status) in [
        (
            "GetTask",
            json!({"id": unknown}),
            format!("GET /tasks/{unknown}"),
            -32001,
            "TASK_NOT_FOUND",
            (404, "NOT_FOUND"),
        ),
        (
            "CancelTask",
            json!({"id": done}),
            format!("POST /tasks/{done}:cancel"),
            -32002,
            "TASK_NOT_CANCELABLE",
            (400, "FAILED_PRECONDITION"),
        ),
        (
            "SubscribeToTask",
            json!({"id": done}),
            format!("POST /tasks/{done}:subscribe"),
            -32004,
            "UNSUPPORTED_OPERATION",
            (400, "FAILED_PRECONDITION"),
        ),
        (
            "SendMessage",
            json!({"message": image}),
            "POST /message:send".to_owned(),
            -32005,
            "CONTENT_TYPE_NOT_SUPPORTED",
            (400, "INVALID_ARGUMENT"),
        ),
        (
            "ListTasks",
            json!({"pageSize": 0}),
            "GET /tasks?pageSize=0".to_owned(),
            -32602,
            "INVALID_PARAMS",
            (400, "INVALID_ARGUMENT"),
        ),
    ] {
        let body = rpc(1, method, params.clone()).to_string();
        let reply = hub.request(("POST", base), key, &[], &body).await;
        check(&reply, code, reason, &json!(1));
        let (verb, path) = http.split_once(' ').expect("a verb");
        let path = format!("{base}{path}");
        let body = if path.ends_with(":send") { params.to_string() } else { String::new() };
        let reply =
            hub.request((verb, &path), key, &[("accept", "application/a2a+json")], &body).await;
        assert_eq!(reply.header("content-type"), Some("application/json"), "{http}");
        let shown = (reply.at("/error/code"), reply.str("/error/status"));
        assert_eq!((reply.status, shown), (status.0, (json!(status.0), status.1.to_owned())));
        assert_eq!(reply.str("/error/details/0/reason"), reason);
        assert_eq!(reply.str("/error/details/0/domain"), "a2a-protocol.org");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_transport_have_its_status_in_json_rpc_too() {
    let scene = Scene::set().await;
    let hub = &scene.hub;
    let good = rpc(1, "ListTasks", json!({})).to_string();
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","more":"{}"}}"#, "x".repeat(2 << 20));
    for (key, more, body, status, code, reason) in [
        ("", ("accept", "*/*"), good.as_str(), 401, -32050, "UNAUTHENTICATED"),
        ("rk_wrong", ("accept", "*/*"), good.as_str(), 401, -32050, "UNAUTHENTICATED"),
        (hub.operator.as_str(), ("accept", "*/*"), good.as_str(), 403, -32051, "FORBIDDEN"),
        (scene.key.as_str(), ("accept", "*/*"), large.as_str(), 413, -32056, "TOO_LARGE"),
        (
            scene.key.as_str(),
            ("content-encoding", "gzip"),
            good.as_str(),
            415,
            -32056,
            "UNSUPPORTED_ENCODING",
        ),
    ] {
        let reply = hub.request(("POST", HUB), key, &[more], body).await.expect(status);
        assert_eq!(reply.at("/error/code"), code, "{}", reply.text);
        let info = reply.at("/error/data/0");
        assert_eq!((&info["reason"], &info["domain"]), (&json!(reason), &json!("rialto")));
        assert_eq!(reply.str("/jsonrpc"), "2.0");
        let path = "/a2a/message:send";
        let reply = hub.request(("POST", path), key, &[more], body).await.expect(status);
        assert_eq!(reply.at("/error/code"), status, "{}", reply.text);
        assert_eq!(reply.str("/error/details/0/reason"), reason);
    }
    scene.hub.stop().await;
    // A caller that is too fast is told when to come back.
    let hub = TestHub::serve(&[("limits.writes_per_minute", "1")]).await;
    let key = hub.a2a_client("client").await.key;
    let mut last = hub.rpc(HUB, &key, "ListTasks", json!({})).await;
    for _ in 0..3 {
        last = hub.rpc(HUB, &key, "ListTasks", json!({})).await;
    }
    let last = last.expect(429);
    assert_eq!(
        (last.at("/error/code"), last.str("/error/data/0/reason")),
        (json!(-32052), "RATE_LIMITED".to_owned())
    );
    assert!(last.header("retry-after").is_some());
    let http = hub.request(("GET", "/a2a/tasks"), &key, &[], "").await;
    let http = match http.status {
        // Reads are not counted.
        200 => hub.request(("POST", "/a2a/message:send"), &key, &[], "{}").await,
        _ => http,
    };
    let http = http.expect(429);
    assert_eq!(http.str("/error/details/0/reason"), "RATE_LIMITED");
    assert_eq!(http.str("/error/status"), "RESOURCE_EXHAUSTED");
    assert!(http.header("retry-after").is_some());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_cannot_write_says_so_in_every_form_and_goes_on_reading() {
    let scene = Scene::set().await;
    let (hub, key) = (&scene.hub, scene.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let base = worker.base.as_str();
    let task = id(&hub.begin(base, key, text_message("m-1", "hi")).await);
    hub.engine.stop().await;
    let old = json!({"messageId": "o", "role": "user", "parts": [{"kind": "text", "text": "hi"}]});
    let send = json!({"message": text_message("m-2", "hi")});
    let rpc_send = rpc(1, "SendMessage", send.clone()).to_string();
    let cancel = rpc(1, "CancelTask", json!({"id": task})).to_string();
    let old_send = rpc(1, "message/send", json!({"message": old})).to_string();
    let (of_rpc, of_old, of_http) =
        ("/error/data/0/reason", "/error/data/reason", "/error/details/0/reason");
    for (path, version, body, code, reason) in [
        (base.to_owned(), "1.0", rpc_send, -32053, of_rpc),
        (base.to_owned(), "1.0", cancel, -32053, of_rpc),
        (base.to_owned(), "", old_send, -32053, of_old),
        (format!("{base}/message:send"), "1.0", send.to_string(), 503, of_http),
        (format!("{base}/message:stream"), "1.0", send.to_string(), 503, of_http),
        (format!("{base}/tasks/{task}:cancel"), "1.0", String::new(), 503, of_http),
    ] {
        let more = [("a2a-version", version)];
        let reply = hub.request(("POST", &path), key, &more, &body).await.expect(503);
        assert_eq!(reply.at("/error/code"), code, "{}", reply.text);
        assert_eq!(reply.at(reason), "UNAVAILABLE", "{}", reply.text);
        assert_eq!(reply.header("retry-after"), Some("1"));
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    let shown = hub.get_task(base, key, &task).await;
    assert_eq!(state(&shown), "TASK_STATE_SUBMITTED");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_agent_or_path_is_404_in_the_form_of_http() {
    let scene = Scene::set().await;
    let body = rpc(1, "ListTasks", json!({})).to_string();
    for (verb, path) in [
        ("POST", "/a2a/agents/nobody"),
        ("POST", "/a2a/agents/nobody/"),
        ("GET", "/a2a/agents/nobody/tasks"),
        ("GET", "/a2a/nothing/here/at/all"),
        ("POST", "/a2a/tasks/x:dance"),
    ] {
        let reply = scene.hub.request((verb, path), &scene.key, &[], &body).await.expect(404);
        assert_eq!(reply.at("/error/code"), 404, "{path}");
        assert_eq!(reply.str("/error/status"), "NOT_FOUND", "{path}");
    }
    let reply = scene.hub.request(("PUT", "/a2a"), &scene.key, &[], &body).await.expect(405);
    assert!(reply.header("allow").is_some_and(|methods| methods.contains("POST")));
    scene.hub.stop().await;
}
