//! Versions and bindings (R14–R17, R82).

use serde_json::{Value, json};

use super::kit::{TaskWorker, id, rpc, state, text_message};
use crate::kit::{Reply, TestHub};

const OLD_MESSAGE: &str =
    r#"{"kind":"message","messageId":"o-1","role":"user","parts":[{"kind":"text","text":"hi"}]}"#;

/// A call with this version in its header; none for an empty one.
async fn call(hub: &TestHub, base: &str, key: &str, version: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {key}");
    let mut headers = vec![("authorization", bearer.as_str())];
    headers.extend(Some(("a2a-version", version)).filter(|_| !version.is_empty()));
    hub.send("POST", base, &headers, body.to_string().as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_is_stated_in_a_header_or_in_the_query() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    let (new, old) = (rpc(1, "ListTasks", json!({})), rpc(1, "tasks/get", json!({"id": "x"})));
    let code = async |path: &str, version: &str, body: &Value| {
        let reply = call(&hub, path, &client.key, version, body).await.expect(200).json();
        reply.pointer("/error/code").cloned().unwrap_or_default()
    };
    for version in ["", "1.0", "1.0.0", "1.0.17", " 1.0 "] {
        assert_eq!(code("/a2a", version, &new).await, Value::Null, "{version}");
    }
    for version in ["", "0.3", "0.3.0", "0.3.26"] {
        assert_eq!(code("/a2a", version, &old).await, -32001, "{version}");
    }
    for version in ["2.0", "1.1", "1", "0.2.9", "0.3.x", "latest", "1.0.0.0"] {
        assert_eq!(code("/a2a", version, &new).await, -32009, "{version}");
        let query = format!("/a2a?A2A-Version={}", version.replace(' ', "%20"));
        assert_eq!(code(&query, "", &new).await, -32009, "{version}");
    }
    assert_eq!(code("/a2a?A2A-Version=1.0", "", &new).await, Value::Null);
    // An empty header states nothing.
    let bearer = format!("Bearer {}", client.key);
    let headers = [("authorization", bearer.as_str()), ("a2a-version", "")];
    let reply = hub.send("POST", "/a2a", &headers, new.to_string().as_bytes()).await;
    assert!(reply.expect(200).at("/result/tasks").is_array());
    let reply = hub.send("GET", "/a2a/tasks", &headers, b"").await;
    assert!(reply.expect(200).at("/tasks").is_array());
    // The header decides where both are given.
    assert_eq!(code("/a2a?A2A-Version=9.9", "1.0", &new).await, Value::Null);
    for (path, version, status) in [
        ("/a2a/tasks", "", 200),
        ("/a2a/tasks", "1.0", 200),
        ("/a2a/tasks?A2A-Version=1.0", "", 200),
        ("/a2a/tasks", "0.3", 400),
        ("/a2a/tasks", "9.9", 400),
        ("/a2a/tasks?A2A-Version=0.3", "", 400),
    ] {
        let more = [("a2a-version", version)];
        let reply = hub.request(("GET", path), &client.key, &more, "").await.expect(status);
        if status == 400 {
            assert_eq!(reply.str("/error/details/0/reason"), "VERSION_NOT_SUPPORTED");
            assert_eq!(reply.str("/error/status"), "FAILED_PRECONDITION");
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_version_the_name_of_the_method_decides() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let client = hub.a2a_client("client").await;
    let new = rpc(1, "SendMessage", json!({"message": text_message("m-1", "hi")}));
    let message: Value = serde_json::from_str(OLD_MESSAGE).expect("JSON");
    let old = rpc(2, "message/send", json!({ "message": message }));
    for (body, task) in [(new, "/result/task"), (old, "/result")] {
        let (reply, _) = tokio::join!(
            call(&hub, &worker.base, &client.key, "", &body),
            worker.work(json!({"text": "done"}))
        );
        let task = reply.expect(200).at(task);
        assert!(["TASK_STATE_COMPLETED", "completed"].contains(&state(&task)), "{task}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_contradicts_the_name_is_refused_in_the_form_of_the_name() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    let new = rpc(1, "ListTasks", json!({}));
    let reply = call(&hub, "/a2a", &client.key, "0.3", &new).await.expect(200);
    assert_eq!(reply.at("/error/code"), -32009);
    assert_eq!(reply.str("/error/data/0/reason"), "VERSION_NOT_SUPPORTED");
    // 0.3 has no such code.
    let old = rpc("x", "tasks/get", json!({"id": "x"}));
    let reply = call(&hub, "/a2a", &client.key, "1.0", &old).await.expect(200);
    assert_eq!((reply.at("/error/code"), reply.at("/id")), (json!(-32603), json!("x")));
    assert_eq!(reply.at("/error/data"), json!({"reason": "VERSION_NOT_SUPPORTED"}));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_bindings_and_versions_of_a_url_act_on_the_same_tasks() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let client = hub.a2a_client("client").await;
    let base = worker.base.as_str();
    // A task that HTTP+JSON opens is read by JSON-RPC, and the other way round.
    let body = json!({"message": text_message("m-1", "hi")}).to_string();
    let path = format!("{base}/message:send");
    let (sent, _) = tokio::join!(
        hub.request(("POST", &path), &client.key, &[], &body),
        worker.work(json!({"n": 1}))
    );
    let sent = sent.expect(200).at("/task");
    let by_rpc = hub.result(base, &client.key, "GetTask", json!({"id": sent["id"]})).await;
    assert_eq!(by_rpc, sent);
    assert_eq!(hub.get_task(base, &client.key, &id(&sent)).await, sent);
    let listed =
        hub.result(base, &client.key, "ListTasks", json!({"includeArtifacts": true})).await;
    let by_path = hub
        .request(("GET", &format!("{base}/tasks?includeArtifacts=true")), &client.key, &[], "")
        .await;
    assert_eq!(by_path.expect(200).json(), listed);
    assert_eq!(listed["tasks"], json!([sent]));
    // 0.3 reads the same task in its own words.
    let old = rpc(1, "tasks/get", json!({"id": sent["id"]}));
    let old = call(&hub, base, &client.key, "", &old).await.at("/result");
    assert_eq!((&old["kind"], &old["id"]), (&json!("task"), &sent["id"]));
    assert_eq!(old["contextId"], sent["contextId"]);
    assert_eq!(old["artifacts"][0]["parts"], json!([{"kind": "data", "data": {"n": 1}}]));
    assert_eq!(old["history"][0]["messageId"], "m-1");
    assert_eq!(old["metadata"], sent["metadata"]);
    // The final / of the path changes nothing.
    let slash = format!("{base}/");
    let by_slash = hub.result(&slash, &client.key, "GetTask", json!({"id": sent["id"]})).await;
    assert_eq!(by_slash, sent);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_began_in_one_version_goes_on_in_the_other() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let client = hub.a2a_client("client").await;
    let message: Value = serde_json::from_str(OLD_MESSAGE).expect("JSON");
    let old = rpc(1, "message/send", json!({ "message": message }));
    let asked = async {
        let job = worker.take().await;
        worker.ask(&job, "which city?").await;
        job
    };
    let (asking, job) = tokio::join!(call(&hub, &worker.base, &client.key, "", &old), asked);
    let asking = asking.at("/result");
    assert_eq!(state(&asking), "input-required");
    assert_eq!(
        asking["status"]["message"]["parts"][0],
        json!({"kind": "text", "text": "which city?"})
    );
    let mut answer = text_message("m-2", "Lugano");
    answer["taskId"] = asking["id"].clone();
    let (done, ()) = tokio::join!(
        hub.result(&worker.base, &client.key, "SendMessage", json!({"message": answer})),
        async {
            let job_id = job["id"].as_str().expect("an id");
            crate::kit::eventually(async || {
                let path = format!("/v1/jobs/{job_id}");
                let job = hub.get(&path, Some(&worker.agent.key)).await.expect(200);
                job.at("/state") == "running"
            })
            .await;
            worker.succeed(&job, json!({"text": "done"})).await;
        }
    );
    assert_eq!(state(&done["task"]), "TASK_STATE_COMPLETED", "{done}");
    let ids: Vec<&str> = done["task"]["history"]
        .as_array()
        .expect("a history")
        .iter()
        .map(|one| one["parts"][0]["text"].as_str().expect("a text"))
        .collect();
    assert_eq!(ids, ["hi", "which city?", "Lugano"]);
    // What was opened in 1.0 is canceled in 0.3.
    let open = hub.begin(&worker.base, &client.key, text_message("m-3", "hi")).await;
    let cancel = rpc(3, "tasks/cancel", json!({"id": open["id"]}));
    let canceled = call(&hub, &worker.base, &client.key, "", &cancel).await.at("/result");
    assert_eq!(state(&canceled), "canceled");
    hub.stop().await;
}
