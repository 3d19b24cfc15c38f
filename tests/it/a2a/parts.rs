//! Parts of a result before its end, as artifact updates (R68, R112).

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::kit::{TaskEvents, text_message};
use crate::agora::kit::{Hub, Key};
use crate::kit::TestHub;

/// Opens a task as a stream, and returns its id.
async fn open(hub: &TestHub, base: &str, key: &str) -> (TaskEvents, String) {
    let key = format!("Bearer {key}");
    let headers = [("authorization", key.as_str()), ("a2a-version", "1.0")];
    let body = json!({"message": text_message("m-1", "write")}).to_string();
    let path = format!("{base}/message:stream");
    let mut stream = hub.a2a_stream("POST", &path, &headers, &body).await;
    let first = stream.event().await.data;
    let task = first["task"]["id"].as_str().expect("an id").to_owned();
    (stream, task)
}

/// The artifact updates of a stream, up to its end.
async fn updates(stream: &mut TaskEvents) -> Vec<Value> {
    let events = stream.rest().await;
    let updates = events.iter().map(|event| event.data["artifactUpdate"].clone());
    updates.filter(|update| !update.is_null()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_polling_worker_are_chunks_that_a_task_shows_joined() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("ann").await;
    let worker = hub.agent("acme", "write", "0", None).await;
    let base = hub.a2a_path("registry", &worker.id);
    let (mut stream, task) = open(&hub, &base, &client.key).await;
    let path = format!("/v1/jobs/{task}/parts");
    for part in [
        json!({"artifact": {"artifactId": "a1", "parts": [{"text": "chunk-1 "}]}}),
        json!({"artifact": {"artifactId": "a1", "parts": [{"text": "chunk-2"}]}, "append": true}),
        json!({"artifact": {"page": 2.0}}),
    ] {
        hub.post(&path, Some(&worker.key), &part).await.expect(200);
    }
    let done = json!({"epoch": 1, "ok": true, "output": {"text": "end"}});
    hub.post(&format!("/v1/jobs/{task}/result"), Some(&worker.key), &done).await.expect(200);
    let updates = updates(&mut stream).await;
    let seen: Vec<(&Value, &Value)> =
        updates.iter().map(|one| (&one["artifact"]["artifactId"], &one["append"])).collect();
    let (none, yes) = (Value::Null, json!(true));
    let (a1, part, result) = (json!("a1"), json!("part-2"), json!("result"));
    assert_eq!(seen, [(&a1, &none), (&a1, &yes), (&part, &none), (&result, &none)]);

    let shown = hub.rpc(&base, &client.key, "GetTask", json!({"id": task})).await.expect(200);
    let artifacts = shown.at("/result/artifacts");
    assert_eq!(artifacts[0]["parts"], json!([{"text": "chunk-1 "}, {"text": "chunk-2"}]));
    assert_eq!(artifacts[1]["parts"][0]["data"].to_string(), r#"{"page":2.0}"#);
    assert_eq!(artifacts[2]["artifactId"], "result");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_results_of_agora_are_numbered_artifacts() {
    let hub = Hub::serve(&[]).await;
    let client = hub.a2a_client("ann").await;
    let bea = Key::of(2);
    hub.provider(&bea, "agora:write:v1", Some(json!(0))).await;
    let base = hub.a2a_path("agora", bea.did());
    let (mut stream, task) = open(&hub, &base, &client.key).await;
    for n in 1..=2 {
        let data = json!({"n": n});
        let payload = json!({"request_id": task, "status": "partial", "data": data});
        hub.told(&bea.sign(MessageType::Result, &payload)).await;
    }
    hub.told(&bea.result(&task)).await;
    let updates = updates(&mut stream).await;
    let ids: Vec<&Value> = updates.iter().map(|one| &one["artifact"]["artifactId"]).collect();
    assert_eq!(ids, ["part-1", "part-2", "result"]);
    assert_eq!(updates[1]["artifact"]["parts"][0]["data"], json!({"n": 2}));
    hub.halt().await;
}
