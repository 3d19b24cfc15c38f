//! ListTasks (R54–R57).

use std::collections::BTreeSet;

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Client, TaskWorker, hire_message, id, state, text_message};
use crate::kit::{TestHub, eventually};

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

    async fn list(&self, base: &str, params: Value) -> Value {
        self.hub.result(base, &self.client.key, "ListTasks", params).await
    }

    /// A task that is not taken yet. Each has its own status time.
    async fn open(&self, worker: &TaskWorker<'_>, context: &str) -> String {
        self.hub.pass(Millis(2));
        let mut message = text_message("m", "hi");
        message["contextId"] = context.into();
        id(&self.hub.begin(&worker.base, &self.client.key, message).await)
    }
}

fn ids(page: &Value) -> Vec<String> {
    page["tasks"].as_array().expect("tasks").iter().map(id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_the_callers_tasks_of_that_agent_and_at_the_hub_all_of_them() {
    let scene = Scene::set().await;
    let one = TaskWorker::join(&scene.hub, "one", "0").await;
    let two = TaskWorker::join(&scene.hub, "two", "0").await;
    let first = scene.open(&one, "c").await;
    let second = scene.open(&two, "d").await;
    let stranger = scene.hub.a2a_client("stranger").await;
    scene.hub.begin(&one.base, &stranger.key, text_message("m", "hi")).await;
    // A job of another protocol is no task.
    let orders = json!({"skill": "one", "input": {}, "budget": 0});
    scene.hub.post("/v1/jobs", Some(&scene.client.key), &orders).await;
    assert_eq!(ids(&scene.list(&one.base, json!({})).await), [first.as_str()]);
    assert_eq!(ids(&scene.list(&two.base, json!({})).await), [second.as_str()]);
    let all = scene.list("/a2a", json!({})).await;
    assert_eq!(ids(&all), [second.as_str(), first.as_str()]);
    let expected = [json!(""), json!(50), json!(2)];
    assert_eq!(["nextPageToken", "pageSize", "totalSize"].map(|name| all[name].clone()), expected);
    let none = scene.hub.a2a_client("none").await;
    let empty = scene.hub.result("/a2a", &none.key, "ListTasks", json!({})).await;
    let expected = json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0});
    assert_eq!(empty, expected);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_can_be_narrowed_by_context_status_and_time() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let waiting = scene.open(&worker, "c").await;
    let waiting_job = worker.take().await;
    assert_eq!(waiting_job["id"], waiting.as_str());
    let asking = scene.open(&worker, "d").await;
    let job = take(&worker, &asking).await;
    scene.hub.pass(Millis(2));
    worker.ask(&job, "which?").await;
    let done = scene.open(&worker, "c").await;
    let job = take(&worker, &done).await;
    scene.hub.pass(Millis(2));
    worker.succeed(&job, json!({"text": "done"})).await;
    for (params, expected) in [
        (json!({"contextId": "c"}), vec![&done, &waiting]),
        (json!({"contextId": "d"}), vec![&asking]),
        (json!({"contextId": "e"}), vec![]),
        (json!({"status": "TASK_STATE_SUBMITTED"}), vec![&waiting]),
        (json!({"status": "TASK_STATE_INPUT_REQUIRED"}), vec![&asking]),
        (json!({"status": 3}), vec![&done]),
        (json!({"status": "TASK_STATE_COMPLETED", "contextId": "d"}), vec![]),
        (json!({"status": "TASK_STATE_UNSPECIFIED"}), vec![&done, &asking, &waiting]),
        (json!({"status": "UNRECOGNIZED", "contextId": ""}), vec![&done, &asking, &waiting]),
    ] {
        let page = scene.list(&worker.base, params.clone()).await;
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(ids(&page), expected, "{params}");
        assert_eq!(page["totalSize"], expected.len());
    }
    // What has exactly this time is listed as well.
    let all = scene.list(&worker.base, json!({})).await;
    let times: Vec<&str> = all["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .map(|task| task["status"]["timestamp"].as_str().expect("a time"))
        .collect();
    assert!(times.is_sorted_by(|one, next| one > next), "{times:?}");
    let page = scene.list(&worker.base, json!({"statusTimestampAfter": times[1]})).await;
    assert_eq!(ids(&page), [done.clone(), asking]);
    let later = json!({"statusTimestampAfter": "2099-01-01T00:00:00+01:00"});
    assert_eq!(scene.list(&worker.base, later).await["totalSize"], 0);
    scene.hub.stop().await;
}

/// The work that is this task.
async fn take(worker: &TaskWorker<'_>, task: &str) -> Value {
    worker.take_task(task).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_what_does_not_change_exactly_once() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let mut opened = Vec::new();
    for _ in 0..7 {
        opened.push(scene.open(&worker, "c").await);
    }
    let changing = opened.remove(3);
    let job = take(&worker, &changing).await;
    let (mut seen, mut token) = (Vec::new(), String::new());
    for page_number in 0.. {
        let page = scene.list(&worker.base, json!({"pageSize": 2, "pageToken": token})).await;
        assert_eq!(page["pageSize"], 2);
        seen.extend(ids(&page));
        if page_number == 0 {
            // A task that changes moves to the front, and new ones come before it.
            scene.hub.pass(Millis(2));
            worker.progress(&job, "half").await;
            scene.open(&worker, "c").await;
        }
        token = page["nextPageToken"].as_str().expect("a token").to_owned();
        if token.is_empty() {
            break;
        }
    }
    let unchanged: Vec<&String> = seen.iter().filter(|id| opened.contains(id)).collect();
    opened.reverse();
    assert_eq!(unchanged, opened.iter().collect::<Vec<_>>());
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_with_one_status_time_are_on_one_page_each() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let at = scene.hub.engine.now().plus(Millis::minutes(1));
    let at = rialto_protocols::kit::rfc3339::format_millis(at);
    let mut opened = Vec::new();
    for _ in 0..7 {
        let message = hire_message("m", "hi", json!({"deadline": at}));
        opened.push(id(&scene.hub.begin(&worker.base, &scene.client.key, message).await));
    }
    // They end together, at their deadline.
    scene.hub.pass(Millis::minutes(2));
    let failed = json!({"status": "TASK_STATE_FAILED"});
    eventually(async || scene.list(&worker.base, failed.clone()).await["totalSize"] == 7).await;
    let (mut seen, mut times, mut token) = (Vec::new(), BTreeSet::new(), String::new());
    loop {
        let page = scene.list(&worker.base, json!({"pageSize": 2, "pageToken": token})).await;
        for task in page["tasks"].as_array().expect("tasks") {
            seen.push(id(task));
            times.insert(task["status"]["timestamp"].as_str().expect("a time").to_owned());
        }
        token = page["nextPageToken"].as_str().expect("a token").to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(times.len(), 1, "{times:?}");
    seen.sort_unstable();
    opened.sort_unstable();
    assert_eq!(seen, opened);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_a_size_a_token_and_the_total() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    for _ in 0..3 {
        scene.open(&worker, "c").await;
    }
    for (size, tasks, more) in [(1, 1, true), (2, 2, true), (3, 3, false), (100, 3, false)] {
        let page = scene.list(&worker.base, json!({"pageSize": size})).await;
        assert_eq!((ids(&page).len(), &page["totalSize"]), (tasks, &json!(3)));
        assert_eq!(page["nextPageToken"].as_str().expect("a token").is_empty(), !more);
    }
    for params in [
        json!({"pageSize": 0}),
        json!({"pageSize": 101}),
        json!({"pageSize": -1}),
        json!({"pageSize": "many"}),
        json!({"pageToken": "strange"}),
        json!({"pageToken": "1_2"}),
        json!({"pageToken": "-5_00000000-0000-4000-8000-000000000000"}),
        json!({"status": "DANCING"}),
        json!({"historyLength": -1}),
    ] {
        let refused =
            scene.hub.refusal(&worker.base, &scene.client.key, "ListTasks", params.clone());
        assert_eq!(refused.await.0, -32602, "{params}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_and_history_are_listed_as_far_as_they_are_wanted() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    scene.open(&worker, "c").await;
    worker.work(json!({"text": "done"})).await;
    let plain = scene.list(&worker.base, json!({})).await;
    let task = &plain["tasks"][0];
    assert_eq!(state(task), "TASK_STATE_COMPLETED");
    assert!(task.get("artifacts").is_none() && task["history"].is_array(), "{task}");
    let full = json!({"includeArtifacts": true, "historyLength": 0});
    let full = scene.list(&worker.base, full).await;
    let task = &full["tasks"][0];
    assert!(task["artifacts"].is_array() && task.get("history").is_none(), "{task}");
    assert_eq!(full["tasks"].as_array().map(Vec::len), Some(1));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_ends_early_when_it_is_long_and_the_next_one_goes_on() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let mut opened = Vec::new();
    for _ in 0..5 {
        opened.push(scene.open(&worker, "c").await);
        worker.work(json!({"text": "x".repeat(400_000)})).await;
    }
    let params = |token: &str| json!({"includeArtifacts": true, "pageToken": token});
    let first = scene.list(&worker.base, params("")).await;
    assert_eq!((ids(&first).len(), &first["totalSize"]), (2, &json!(5)));
    let mut all = ids(&first);
    let mut token = first["nextPageToken"].as_str().expect("a token").to_owned();
    while !token.is_empty() {
        let page = scene.list(&worker.base, params(&token)).await;
        all.extend(ids(&page));
        token = page["nextPageToken"].as_str().expect("a token").to_owned();
    }
    opened.reverse();
    assert_eq!(all, opened);
    scene.hub.stop().await;
}
