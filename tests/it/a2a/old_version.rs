//! Version 0.3 in every state and part (R80, R81).

use serde_json::{Value, json};

use super::kit::{TaskWorker, id, rpc, text_message};
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

    async fn call(&self, base: &str, method: &str, params: Value) -> Reply {
        let bearer = format!("Bearer {}", self.key);
        let body = rpc("r-1", method, params).to_string();
        let headers = [("authorization", bearer.as_str())];
        self.hub.send("POST", base, &headers, body.as_bytes()).await
    }

    async fn result(&self, base: &str, method: &str, params: Value) -> Value {
        let reply = self.call(base, method, params).await.expect(200);
        assert_eq!(reply.at("/id"), "r-1");
        reply.at("/result")
    }
}

fn message(parts: Value) -> Value {
    json!({"kind": "message", "messageId": "o-1", "role": "user", "parts": parts})
}

fn hello() -> Value {
    message(json!([{"kind": "text", "text": "hi"}]))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_part_is_read_and_written_as_0_3_names_it() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let parts = json!([
        {"kind": "text", "text": "see", "metadata": {"k": 1}},
        {"kind": "data", "data": {"n": 1.5}},
        {"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": true}},
        {"kind": "file", "file": {"bytes": "AAEC", "name": "a.bin", "mimeType": "text/plain"}},
        {"kind": "file", "file": {"uri": "https://a.example/b", "name": "b"}},
    ]);
    let params = json!({"message": message(parts.clone()), "configuration": {"blocking": false}});
    let task = scene.result(&worker.base, "message/send", params).await;
    assert_eq!(task["history"][0]["parts"], parts);
    assert_eq!(task["history"][0]["kind"], "message");
    assert_eq!(task["history"][0]["role"], "user");
    // The worker and readers of 1.0 get them by their names there.
    let job = worker.take().await;
    let own = json!([
        {"text": "see", "metadata": {"k": 1}},
        {"data": {"n": 1.5}, "mediaType": "application/json"},
        {"data": [1, 2], "mediaType": "application/json"},
        {"raw": "AAEC", "filename": "a.bin", "mediaType": "text/plain"},
        {"url": "https://a.example/b", "filename": "b"},
    ]);
    assert_eq!(job["input"], json!({"text": "see", "parts": own}));
    let shown = scene.hub.get_task(&worker.base, &scene.key, &id(&task)).await;
    assert_eq!(shown["history"][0]["parts"], own);
    // And back.
    worker.succeed(&job, json!({"artifacts": [{"artifactId": "a", "parts": own}]})).await;
    let done = scene.result(&worker.base, "tasks/get", json!({"id": task["id"]})).await;
    assert_eq!(done["artifacts"], json!([{"artifactId": "a", "parts": parts}]));
    for bad in [
        json!([{"kind": "text"}]),
        json!([{"kind": "data"}]),
        json!([{"kind": "file"}]),
        json!([{"kind": "file", "file": {"bytes": "AA==", "uri": "https://a.example"}}]),
        json!([{"kind": "video", "text": "x"}]),
        json!([{"text": "x"}]),
        json!([]),
    ] {
        let params = json!({"message": message(bad.clone())});
        let reply = scene.call(&worker.base, "message/send", params).await.expect(200);
        assert_eq!(reply.at("/error/code"), -32602, "{bad}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_has_its_name_of_0_3() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    for steps in [
        "submitted",
        "working",
        "input-required",
        "auth-required",
        "completed",
        "failed",
        "canceled",
        "rejected",
    ] {
        let params = json!({"message": hello(), "configuration": {"blocking": false}});
        let task = scene.result(&worker.base, "message/send", params).await;
        let job = worker.take_task(&id(&task)).await;
        match steps {
            "submitted" => {}
            "working" => worker.progress(&job, "half").await,
            "input-required" => worker.ask(&job, "which?").await,
            "auth-required" => {
                let question = json!({"text": "sign in", "auth": true});
                worker.say(&job, "ask", question).await.expect(200);
            }
            "completed" => worker.succeed(&job, json!({"text": "done"})).await,
            "failed" => worker.fail(&job, "it broke").await,
            "rejected" => worker.decline(&job, "no").await,
            _ => drop(scene.result(&worker.base, "tasks/cancel", json!({"id": task["id"]})).await),
        }
        let shown = scene.result(&worker.base, "tasks/get", json!({"id": task["id"]})).await;
        assert_eq!((&shown["kind"], &shown["status"]["state"]), (&json!("task"), &json!(steps)));
        if let Some(told) = shown["status"].get("message") {
            assert_eq!((&told["kind"], &told["role"]), (&json!("message"), &json!("agent")));
            assert_eq!(told["parts"][0]["kind"], "text");
        }
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_blocks_unless_it_is_told_not_to_and_may_answer_a_message() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    for configuration in [json!({}), json!({"blocking": true}), json!({"blocking": null})] {
        let params = json!({"message": hello(), "configuration": configuration});
        let (task, _) = tokio::join!(
            scene.result(&worker.base, "message/send", params),
            worker.work(json!({"text": "done"}))
        );
        assert_eq!(task["status"]["state"], "completed");
    }
    let (answer, _) = tokio::join!(
        scene.result(&worker.base, "message/send", json!({"message": hello()})),
        worker.work(json!({"message": {"parts": [{"text": "hello"}]}}))
    );
    assert_eq!((&answer["kind"], &answer["role"]), (&json!("message"), &json!("agent")));
    assert_eq!(answer["parts"], json!([{"kind": "text", "text": "hello"}]));
    // A refusal is a message, too.
    let dear = TaskWorker::join(&scene.hub, "dear", "0.10").await;
    let refused = scene.result(&dear.base, "message/send", json!({"message": hello()})).await;
    assert_eq!(refused["kind"], "message");
    assert_eq!(refused["metadata"]["urn:rialto:a2a:hire:v1"]["refused"], "BUDGET_TOO_LOW");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_that_0_3_lacks_are_internal_errors_with_their_reason() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let done = scene.hub.begin(&worker.base, &scene.key, text_message("m", "hi")).await;
    worker.work(json!({"text": "done"})).await;
    let unknown = "00000000-0000-4000-8000-000000000000";
    let image =
        message(json!([{"kind": "file", "file": {"bytes": "AA==", "mimeType": "image/png"}}]));
    for (method, params, code, reason) in [
        ("tasks/get", json!({"id": unknown}), -32001, "TASK_NOT_FOUND"),
        ("tasks/cancel", json!({"id": done["id"]}), -32002, "TASK_NOT_CANCELABLE"),
        ("tasks/resubscribe", json!({"id": done["id"]}), -32004, "UNSUPPORTED_OPERATION"),
        ("message/send", json!({"message": image}), -32005, "CONTENT_TYPE_NOT_SUPPORTED"),
        ("tasks/get", json!({}), -32602, "INVALID_PARAMS"),
        ("tasks/dance", json!({}), -32601, "METHOD_NOT_FOUND"),
    ] {
        let reply = scene.call(&worker.base, method, params).await.expect(200);
        let shown = (reply.at("/error/code"), reply.at("/error/data/reason"));
        assert_eq!(shown, (json!(code), json!(reason)), "{method}");
        assert!(!reply.str("/error/message").is_empty());
    }
    let bearer = format!("Bearer {}", scene.key);
    let headers = [("authorization", bearer.as_str())];
    let body = r#"{"jsonrpc":"1.0","id":7,"method":"tasks/get"}"#;
    let reply = scene.hub.send("POST", &worker.base, &headers, body.as_bytes()).await.expect(200);
    let shown = (reply.at("/error/code"), reply.at("/error/data"));
    assert_eq!(shown, (json!(-32600), json!({"reason": "INVALID_REQUEST"})));
    let headers = [("authorization", bearer.as_str()), ("a2a-version", "9.9")];
    let body = rpc("r", "tasks/get", json!({"id": unknown})).to_string();
    let reply = scene.hub.send("POST", &worker.base, &headers, body.as_bytes()).await.expect(200);
    let shown = (reply.at("/error/code"), reply.at("/error/data"));
    assert_eq!(shown, (json!(-32603), json!({"reason": "VERSION_NOT_SUPPORTED"})));
    scene.hub.stop().await;
}
