//! Limits of messages, tasks and workers (R29), and lenient reading (R27).

use rialto_core::command::{Command, JobRef, ReportProgress};
use rialto_core::job::progress::ProgressUpdate;
use serde_json::{Value, json};

use super::kit::{Client, TaskWorker, id, state, text_message};
use crate::kit::{TestHub, together};

struct Scene {
    hub: TestHub,
    client: Client,
}

impl Scene {
    async fn set() -> Self {
        let hub = TestHub::serve(&[]).await;
        let client = hub.a2a_client("client").await;
        Self { hub, client }
    }

    /// Whether a message is taken; else the field that is wrong.
    async fn takes(&self, worker: &TaskWorker<'_>, message: Value) -> Result<Value, String> {
        let configuration = json!({"returnImmediately": true});
        let params = json!({"message": message, "configuration": configuration});
        let reply = self.hub.rpc(&worker.base, &self.client.key, "SendMessage", params).await;
        match reply.json().pointer("/result/task") {
            Some(task) => Ok(task.clone()),
            None => {
                assert_eq!(reply.at("/error/code"), -32602, "{}", reply.text);
                Err(reply.str("/error/data/1/fieldViolations/0/field"))
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_and_parts_are_taken_up_to_their_limits() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let with = |name: &str, value: Value| {
        let mut message = text_message("m-1", "hi");
        message[name] = value;
        message
    };
    let parts = |count: usize| Value::from(vec![json!({"text": "x"}); count]);
    for (name, good, bad) in [
        ("messageId", json!("☃".repeat(256)), json!("☃".repeat(257))),
        ("contextId", json!("☃".repeat(128)), json!("☃".repeat(129))),
        ("parts", parts(100), parts(101)),
        ("messageId", json!("a b"), json!("a\u{0}b")),
        ("contextId", json!("a-b"), json!("a\u{200b}b")),
        ("contextId", json!("c"), json!("c\u{202e}")),
    ] {
        let taken = scene.takes(&worker, with(name, good.clone())).await;
        assert_eq!(taken.expect("it is taken")["history"][0][name], good);
        assert_eq!(scene.takes(&worker, with(name, bad)).await, Err(format!("message.{name}")));
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_eight_push_configurations() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let task = id(&scene.hub.begin(&worker.base, key, text_message("m", "hi")).await);
    let config = |id: String| json!({"taskId": task, "id": id, "url": "https://client.example/"});
    let create = "CreateTaskPushNotificationConfig";
    for number in 0..8 {
        scene.hub.result(&worker.base, key, create, config(number.to_string())).await;
    }
    let ninth = scene.hub.rpc(&worker.base, key, create, config("8".to_owned())).await;
    assert_eq!(ninth.at("/error/code"), -32602);
    let violation = ninth.at("/error/data/1/fieldViolations/0");
    assert_eq!(violation["field"], "taskId");
    let text = violation["description"].as_str().expect("a text");
    assert!(text.contains("8 push configurations"), "{text}");
    // Nor does a message bring one.
    let mut message = text_message("m-2", "more");
    message["taskId"] = task.as_str().into();
    let configuration = json!({"returnImmediately": true,
        "taskPushNotificationConfig": {"url": "https://client.example/"}});
    let params = json!({"message": message, "configuration": configuration});
    let ninth = scene.hub.rpc(&worker.base, key, "SendMessage", params).await;
    assert_eq!(ninth.str("/error/data/1/fieldViolations/0/field"), "message.taskId");
    // One in place of another is no ninth.
    scene.hub.result(&worker.base, key, create, config("7".to_owned())).await;
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_makes_256_artifacts_of_at_most_16_mib() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let task = id(&scene.hub.begin(&worker.base, key, text_message("m", "hi")).await);
    let job = worker.take_task(&task).await;
    let part = |number: usize| json!({"artifactId": number.to_string(), "parts": [{"text": "x"}]});
    for number in 0..256 {
        worker.part(&job, part(number), false).await;
    }
    // The next one is refused, a piece of a known one is not.
    let more = json!({"artifact": part(256)});
    let refused = worker.say(&job, "parts", more).await;
    assert!(refused.status >= 400 && refused.status < 500, "{}", refused.text);
    worker.part(&job, part(255), true).await;
    worker.succeed(&job, json!({"message": {"parts": [{"text": "done"}]}})).await;
    let done = scene.hub.get_task(&worker.base, key, &task).await;
    assert_eq!(
        (state(&done), done["artifacts"].as_array().map(Vec::len)),
        ("TASK_STATE_COMPLETED", Some(256))
    );
    // All events of a task have at most 16 MiB.
    let task = id(&scene.hub.begin(&worker.base, key, text_message("m", "hi")).await);
    let job = worker.take_task(&task).await;
    let mut taken = 0;
    for _ in 0..24 {
        let artifact = json!({"artifactId": "a", "parts": [{"text": "x".repeat(1_000_000)}]});
        let body = json!({"artifact": artifact, "append": true});
        let reply = worker.say(&job, "parts", body).await;
        taken += usize::from(reply.status == 200);
    }
    assert_eq!(taken, 16);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_ten_thousand_times_about_one_task() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let task = id(&scene.hub.begin(&worker.base, key, text_message("m", "hi")).await);
    let job = worker.take_task(&task).await;
    let engine = &scene.hub.engine;
    let by = engine.with_world(|world| {
        let name = worker.base.rsplit_once('/').expect("a name").1;
        world.agent_by_alias(rialto_protocols::a2a::ID, name).expect("the worker")
    });
    let update = ProgressUpdate { text: Some("x".to_owned()), ..ProgressUpdate::default() };
    let wanted = JobRef::Uuid(task.parse().expect("an id"));
    let order = ReportProgress { job: wanted, by, epoch: None, update };
    // Over HTTP this takes too long: only the last ones are.
    let report = || engine.run(Command::ReportProgress(Box::new(order.clone())));
    for _ in 0..90 {
        for taken in together((0..111).map(|_| report())).await {
            taken.expect("it is taken");
        }
    }
    for _ in 0..10 {
        worker.progress(&job, "x").await;
    }
    let refused = worker.say(&job, "progress", json!({"text": "x"})).await;
    assert!((400..500).contains(&refused.status), "{}", refused.text);
    worker.succeed(&job, json!({"text": "done"})).await;
    let mut stream = scene.hub.subscribe(&worker.base, key, &task, Some("9999")).await;
    // Opened, working, ten thousand reports, the result and the end.
    assert_eq!(stream.rest().await.last().expect("an event").position(), 10_004);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_with_too_many_artifacts_is_data() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    for (count, artifacts) in [(256, 256), (257, 1)] {
        let all: Vec<Value> = (0..count)
            .map(|number| json!({"artifactId": number.to_string(), "parts": [{"text": "x"}]}))
            .collect();
        let params = json!({"message": text_message("m", "hi")});
        let (done, _) = tokio::join!(
            scene.hub.result(&worker.base, key, "SendMessage", params),
            worker.work(json!({ "artifacts": all }))
        );
        assert_eq!(done["task"]["artifacts"].as_array().map(Vec::len), Some(artifacts), "{count}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_sends_a_hundred_messages_about_one_task_of_limited_size() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.takes(&worker, text_message("m", "hi")).await.expect("a task");
    let mut more = text_message("m", "more");
    more["taskId"] = task["id"].clone();
    for _ in 0..100 {
        scene.takes(&worker, more.clone()).await.expect("it is taken");
    }
    let wrong = Err("message.parts".to_owned());
    assert_eq!(scene.takes(&worker, more).await, wrong);
    // Together they have a size, too.
    let task = scene.takes(&worker, text_message("m", &"x".repeat(900_000))).await.expect("a task");
    let mut long = text_message("m", &"x".repeat(400_000));
    long["taskId"] = task["id"].clone();
    scene.takes(&worker, long.clone()).await.expect("it is taken");
    let params = json!({ "message": long });
    let refused = scene.hub.rpc(&worker.base, &scene.client.key, "SendMessage", params).await;
    let violation = refused.at("/error/data/1/fieldViolations/0");
    assert_eq!(violation["field"], "message.parts");
    let text = violation["description"].as_str().expect("a text");
    assert!(text.contains("512 KiB") && text.contains("begin a new task"), "{text}");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_read_as_proto_json_allows() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let snake = json!({
        "message": {"message_id": "m-1", "role": 1, "context_id": "c", "task_id": null, "unknown": {},
            "parts": [{"raw": "-_8", "media_type": "text/plain", "future": 1}]},
        "configuration": {"return_immediately": true, "history_length": "1",
            "accepted_output_modes": ["text/plain"], "task_push_notification_config": null},
        "tenant": null,
    });
    let task = scene.hub.result(&worker.base, key, "SendMessage", snake).await["task"].clone();
    assert_eq!(task["contextId"], "c");
    let part = json!({"raw": "+/8=", "mediaType": "text/plain"});
    assert_eq!(task["history"][0]["parts"], json!([part]), "standard base64 is written");
    for params in [
        json!({"context_id": "c", "page_size": "5", "status": "UNRECOGNIZED"}),
        json!({"contextId": "c", "pageSize": 5.0, "status": 1, "historyLength": null}),
        json!({"contextId": "c", "pageSize": 5e0, "status": "TASK_STATE_SUBMITTED", "else": []}),
        json!({"contextId": "c", "status": "1", "statusTimestampAfter": null}),
        json!({"contextId": "c", "status": 0}),
    ] {
        let page = scene.hub.result(&worker.base, key, "ListTasks", params.clone()).await;
        assert_eq!(page["totalSize"], 1, "{params}");
    }
    for bad in [
        json!({"pageSize": "5.5"}),
        json!({"pageSize": true}),
        json!({"includeArtifacts": "true"}),
        json!({"status": 99}),
        json!({"status": "99"}),
        json!({"status": -1}),
        json!({"status": 1.5}),
        json!({"status": ["TASK_STATE_WORKING"]}),
    ] {
        let refused = scene.hub.refusal(&worker.base, key, "ListTasks", bad.clone()).await;
        assert_eq!(refused.0, -32602, "{bad}");
    }
    scene.hub.stop().await;
}
