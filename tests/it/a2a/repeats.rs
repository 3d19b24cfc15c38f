//! Repeats of a send, and extensions (R48–R50).

use rialto_core::alias::Protocol;
use rialto_core::command::{Actor, Command, Registration};
use rialto_engine::keys::{Key, KeyPrefix};
use serde_json::{Value, json};

use super::kit::{Client, HIRE, TaskWorker, hire_message, id, rpc, send_call, state, text_message};
use crate::kit::{Reply, TestHub, together};
use crate::relay::kit::Event;

struct Scene {
    hub: TestHub,
    client: Client,
}

impl Scene {
    async fn set() -> Self {
        let hub = TestHub::serve(&[]).await;
        let client = hub.rich_client("client").await;
        Self { hub, client }
    }

    async fn post(&self, base: &str, once: &str, body: &Value) -> Reply {
        let more: Vec<(&str, &str)> =
            [("idempotency-key", once)].into_iter().filter(|(_, key)| !key.is_empty()).collect();
        self.hub.request(("POST", base), &self.client.key, &more, &body.to_string()).await
    }
}

/// A send of 0.3 that does not wait.
fn old_call(id: &str) -> Value {
    let message = json!({"kind": "message", "messageId": "o", "role": "user",
        "parts": [{"kind": "text", "text": "hi"}]});
    let params = json!({"message": message, "configuration": {"blocking": false}});
    rpc(id, "message/send", params)
}

/// A send that does not wait, with this id of the call.
fn call(number: u64, message: Value) -> Value {
    let configuration = json!({"returnImmediately": true});
    rpc(number, "SendMessage", json!({"message": message, "configuration": configuration}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_with_its_key_opens_nothing_and_is_answered_with_its_own_id() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let first = scene.post(&worker.base, "order-7", &call(1, text_message("m-1", "hi"))).await;
    assert_eq!(first.header("idempotency-replayed"), None);
    let task = id(&first.at("/result/task"));
    let again = scene.post(&worker.base, "order-7", &call(2, text_message("m-1", "hi"))).await;
    let again = again.expect(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!((again.at("/id"), id(&again.at("/result/task"))), (json!(2), task.clone()));
    assert_eq!(again.header("rialto-job"), Some(task.as_str()));
    // The same key in the metadata, and over the other binding.
    let with_key = |number| call(number, hire_message("m-2", "hi", json!({"key": "order-8"})));
    let first = scene.post(&worker.base, "", &with_key(3)).await.at("/result/task");
    let again = scene.post(&worker.base, "", &with_key(4)).await;
    assert_eq!(again.at("/result/task/id"), first["id"]);
    let path = format!("{}/message:send", worker.base);
    let http = scene.post(&path, "", &with_key(5)["params"]).await.expect(200);
    assert_eq!(http.at("/task/id"), first["id"]);
    assert_eq!(http.header("idempotency-replayed"), Some("true"));
    // The result is that of the task as it is by then.
    let job = worker.take().await;
    worker.succeed(&job, json!({"text": "done"})).await;
    let late = scene.post(&worker.base, "order-7", &call(6, text_message("m-1", "hi"))).await;
    assert_eq!(state(&late.at("/result/task")), "TASK_STATE_COMPLETED");
    // Also after a restart.
    let Scene { hub, client } = scene;
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    let scene = Scene { hub, client };
    let late = scene
        .post(&path.replace("/message:send", ""), "order-7", &call(7, text_message("m-1", "hi")))
        .await;
    assert_eq!(id(&late.at("/result/task")), task);
    let listed = scene.hub.result("/a2a", &scene.client.key, "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 2);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_another_message_or_method_is_refused() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    scene.post(&worker.base, "k", &call(1, text_message("m-1", "hi"))).await.expect(200);
    let stream =
        rpc(2, "SendStreamingMessage", call(2, text_message("m-1", "hi"))["params"].clone());
    for body in [call(2, text_message("m-1", "other")), call(3, text_message("m-2", "hi")), stream]
    {
        let reply = scene.post(&worker.base, "k", &body).await.expect(422);
        assert_eq!(reply.at("/error/code"), -32055);
        assert_eq!(reply.str("/error/data/0/reason"), "IDEMPOTENCY_CONFLICT");
        assert_eq!(reply.at("/id"), body["id"]);
    }
    // The same over the other binding and in 0.3.
    let path = format!("{}/message:send", worker.base);
    let reply = scene.post(&path, "k", &json!({"message": text_message("m-1", "other")})).await;
    let reply = reply.expect(422);
    assert_eq!(reply.at("/error/code"), 422);
    assert_eq!(reply.str("/error/details/0/reason"), "IDEMPOTENCY_CONFLICT");
    let old = old_call("r").to_string();
    let more = [("idempotency-key", "k"), ("a2a-version", "")];
    let reply = scene.hub.request(("POST", &worker.base), &scene.client.key, &more, &old).await;
    let reply = reply.expect(422);
    assert_eq!((reply.at("/error/code"), reply.at("/id")), (json!(-32055), json!("r")));
    assert_eq!(reply.at("/error/data"), json!({"reason": "IDEMPOTENCY_CONFLICT"}));
    let listed = scene.hub.result("/a2a", &scene.client.key, "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 1);
    // Keys of other callers and of other agents do not meet.
    let other = TaskWorker::join(&scene.hub, "other", "0").await;
    let reply = scene.post(&other.base, "k", &call(1, text_message("m-9", "hi"))).await.expect(200);
    assert_eq!(reply.header("idempotency-replayed"), None);
    let stranger = scene.hub.a2a_client("stranger").await;
    let more = [("idempotency-key", "k")];
    let body = call(1, text_message("m-8", "hi")).to_string();
    scene.hub.request(("POST", &worker.base), &stranger.key, &more, &body).await.expect(200);
    // A key has up to 256 characters.
    let with_key = |length| call(1, hire_message("m-1", "hi", json!({"key": "☃".repeat(length)})));
    scene.post(&worker.base, "", &with_key(256)).await.expect(200);
    let again = scene.post(&worker.base, "", &with_key(256)).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"), "{}", again.text);
    let in_metadata = format!("message.metadata.{HIRE}.key");
    let long = "x".repeat(257);
    for (key, body, field) in [
        (long.as_str(), call(1, text_message("m-1", "hi")), "Idempotency-Key"),
        ("", with_key(257), in_metadata.as_str()),
    ] {
        let reply = scene.post(&worker.base, key, &body).await;
        assert_eq!(reply.at("/error/data/1/fieldViolations/0/field"), field, "{}", reply.text);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_stream_is_the_stream_of_the_task() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let body = rpc(1, "SendStreamingMessage", json!({"message": text_message("m-1", "hi")}));
    let more = [("idempotency-key", "k")];
    let mut first = scene.hub.stream(("POST", base), key, &more, &body.to_string()).await;
    let opening = first.event().await;
    worker.work(json!({"text": "done"})).await;
    let rest = first.rest().await;
    let mut again = body.clone();
    again["id"] = "again".into();
    let mut second = scene.hub.stream(("POST", base), key, &more, &again.to_string()).await;
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    let all = second.rest().await;
    assert!(all.iter().all(|event| event.data["id"] == "again"));
    let results: Vec<&Value> = all.iter().map(|event| &event.data["result"]).collect();
    let expected: Vec<&Value> =
        [&opening].into_iter().chain(&rest).map(|event| &event.data["result"]).collect();
    assert_eq!(results, expected);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_messages_without_a_key_are_two_tasks() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let first = scene.hub.begin(&worker.base, &scene.client.key, text_message("m-1", "hi")).await;
    let second = scene.hub.begin(&worker.base, &scene.client.key, text_message("m-1", "hi")).await;
    assert_ne!(first["id"], second["id"]);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_at_the_same_time_open_one_task_and_all_get_it() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "analyze_text", "0.10").await;
    let message = hire_message("m-1", "hi", json!({"budget": "0.10"}));
    // They wait for the end, and the first still runs when the others come.
    let bodies: Vec<Value> = (0..8).map(|_| send_call(message.clone())).collect();
    let sends = together(bodies.iter().map(|body| scene.post(&worker.base, "k", body)));
    let (replies, job) = tokio::join!(sends, worker.work(json!({"text": "done"})));
    for reply in replies {
        let task = reply.expect(200).at("/result/task");
        assert_eq!((&task["id"], state(&task)), (&job["id"], "TASK_STATE_COMPLETED"));
    }
    assert_eq!(scene.hub.balance("a2a:client").await.0, "99.90");
    let listed = scene.hub.result("/a2a", &scene.client.key, "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 1);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_answer_to_a_question_counts_once() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.hub.begin(&worker.base, &scene.client.key, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    worker.ask(&job, "which city?").await;
    let mut message = text_message("m-2", "Lugano");
    message["taskId"] = task["id"].clone();
    for number in 0..3 {
        scene.post(&worker.base, "answer", &call(number, message.clone())).await.expect(200);
    }
    let shown = scene.hub.get_task(&worker.base, &scene.client.key, &id(&task)).await;
    assert_eq!(shown["history"].as_array().map(Vec::len), Some(3), "{shown}");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_answer_is_the_stream_of_the_task_from_the_answer_on() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let task = scene.hub.begin(base, key, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    let artifact = json!({"artifactId": "a", "parts": [{"text": "x"}]});
    worker.part(&job, artifact.clone(), false).await;
    worker.ask(&job, "which city?").await;
    let mut message = text_message("m-2", "Lugano");
    message["taskId"] = task["id"].clone();
    let path = format!("{base}/message:stream");
    let body = json!({ "message": message }).to_string();
    let answer = || scene.hub.stream(("POST", &path), key, &[("idempotency-key", "k")], &body);
    let mut first = answer().await;
    let mut all = vec![first.event().await];
    assert_eq!(state(&all[0].data["task"]), "TASK_STATE_WORKING");
    assert_eq!(all[0].data["task"]["history"].as_array().map(Vec::len), Some(3));
    let mut running = answer().await;
    assert_eq!(running.header("idempotency-replayed"), Some("true"));
    worker.part(&job, artifact, true).await;
    worker.ask(&job, "which day?").await;
    all.extend(first.rest().await);
    let shown = |events: Vec<Event>| -> Vec<(u64, Value)> {
        events.into_iter().map(|event| (event.position(), event.data)).collect()
    };
    let all = shown(all);
    assert_eq!(all.len(), 3, "the task, the next piece and the next question");
    assert_eq!(shown(running.rest().await), all);
    // Nor does it change with what comes later.
    message["messageId"] = "m-3".into();
    scene.hub.begin(base, key, message).await;
    worker.succeed(&job, json!({"text": "done"})).await;
    assert_eq!(shown(answer().await.rest().await), all);
    scene.hub.stop().await;
}

/// An agent of A2A whose own card requires an extension.
async fn strict_agent(hub: &TestHub) {
    let key = Key::from_random(KeyPrefix::AGENT, [7; 20]);
    let skill = rialto_core::agent::Skill {
        name: "echo".to_owned(),
        price: rialto_core::money::Credits::ZERO,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        description: String::new(),
        category: None,
        native_name: None,
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    let a2a = Protocol::new("a2a");
    let aliases = rialto_protocols::adapter::make_aliases(
        &hub.engine,
        rialto_protocols::adapter::NewAgent { home: a2a, native: "strict", name: "strict" },
    );
    let registration = Registration {
        actor: Actor::Anonymous,
        home: a2a,
        native_id: "strict".to_owned(),
        aliases,
        owner: "a2a:strict".to_owned(),
        name: "strict".to_owned(),
        endpoint: None,
        liveness: rialto_core::agent::Liveness::ByPolling,
        skills: vec![skill],
        terms: Default::default(),
        status: None,
        card: r#"{"required_extensions":["urn:example:signed"]}"#.to_owned(),
        key: Some(key.hash()),
        rotate_key: false,
    };
    hub.engine.run(Command::Register(Box::new(registration))).await.expect("an agent");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_that_the_agent_requires_must_be_named() {
    let scene = Scene::set().await;
    strict_agent(&scene.hub).await;
    let (base, key) = ("/a2a/agents/strict", scene.client.key.as_str());
    let body = call(1, text_message("m-1", "hi")).to_string();
    for more in [vec![], vec![("a2a-extensions", "urn:example:other")]] {
        let reply = scene.hub.request(("POST", base), key, &more, &body).await.expect(200);
        assert_eq!(reply.at("/error/code"), -32008);
        assert_eq!(reply.str("/error/data/0/reason"), "EXTENSION_SUPPORT_REQUIRED");
        assert!(reply.str("/error/message").contains("urn:example:signed"));
    }
    let path = format!("{base}/message:send");
    let params = json!({"message": text_message("m-1", "hi")}).to_string();
    let reply = scene.hub.request(("POST", &path), key, &[], &params).await.expect(400);
    assert_eq!(reply.str("/error/status"), "FAILED_PRECONDITION");
    // 0.3 has no code for it.
    let more = [("a2a-version", "")];
    let old = old_call("r").to_string();
    let reply = scene.hub.request(("POST", base), key, &more, &old).await.expect(200);
    assert_eq!((reply.at("/error/code"), reply.at("/id")), (json!(-32603), json!("r")));
    assert_eq!(reply.at("/error/data"), json!({"reason": "EXTENSION_SUPPORT_REQUIRED"}));
    for header in ["a2a-extensions", "x-a2a-extensions"] {
        let more = [(header, "urn:example:other, urn:example:signed")];
        let reply = scene.hub.request(("POST", base), key, &more, &body).await.expect(200);
        assert_eq!(state(&reply.at("/result/task")), "TASK_STATE_SUBMITTED");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_names_the_extensions_that_were_asked_for_and_used() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let plain = call(1, text_message("m-1", "hi")).to_string();
    let hired = call(1, hire_message("m-1", "hi", json!({"budget": "0"}))).to_string();
    let (schemas, resume) = ("urn:rialto:a2a:schemas:v1", "urn:rialto:a2a:resume:v1");
    let both = format!("{resume} , urn:example:unknown,{schemas}");
    let answered = format!("{schemas}, {resume}");
    for (asked, body, expected) in [
        ("", &plain, None),
        ("", &hired, Some(HIRE.to_owned())),
        ("urn:example:unknown", &plain, None),
        (both.as_str(), &plain, Some(answered.clone())),
        (both.as_str(), &hired, Some(format!("{HIRE}, {answered}"))),
    ] {
        let more = [("a2a-extensions", asked)];
        let reply = scene.hub.request(("POST", base), key, &more, body).await.expect(200);
        assert_eq!(reply.header("a2a-extensions"), expected.as_deref(), "{asked}");
        assert_eq!(reply.header("x-a2a-extensions"), None);
    }
    // Answers to other operations, and those of 0.3.
    let more = [("a2a-extensions", resume)];
    let list = rpc(1, "ListTasks", json!({})).to_string();
    let reply = scene.hub.request(("POST", base), key, &more, &list).await.expect(200);
    assert_eq!(reply.header("a2a-extensions"), Some(resume));
    let old = old_call("o").to_string();
    let more = [("x-a2a-extensions", resume), ("a2a-version", "")];
    let reply = scene.hub.request(("POST", base), key, &more, &old).await.expect(200);
    assert_eq!(reply.header("a2a-extensions"), Some(resume));
    assert_eq!(reply.header("x-a2a-extensions"), Some(resume));
    scene.hub.stop().await;
}
