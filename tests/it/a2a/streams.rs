//! Streams of a task's events (R60–R64, R69).

use serde_json::{Value, json};

use super::kit::{Client, TaskWorker, first_text, id, rpc, state, text_message};
use crate::kit::{TestHub, in_time};
use crate::relay::kit::Event;

/// A hub and a client.
pub struct Scene {
    pub hub: TestHub,
    pub client: Client,
}

impl Scene {
    pub async fn set() -> Self {
        let hub = TestHub::serve(&[]).await;
        let client = hub.a2a_client("client").await;
        Self { hub, client }
    }
}

/// What an event is: its kind, and the state or the artifact with the text of its parts.
pub fn told(event: &Event) -> String {
    let data = event.data.get("result").unwrap_or(&event.data);
    if let Some(task) = data.get("task") {
        return format!("task {}", state(task));
    }
    if let Some(update) = data.get("statusUpdate") {
        return state(update).trim_start_matches("TASK_STATE_").to_owned();
    }
    let update = &data["artifactUpdate"];
    let artifact = &update["artifact"];
    let texts: Vec<String> = artifact["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .map(|part| part["text"].as_str().unwrap_or("data").to_owned())
        .collect();
    let append = if update["append"] == true { "+" } else { "" };
    let last = if update["lastChunk"] == true { "." } else { "" };
    format!("{}{append}={}{last}", artifact["artifactId"].as_str().expect("an id"), texts.join("|"))
}

pub fn all_told(events: &[Event]) -> Vec<String> {
    events.iter().map(told).collect()
}

pub fn positions(events: &[Event]) -> Vec<u64> {
    events.iter().map(Event::position).collect()
}

/// A worker that says everything there is to say before its end, in ten events.
async fn tell_all(worker: &TaskWorker<'_>) {
    let job = worker.take().await;
    worker.progress(&job, "reading").await;
    let piece = |text: &str| json!({"artifactId": "a1", "parts": [{"text": text}]});
    worker.part(&job, piece("Q3 was "), false).await;
    worker.part(&job, piece("good"), true).await;
    worker.part(&job, json!({"text": "note"}), false).await;
    let two = json!([
        {"artifactId": "b", "parts": [{"text": "one"}]},
        {"artifactId": "c", "parts": [{"text": "two"}]},
    ]);
    worker.succeed(&job, json!({"artifacts": two})).await;
}

const ALL: [&str; 9] = [
    "task TASK_STATE_SUBMITTED",
    "WORKING",
    "WORKING",
    "a1=Q3 was ",
    "a1+=good",
    "part-2=note",
    "b=one.",
    "c=two.",
    "COMPLETED",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_begins_with_the_task_and_has_every_event_in_order_to_the_end() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut events = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    assert_eq!(events.header("cache-control"), Some("no-store"));
    let job = events.header("rialto-job").expect("a job").to_owned();
    tell_all(&worker).await;
    let all = events.rest().await;
    assert_eq!(all_told(&all), ALL);
    assert_eq!(positions(&all), (1..=9).collect::<Vec<_>>());
    assert_eq!(all[0].data["task"]["id"], job.as_str());
    for event in &all[1..] {
        let update = event.data.as_object().expect("an object").values().next().expect("one");
        assert_eq!(
            (&update["taskId"], &update["contextId"]),
            (&json!(job), &all[0].data["task"]["contextId"])
        );
    }
    // GetTask shows the pieces joined.
    let task = scene.hub.get_task(&worker.base, key, &job).await;
    let artifacts: Vec<(String, usize)> = task["artifacts"]
        .as_array()
        .expect("artifacts")
        .iter()
        .map(|one| {
            (
                one["artifactId"].as_str().expect("an id").to_owned(),
                one["parts"].as_array().expect("parts").len(),
            )
        })
        .collect();
    let expected = [("a1", 2), ("part-2", 1), ("b", 1), ("c", 1)];
    assert_eq!(artifacts, expected.map(|(id, parts)| (id.to_owned(), parts)));
    // JSON-RPC has the same events in its own frame.
    let body = rpc("s", "SendStreamingMessage", json!({"message": text_message("m-2", "hi")}));
    let path = ("POST", worker.base.as_str());
    let mut events = scene.hub.stream(path, key, &[], &body.to_string()).await;
    tell_all(&worker).await;
    let all = events.rest().await;
    assert_eq!(all_told(&all), ALL);
    assert!(all.iter().all(|event| event.data["jsonrpc"] == "2.0" && event.data["id"] == "s"));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_blocks_of_an_id_and_one_line_of_data() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let mut events =
        scene.hub.follow(&worker.base, &scene.client.key, text_message("m-1", "hi")).await;
    worker.work(json!({"text": "a\r\nb\u{2028}"})).await;
    events.rest().await;
    let blocks: Vec<&str> = events.raw.split_terminator("\n\n").collect();
    assert_eq!(blocks.len(), 3, "{}", events.raw);
    for (at, block) in blocks.iter().enumerate() {
        let mut lines: Vec<&str> = block.split('\n').collect();
        if at == 0 {
            assert_eq!(lines.remove(0), "retry: 2000");
        }
        assert_eq!(lines[0], format!("id: {}", at + 1));
        assert!(lines[1].starts_with("data: {") && lines.len() == 2, "{block}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_stream_is_pinged_with_a_line_that_ends_no_block() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let mut events =
        scene.hub.follow(&worker.base, &scene.client.key, text_message("m-1", "hi")).await;
    events.event().await;
    let before = events.raw.len();
    // The pause between pings is one of real time.
    in_time(events.more()).await;
    assert_eq!(&events.raw[before..], ": ping\n");
    worker.work(json!({"text": "done"})).await;
    assert_eq!(all_told(&events.rest().await), ["result=done.", "COMPLETED"]);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_stream_ends_when_the_worker_asks_and_not_when_it_waits_for_a_sign_in() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut sent = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    let task = job["id"].as_str().expect("an id").to_owned();
    let mut subscribed = scene.hub.subscribe(&worker.base, key, &task, None).await;
    worker.say(&job, "ask", json!({"text": "sign in", "auth": true})).await.expect(200);
    worker.progress(&job, "going on").await;
    worker.ask(&job, "which city?").await;
    let all = sent.rest().await;
    assert_eq!(
        all_told(&all)[1..],
        ["AUTH_REQUIRED", "WORKING", "WORKING", "INPUT_REQUIRED"].map(str::to_owned)
    );
    let question = &all.last().expect("an event").data["statusUpdate"]["status"]["message"];
    assert_eq!(first_text(question), "which city?");
    // The subscription stays open, and the answer opens a stream of its own.
    let mut message = text_message("m-2", "Lugano");
    message["taskId"] = task.as_str().into();
    let mut answered = scene.hub.follow(&worker.base, key, message).await;
    let first = answered.event().await;
    assert_eq!(told(&first), "task TASK_STATE_WORKING");
    let history = first.data["task"]["history"].as_array().expect("a history");
    assert_eq!(history.last().map(first_text), Some("Lugano"));
    worker.succeed(&job, json!({"text": "done"})).await;
    let rest = ["result=done.", "COMPLETED"];
    assert_eq!(all_told(&answered.rest().await), rest);
    let all = all_told(&subscribed.rest().await);
    assert_eq!(all[all.len() - 3..], ["WORKING", "result=done.", "COMPLETED"].map(str::to_owned));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_streams_of_a_task_get_the_same_events_and_closing_one_touches_nothing() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut sent = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    let task = id(&sent.event().await.data["task"]);
    let mut others = Vec::new();
    for _ in 0..3 {
        let mut other = scene.hub.subscribe(&worker.base, key, &task, None).await;
        assert_eq!(told(&other.event().await), "task TASK_STATE_SUBMITTED");
        others.push(other);
    }
    let job = worker.take().await;
    worker.progress(&job, "one").await;
    assert_eq!(told(&sent.event().await), "WORKING");
    drop(sent);
    worker.progress(&job, "two").await;
    drop(others.pop());
    worker.succeed(&job, json!({"text": "done"})).await;
    let mut all = Vec::new();
    for mut other in others {
        all.push(other.rest().await);
    }
    assert_eq!(all[0], all[1]);
    let expected = ["WORKING", "WORKING", "WORKING", "result=done.", "COMPLETED"];
    assert_eq!(all_told(&all[0]), expected);
    let done = scene.hub.get_task(&worker.base, key, &task).await;
    assert_eq!(state(&done), "TASK_STATE_COMPLETED");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_begins_with_the_task_as_it_is() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let task = scene.hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    worker.part(&job, json!({"artifactId": "a", "parts": [{"text": "one "}]}), false).await;
    let mut events = scene.hub.subscribe(&worker.base, key, &id(&task), None).await;
    let first = events.event().await;
    assert_eq!((told(&first).as_str(), first.position()), ("task TASK_STATE_WORKING", 3));
    assert_eq!(first.data["task"]["artifacts"][0]["parts"], json!([{"text": "one "}]));
    // A piece continues what the snapshot has.
    worker.part(&job, json!({"artifactId": "a", "parts": [{"text": "two"}]}), true).await;
    worker.succeed(&job, json!({"text": "done"})).await;
    let rest = events.rest().await;
    assert_eq!(all_told(&rest), ["a+=two", "result=done.", "COMPLETED"]);
    assert_eq!(positions(&rest), [4, 5, 6]);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_before_the_first_event_is_a_plain_error() {
    let scene = Scene::set().await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let (done, _) = tokio::join!(
        hub.result(&worker.base, key, "SendMessage", json!({"message": text_message("m", "hi")})),
        worker.work(json!({"text": "done"}))
    );
    let done = id(&done["task"]);
    let unknown = "00000000-0000-4000-8000-000000000000";
    for (task, last, code, reason) in [
        (done.as_str(), "", -32004, "UNSUPPORTED_OPERATION"),
        (unknown, "", -32001, "TASK_NOT_FOUND"),
        (unknown, "1", -32001, "TASK_NOT_FOUND"),
        (done.as_str(), "5", -32602, "INVALID_PARAMS"),
        (done.as_str(), "-1", -32602, "INVALID_PARAMS"),
        (done.as_str(), "x", -32602, "INVALID_PARAMS"),
    ] {
        let more = [("last-event-id", last)];
        let body = rpc(1, "SubscribeToTask", json!({"id": task})).to_string();
        let reply = hub.request(("POST", &worker.base), key, &more, &body).await.expect(200);
        assert_eq!(reply.header("content-type"), Some("application/json"));
        let shown = (reply.at("/error/code"), reply.str("/error/data/0/reason"));
        assert_eq!(shown, (json!(code), reason.to_owned()), "{task} {last}");
        let path = format!("{}/tasks/{task}:subscribe", worker.base);
        let reply = hub.request(("POST", &path), key, &more, "").await;
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert!(reply.status >= 400 && reply.str("/error/details/0/reason") == reason);
    }
    let path = format!("{}/message:stream", worker.base);
    let reply = hub.request(("POST", &path), key, &[], "{}").await.expect(400);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_key() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut events = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    events.event().await;
    scene.hub.call("DELETE", "/v1/keys", Some(key), None).await.expect(200);
    assert_eq!(in_time(events.next()).await, None);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_0_3_the_last_event_before_the_end_of_a_stream_is_final_and_no_other() {
    let scene = Scene::set().await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    let message = |id: &str, task: Value| {
        json!({"kind": "message", "messageId": id, "role": "user", "taskId": task,
            "parts": [{"kind": "text", "text": "hi"}]})
    };
    let stream = async |method: &str, params: Value| {
        let body = rpc(1, method, params).to_string();
        hub.a2a_stream("POST", &worker.base, &headers, &body).await
    };
    let finals = |events: &[Event]| -> Vec<bool> {
        let updates = events.iter().map(|event| &event.data["result"]);
        let updates = updates.filter(|result| result["kind"] == "status-update");
        updates.map(|result| result["final"].as_bool().expect("a flag")).collect()
    };
    let mut asked = stream("message/stream", json!({"message": message("o-1", json!(null))})).await;
    let job = worker.take().await;
    let task = job["id"].clone();
    let mut subscribed = stream("tasks/resubscribe", json!({"id": task})).await;
    worker.progress(&job, "half").await;
    worker.ask(&job, "which?").await;
    let all = asked.rest().await;
    let kinds: Vec<&Value> = all.iter().map(|event| &event.data["result"]["kind"]).collect();
    assert_eq!(kinds, ["task", "status-update", "status-update", "status-update"]);
    assert_eq!(finals(&all), [false, false, true]);
    let mut answered = stream("message/stream", json!({"message": message("o-2", task)})).await;
    worker.succeed(&job, json!({"text": "done"})).await;
    let all = answered.rest().await;
    assert_eq!(finals(&all), [true]);
    let artifact = &all[1].data["result"];
    assert_eq!(artifact["kind"], "artifact-update");
    assert_eq!(artifact["artifact"]["parts"], json!([{"kind": "text", "text": "done"}]));
    // A subscription goes on after the question.
    let all = subscribed.rest().await;
    let mut expected = vec![false; finals(&all).len()];
    *expected.last_mut().expect("updates") = true;
    assert_eq!(finals(&all), expected);
    assert_eq!(all.last().expect("an event").data["result"]["status"]["state"], "completed");
    scene.hub.stop().await;
}
