//! The worker for the official test kit, run by `rialto agent run`: what its vector says, over both
//! bindings.

use std::path::Path;

use serde_json::{Value, json};

use super::kit::{TaskEvents, rpc};
use crate::kit::{TestHub, eventually};
use crate::runtime::kit::{Place, Runtime};

const VECTOR: &str = include_str!("fixtures/tck-worker.json");
const WORKER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../client/examples/tck_worker.py");

/// How the kit talks to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    JsonRpc,
    Http,
}

/// A hub for guests and the worker.
struct Scene {
    hub: TestHub,
    base: String,
    _worker: Runtime,
    _place: Place,
}

impl Scene {
    async fn build(more: &str) -> Self {
        let (place, hub) = (Place::new(), TestHub::open(&[("a2a.card", "1.0")]).await);
        assert!(Path::new(WORKER).exists());
        let exec = format!("python3 {WORKER} {more}");
        let flags = ["--name", "tck", "--skill", "tck", "--price", "0", "--accepts", "*/*"];
        let flags = [&flags[..], &["--lines", "--concurrency", "4", "--exec", &exec]].concat();
        let worker = place.at_work(&hub, "said", &flags).await;
        let id = worker.said("at_work").expect("an event")["agent_id"].clone();
        let base = hub.a2a_path("registry", id.as_str().expect("an id"));
        Self { hub, base, _worker: worker, _place: place }
    }

    /// A call; its result, or its error.
    async fn call(&self, binding: Binding, method: &str, params: Value) -> Result<Value, Value> {
        let reply = match (binding, method) {
            (Binding::JsonRpc, _) => self.hub.rpc(&self.base, "", method, params).await,
            (Binding::Http, "SendMessage") => {
                self.hub.post(&format!("{}/message:send", self.base), None, &params).await
            }
            (Binding::Http, "GetTask") => {
                let id = params["id"].as_str().expect("an id");
                self.hub.get(&format!("{}/tasks/{id}", self.base), None).await
            }
            other => panic!("{other:?}"),
        };
        let body = reply.json();
        match (binding, &body["error"]) {
            (_, error @ Value::Object(_)) => Err(error.clone()),
            (Binding::JsonRpc, _) => Ok(body["result"].clone()),
            (Binding::Http, _) => Ok(body),
        }
    }

    async fn send(&self, binding: Binding, id: &str, task: Option<&str>) -> Value {
        let sent = self.call(binding, "SendMessage", json!({"message": message(id, task)})).await;
        sent.unwrap_or_else(|error| panic!("{id}: {error}"))
    }

    /// The events of a message that is sent as a stream, up to the end of the stream.
    async fn stream(&self, binding: Binding, id: &str, task: Option<&str>) -> Vec<Value> {
        let headers = [("a2a-version", "1.0")];
        let params = json!({"message": message(id, task)});
        let (path, body) = match binding {
            Binding::JsonRpc => (self.base.clone(), rpc(1, "SendStreamingMessage", params)),
            Binding::Http => (format!("{}/message:stream", self.base), params),
        };
        let mut stream: TaskEvents =
            self.hub.a2a_stream("POST", &path, &headers, &body.to_string()).await;
        let events = stream.rest().await.into_iter();
        let content = |data: Value| match binding {
            Binding::JsonRpc => data["result"].clone(),
            Binding::Http => data,
        };
        events.map(|event| content(event.data)).collect()
    }
}

/// The kit sends byte-identical messages, ids included.
fn message(id: &str, task: Option<&str>) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": "Hello"}]});
    if let Some(task) = task {
        message["taskId"] = task.into();
    }
    message
}

/// What a behaviour of the vector makes of a task.
#[derive(Debug, Default)]
struct Expected {
    state: &'static str,
    /// The text of the last status.
    text: Option<String>,
    /// Each artifact update before the end: its parts, whether it appends and is the last.
    updates: Vec<(Value, bool, bool)>,
    /// A message instead of a task.
    bare: Option<String>,
}

impl Expected {
    fn of(steps: &Value) -> Self {
        let mut expected = Self { state: "TASK_STATE_COMPLETED", ..Self::default() };
        for step in steps.as_array().expect("steps") {
            match step.as_str() {
                Some("complete" | "working") => {}
                Some("input_required") => expected.state = "TASK_STATE_INPUT_REQUIRED",
                Some("reject") => expected.state = "TASK_STATE_REJECTED",
                Some(other) => panic!("an unknown step {other}"),
                None if step["complete"].is_object() => {
                    expected.text = step["complete"]["message"].as_str().map(str::to_owned);
                }
                None if step["message"].is_string() => {
                    expected.bare = step["message"].as_str().map(str::to_owned);
                }
                None if step["artifact"].is_object() => {
                    let is = |name: &str| step[name] == true;
                    // An artifact in one piece is complete; of several, the last one says so.
                    let is_in_chunks = steps.to_string().contains("lastChunk");
                    let parts = step["artifact"]["parts"].clone();
                    expected.updates.push((parts, is("append"), !is_in_chunks || is("lastChunk")));
                }
                None => assert!(step["sleepSeconds"].is_number(), "an unknown step {step}"),
            }
        }
        expected
    }

    /// The parts of the artifact of the task.
    fn parts(&self) -> Vec<Value> {
        let parts = self.updates.iter().flat_map(|(parts, ..)| parts.as_array().expect("parts"));
        parts.cloned().collect()
    }

    #[track_caller]
    fn check_task(&self, task: &Value, what: &str) {
        assert_eq!(task["status"]["state"], self.state, "{what}: {task}");
        if let Some(text) = &self.text {
            assert_eq!(task["status"]["message"]["parts"], json!([{ "text": text }]), "{what}");
        }
        let artifacts = task["artifacts"].as_array().cloned().unwrap_or_default();
        match &self.parts()[..] {
            [] => assert!(artifacts.is_empty(), "{what}: {task}"),
            parts => {
                assert_eq!(artifacts.len(), 1, "{what}: {task}");
                let same = |(shown, sent): (&Value, &Value)| is_same_part(shown, sent);
                let shown = artifacts[0]["parts"].as_array().expect("parts");
                assert!(
                    shown.len() == parts.len() && shown.iter().zip(parts).all(same),
                    "{what}: {task}"
                );
            }
        }
    }

    #[track_caller]
    fn check_events(&self, events: &[Value], what: &str) {
        let first = &events[0]["task"];
        assert_eq!(first["status"]["state"], "TASK_STATE_SUBMITTED", "{what}: {events:?}");
        let rest = &events[1..];
        // It is at work before it hands anything over.
        assert_eq!(
            rest[0]["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING",
            "{what}: {events:?}"
        );
        let (last, between) = rest[1..].split_last().expect("an end");
        assert_eq!(last["statusUpdate"]["status"]["state"], self.state, "{what}: {events:?}");
        let updates: Vec<&Value> = between.iter().map(|event| &event["artifactUpdate"]).collect();
        assert_eq!(updates.len(), self.updates.len(), "{what}: {events:?}");
        for (update, (parts, append, last)) in updates.iter().zip(&self.updates) {
            assert_eq!(update["artifact"]["artifactId"], "a1", "{what}");
            let shown = &update["artifact"]["parts"];
            assert!(is_same_part(&shown[0], &parts[0]), "{what}: {update}");
            let flags = (update["append"] == true, update["lastChunk"] == true);
            assert_eq!(flags, (*append, *last), "{what}: {update}");
        }
    }
}

/// The hub adds the media type of data.
fn is_same_part(shown: &Value, sent: &Value) -> bool {
    let sent = sent.as_object().expect("an object");
    sent.iter().all(|(name, value)| shown[name] == *value)
}

fn behaviours() -> Vec<(String, Expected)> {
    let vector: Value = serde_json::from_str(VECTOR).expect("JSON");
    let all = vector["behaviours"].as_array().expect("behaviours").iter();
    let read = |one: &Value| {
        let prefix = one["prefix"].as_str().expect("a prefix");
        let id = if prefix.is_empty() { "anything-else" } else { prefix };
        (format!("{id}-1f0c"), Expected::of(&one["then"]))
    };
    all.map(read).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kits_worker_obeys_every_message_over_both_bindings() {
    let scene = Scene::build("").await;
    let card = scene.hub.get(&scene.base, None).await.expect(200);
    assert_eq!(card.at("/defaultInputModes"), json!(["*/*"]));
    assert_eq!(card.str("/skills/0/id"), "tck");
    let all = behaviours();
    assert_eq!(all.len(), 17);
    for binding in [Binding::JsonRpc, Binding::Http] {
        for (id, expected) in &all {
            let what = format!("{id} {binding:?}");
            let sent = scene.send(binding, id, None).await;
            if let Some(text) = &expected.bare {
                assert_eq!(sent["message"]["parts"], json!([{ "text": text }]), "{what}: {sent}");
                assert!(sent["message"]["taskId"].is_null(), "{what}: {sent}");
                continue;
            }
            expected.check_task(&sent["task"], &what);
            let task = json!({"id": sent["task"]["id"]});
            let shown = scene.call(binding, "GetTask", task).await.expect("it is there");
            expected.check_task(&shown, &what);
            expected.check_events(&scene.stream(binding, id, None).await, &what);
        }
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kits_worker_obeys_a_later_message_like_the_first() {
    let scene = Scene::build("").await;
    for binding in [Binding::JsonRpc, Binding::Http] {
        let asked = scene.send(binding, "tck-input-required-1", None).await;
        let task = asked["task"]["id"].as_str().expect("an id").to_owned();
        assert_eq!(asked["task"]["status"]["message"]["parts"], json!([{"text": "What else?"}]));
        let again = scene.send(binding, "tck-input-required-2", Some(&task)).await;
        assert_eq!(again["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
        let done = scene.send(binding, "tck-artifact-text-3", Some(&task)).await;
        assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
        assert_eq!(done["task"]["artifacts"][0]["parts"][0]["text"], "Generated text content");
        // A message to a worker that takes its time is obeyed at once.
        let params = json!({"message": message("test-resubscribe-4", None),
            "configuration": {"returnImmediately": true}});
        let slow = scene.call(binding, "SendMessage", params).await.expect("a task");
        let task = slow["task"]["id"].as_str().expect("an id").to_owned();
        let state = async || {
            let shown = scene.call(binding, "GetTask", json!({"id": task})).await.expect("a task");
            shown["status"]["state"].as_str().expect("a state").to_owned()
        };
        eventually(async || state().await == "TASK_STATE_WORKING").await;
        let refused = scene.send(binding, "tck-reject-task-5", Some(&task)).await;
        assert_eq!(refused["task"]["status"]["state"], "TASK_STATE_REJECTED", "{refused}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_wait_for_input_keep_the_kits_worker_from_nothing() {
    let scene = Scene::build("").await;
    // More than may run at a time.
    for number in 0..6 {
        let id = format!("tck-input-required-{number}");
        let asked = scene.send(Binding::JsonRpc, &id, None).await;
        assert_eq!(asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    }
    let done = scene.send(Binding::JsonRpc, "tck-complete-task", None).await;
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn for_the_kit_of_0_3_the_worker_asks_back_on_every_message() {
    let scene = Scene::build("--ask-always").await;
    let send = async |id: &str, task: Option<&str>| {
        let mut message = json!({"kind": "message", "messageId": id, "role": "user",
            "parts": [{"kind": "text", "text": "Hello"}]});
        if let Some(task) = task {
            message["taskId"] = task.into();
        }
        let body = rpc("r-1", "message/send", json!({"message": message}));
        let reply = scene.hub.post(&scene.base, None, &body).await.expect(200);
        assert_eq!(reply.str("/result/status/state"), "input-required", "{}", reply.text);
        reply.str("/result/id")
    };
    let task = send("anything", None).await;
    assert_eq!(send("tck-complete-task", Some(&task)).await, task);
    scene.hub.stop().await;
}
