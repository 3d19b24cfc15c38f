//! What messages and artifacts contain, and in which form (R28, R46, R47, R51).

use serde_json::json;

use super::kit::{TaskWorker, first_text, id, state, text_message};
use super::send::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_stated_media_type_must_be_one_that_the_agent_takes() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let part = |media_type: &str| {
        let part = json!({"raw": "AAEC", "filename": "a.bin", "mediaType": media_type});
        json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "see"}, part]})
    };
    let refused = (-32005, "CONTENT_TYPE_NOT_SUPPORTED".to_owned());
    for media_type in ["image/png", "application/octet-stream", "text/csv", "*/*"] {
        for base in [worker.base.as_str(), "/a2a"] {
            let params = json!({"message": part(media_type)});
            let answer = hub.refusal(base, key, "SendMessage", params).await;
            assert_eq!(answer, refused, "{media_type} {base}");
        }
    }
    for media_type in ["application/json", "text/plain; charset=utf-8", "Text/Plain"] {
        hub.begin(&worker.base, key, part(media_type)).await;
    }
    // Without a stated type there is nothing to refuse, also in a later message.
    let mut message = part("");
    let task = hub.begin(&worker.base, key, message.clone()).await;
    message["taskId"] = task["id"].clone();
    hub.begin(&worker.base, key, message.clone()).await;
    message["parts"][1]["mediaType"] = "image/png".into();
    assert_eq!(scene.refusal(&worker, json!({ "message": message })).await, refused);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_reach_a_worker_of_another_protocol_as_parts() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [
        {"text": "see"}, {"raw": "-_8", "filename": "a.bin"}, {"url": "https://a.example/b.png"},
    ]});
    hub.begin(&worker.base, key, message).await;
    let job = worker.take().await;
    let input = json!({"text": "see", "parts": [
        {"text": "see"}, {"raw": "+/8=", "filename": "a.bin"}, {"url": "https://a.example/b.png"},
    ]});
    assert_eq!(job["input"], input);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gets_parts_in_the_modes_that_it_accepts() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let data = json!({"data": {"n": 1}, "mediaType": "application/json"});
    for (modes, output, part) in [
        (json!([]), json!({"n": 1}), data.clone()),
        (json!(["text/plain"]), json!({"n": 1}), json!({"text": "{\"n\":1}"})),
        (json!(["text"]), json!({"text": "hi"}), json!({"text": "hi"})),
        (
            json!(["application/json"]),
            json!({"text": "hi"}),
            json!({"data": {"text": "hi"}, "mediaType": "application/json"}),
        ),
        (json!(["*/*"]), json!({"n": 1}), data.clone()),
        (json!(["image/png"]), json!({"n": 1}), data.clone()),
    ] {
        let configuration = json!({"acceptedOutputModes": modes});
        let params = json!({"message": text_message("m-1", "hi"), "configuration": configuration});
        let (done, _) =
            tokio::join!(hub.result(&worker.base, key, "SendMessage", params), worker.work(output));
        assert_eq!(done["task"]["artifacts"][0]["parts"], json!([part]), "{modes}");
        // The task stays in this form.
        let shown = hub.get_task(&worker.base, key, &id(&done["task"])).await;
        assert_eq!(shown["artifacts"], done["task"]["artifacts"]);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_is_text_or_artifacts_or_a_message_or_data() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let two = json!([
        {"artifactId": "a", "name": "First", "parts": [{"text": "one"}]},
        {"artifactId": "b", "parts": [{"raw": "AAEC", "mediaType": "x/y"}], "metadata": {"k": 1}},
    ]);
    for (output, artifacts) in [
        (json!({"text": "hi"}), json!([{"artifactId": "result", "parts": [{"text": "hi"}]}])),
        (json!({"artifacts": two}), two.clone()),
        (
            json!({"artifacts": [{"artifactId": "a"}]}),
            json!([{"artifactId": "result", "parts":
            [{"data": {"artifacts": [{"artifactId": "a"}]}, "mediaType": "application/json"}]}]),
        ),
    ] {
        let (done, _) =
            tokio::join!(scene.send(&worker, text_message("m-1", "hi")), worker.work(output));
        assert_eq!(done["task"]["artifacts"], artifacts);
        let shown = hub.get_task(&worker.base, key, &id(&done["task"])).await;
        assert_eq!(shown["artifacts"], artifacts);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_message_answers_a_send_that_waits_and_is_a_status_message_elsewhere() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let output = json!({"message": {"parts": [{"text": "hello"}]}});
    let sent = scene.send(&worker, text_message("m-1", "hi"));
    let (answer, job) = tokio::join!(sent, worker.work(output.clone()));
    let message = &answer["message"];
    assert_eq!((first_text(message), &message["role"]), ("hello", &json!("ROLE_AGENT")));
    assert!(message["contextId"].is_string() && message.get("taskId").is_none(), "{message}");
    let task = hub.get_task(&worker.base, key, job["id"].as_str().expect("an id")).await;
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    assert_eq!(first_text(&task["status"]["message"]), "hello");
    assert_eq!(task.get("artifacts"), None);
    // A stream has no bare message in the middle of a task.
    let mut events = hub.follow(&worker.base, key, text_message("m-2", "hi")).await;
    worker.work(output.clone()).await;
    let all = events.rest().await;
    let last = &all.last().expect("an event").data["statusUpdate"]["status"];
    assert_eq!(
        (&last["state"], first_text(&last["message"])),
        (&json!("TASK_STATE_COMPLETED"), "hello")
    );
    // What the worker reported before is not lost.
    let work = async {
        let job = worker.take().await;
        worker.part(&job, json!({"text": "part"}), false).await;
        worker.succeed(&job, output).await;
    };
    let (answer, ()) = tokio::join!(scene.send(&worker, text_message("m-3", "hi")), work);
    assert_eq!(answer["task"]["artifacts"][0]["artifactId"], "part-1", "{answer}");
    assert_eq!(first_text(&answer["task"]["status"]["message"]), "hello");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_in_data_keep_their_digits_both_ways() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let digits = r#"{"n":42.0,"big":12345678901234567890,"e":1e2}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":{digits}}}]}}}}}}"#
    );
    let work = async {
        let work = hub.get("/v1/work?wait=10", Some(&worker.agent.key)).await.expect(200);
        assert!(work.text.contains(digits), "{}", work.text);
        let id = work.str("/jobs/0/id");
        let result = format!(r#"{{"ok":true,"output":{digits}}}"#);
        let path = format!("/v1/jobs/{id}/result");
        hub.post_text(&path, Some(&worker.agent.key), &result).await.expect(200);
    };
    let (reply, ()) = tokio::join!(hub.request(("POST", &worker.base), key, &[], &body), work);
    let reply = reply.expect(200).text;
    assert_eq!(reply.matches(digits).count(), 2, "in the history and in the artifact: {reply}");
    assert!(reply.contains("\"mediaType\":\"application/json\""));
    scene.hub.stop().await;
}
