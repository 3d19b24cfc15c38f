//! Questions of workers to A2A clients, sign-ins, and messages to workers (R35, R60, R61, R108, R109,
//! R111).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Client, hire_message, text_message};
use crate::kit::{Agent, TestHub, eventually};
use crate::relay::kit::turn;

/// A client with credits, a registry worker, and the path at which it is called.
struct Scene {
    hub: TestHub,
    client: Client,
    worker: Agent,
    base: String,
}

impl Scene {
    async fn build(flags: &[(&str, &str)]) -> Self {
        let hub = TestHub::serve(flags).await;
        let client = hub.a2a_client("ann").await;
        hub.grant("a2a:ann", "10").await;
        let worker = hub.agent("acme", "plan", "0.50", None).await;
        let base = hub.a2a_path("registry", &worker.id);
        Self { hub, client, worker, base }
    }

    async fn call(&self, method: &str, params: Value) -> Value {
        let reply = self.hub.rpc(&self.base, &self.client.key, method, params).await.expect(200);
        let result = reply.at("/result");
        assert!(!result.is_null(), "{}", reply.text);
        result
    }

    /// Opens a task and returns at once.
    async fn open(&self) -> String {
        let message = hire_message("m-1", "plan a trip", json!({"budget": "2"}));
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        let result = self.call("SendMessage", params).await;
        result["task"]["id"].as_str().expect("an id").to_owned()
    }

    /// A message of the client to its task.
    async fn say(&self, task: &str, id: &str, text: &str) -> Value {
        let mut message = text_message(id, text);
        message["taskId"] = task.into();
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.call("SendMessage", params).await["task"].clone()
    }

    async fn task(&self, id: &str) -> Value {
        self.call("GetTask", json!({"id": id})).await
    }

    /// A call of the worker about a task.
    async fn work(&self, task: &str, verb: &str, body: Value) -> Value {
        let path = format!("/v1/jobs/{task}/{verb}");
        self.hub.post(&path, Some(&self.worker.key), &body).await.expect(200).json()
    }

    async fn finish(&self, task: &str) {
        self.work(task, "result", json!({"epoch": 1, "ok": true, "output": {"text": "by train"}}))
            .await;
    }

    /// What is new to the worker.
    async fn poll(&self, known: &str) -> Value {
        let path = format!("/v1/work?wait=30&known={known}");
        self.hub.get(&path, Some(&self.worker.key)).await.expect(200).json()
    }
}

/// The texts of the messages in a task's history, with their roles.
fn said(task: &Value) -> Vec<(String, String)> {
    let history = task["history"].as_array().expect("a history").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    history.map(|one| (text(&one["role"]), text(&one["parts"][0]["text"]))).collect()
}

fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().expect("a state")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_returns_when_the_worker_asks_and_the_next_message_is_the_answer() {
    let scene = Scene::build(&[]).await;
    let message = hire_message("m-1", "plan a trip", json!({"budget": "2"}));
    let send = scene.call("SendMessage", json!({"message": message}));
    let work = async {
        let work = scene.poll("").await;
        assert_eq!(work["jobs"][0]["meta"]["messageId"], "m-1");
        assert_eq!(work["jobs"][0]["followed"], true);
        let job = work["jobs"][0]["id"].as_str().expect("an id").to_owned();
        scene.work(&job, "ask", json!({"epoch": 1, "text": "Which city?"})).await;
        job
    };
    let (sent, job) = tokio::join!(send, work);
    let task = &sent["task"];
    assert_eq!((task["id"].as_str(), state(task)), (Some(&*job), "TASK_STATE_INPUT_REQUIRED"));
    let asked = &task["status"]["message"];
    assert_eq!(
        (&asked["role"], &asked["parts"]),
        (&json!("ROLE_AGENT"), &json!([{"text": "Which city?"}]))
    );
    assert_eq!((&asked["taskId"], &asked["contextId"]), (&task["id"], &task["contextId"]));

    let mut message = text_message("m-2", "Lugano");
    message["taskId"] = job.as_str().into();
    let send = scene.call("SendMessage", json!({"message": message}));
    let work = async {
        let work = scene.poll(&format!("{job}.1.0.0")).await;
        let answer = &work["answers"][0];
        assert_eq!((&answer["kind"], &answer["job_id"]), (&json!("answer"), &json!(job)));
        assert_eq!((&answer["text"], &answer["question"]), (&json!("Lugano"), &json!(1)));
        assert_eq!(answer["meta"]["messageId"], "m-2");
        assert_eq!(work["messages"], Value::Null, "an answer is no other message");
        scene.finish(&job).await;
    };
    let (sent, ()) = tokio::join!(send, work);
    let task = &sent["task"];
    assert_eq!(state(task), "TASK_STATE_COMPLETED");
    let pair = |role: &str, text: &str| (role.to_owned(), text.to_owned());
    let expected = [
        pair("ROLE_USER", "plan a trip"),
        pair("ROLE_AGENT", "Which city?"),
        pair("ROLE_USER", "Lugano"),
    ];
    assert_eq!(said(task), expected);
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "by train"}]));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sent_stream_ends_with_the_question_and_a_subscription_goes_on_to_the_end() {
    let scene = Scene::build(&[]).await;
    let key = format!("Bearer {}", scene.client.key);
    let headers = [("authorization", key.as_str()), ("a2a-version", "1.0")];
    let message = hire_message("m-1", "plan a trip", json!({"budget": "2"}));
    let body = json!({"message": message}).to_string();
    let path = format!("{}/message:stream", scene.base);
    let mut stream = scene.hub.a2a_stream("POST", &path, &headers, &body).await;
    let first = stream.event().await.data;
    let job = first["task"]["id"].as_str().expect("an id").to_owned();
    let path = format!("{}/tasks/{job}:subscribe", scene.base);
    let mut subscribed = scene.hub.a2a_stream("POST", &path, &headers, "").await;
    scene.work(&job, "progress", json!({"epoch": 1})).await;
    scene.work(&job, "ask", json!({"epoch": 1, "text": "Which city?"})).await;
    let states = |events: &[crate::relay::kit::Event]| -> Vec<String> {
        let state = |event: &crate::relay::kit::Event| {
            event.data["statusUpdate"]["status"]["state"].as_str().unwrap_or_default().to_owned()
        };
        events.iter().map(state).collect()
    };
    let told = stream.rest().await;
    assert_eq!(states(&told), ["TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"]);

    let mut message = text_message("m-2", "Lugano");
    message["taskId"] = job.as_str().into();
    let body = json!({"message": message}).to_string();
    let path = format!("{}/message:stream", scene.base);
    let mut stream = scene.hub.a2a_stream("POST", &path, &headers, &body).await;
    let first = stream.event().await.data;
    assert_eq!(state(&first["task"]), "TASK_STATE_WORKING");
    scene.finish(&job).await;
    let ends = |events: &[crate::relay::kit::Event]| {
        events.last().map(|event| event.data["statusUpdate"]["status"]["state"].clone())
    };
    assert_eq!(ends(&stream.rest().await), Some(json!("TASK_STATE_COMPLETED")));
    let all = subscribed.rest().await;
    let expected = ["TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING"];
    let statuses = states(&all[1..]);
    assert_eq!(statuses[..3], expected, "{statuses:?}");
    assert_eq!(statuses.last().map(String::as_str), Some("TASK_STATE_COMPLETED"));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_is_auth_required_and_a_message_meanwhile_reaches_the_worker() {
    let scene = Scene::build(&[]).await;
    let task = scene.open().await;
    let auth = json!({"epoch": 1, "text": "Sign in at mail.example", "auth": true});
    scene.work(&task, "ask", auth).await;
    let shown = scene.task(&task).await;
    assert_eq!(state(&shown), "TASK_STATE_AUTH_REQUIRED");
    assert_eq!(shown["status"]["message"]["parts"][0]["text"], "Sign in at mail.example");
    let told = scene.say(&task, "m-2", "I have signed in").await;
    assert_eq!(state(&told), "TASK_STATE_AUTH_REQUIRED", "the hub awaits no answer");
    let work = scene.poll(&format!("{task}.1.0.0")).await;
    assert_eq!(work["answers"], Value::Null);
    let message = &work["messages"][0];
    assert_eq!(
        (&message["kind"], &message["text"]),
        (&json!("message"), &json!("I have signed in"))
    );
    assert_eq!((&message["message"], &message["meta"]["messageId"]), (&json!(1), &json!("m-2")));
    scene.work(&task, "progress", json!({"epoch": 1})).await;
    assert_eq!(state(&scene.task(&task).await), "TASK_STATE_WORKING");
    scene.finish(&task).await;
    let ended = scene.task(&task).await;
    assert_eq!(said(&ended).len(), 3, "{ended}");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_to_a_running_worker_come_with_its_work_in_order_and_once() {
    let scene = Scene::build(&[]).await;
    let task = scene.open().await;
    scene.work(&task, "progress", json!({"epoch": 1})).await;
    for (id, text) in [("m-2", "by train"), ("m-3", "and cheap")] {
        let told = scene.say(&task, id, text).await;
        assert_eq!(state(&told), "TASK_STATE_WORKING");
    }
    let work = scene.poll(&format!("{task}.1.0.0")).await;
    let texts: Vec<&Value> =
        work["messages"].as_array().expect("a list").iter().map(|one| &one["text"]).collect();
    assert_eq!(texts, ["by train", "and cheap"]);
    let rest = scene.poll(&format!("{task}.1.0.1")).await;
    assert_eq!(rest["messages"].as_array().map(Vec::len), Some(1), "{rest}");
    // A worker that lost its memory gets them with the job.
    let fresh = scene.poll("").await;
    assert_eq!(fresh["jobs"][0]["messages"][1]["text"], "and cheap");
    assert_eq!(fresh["jobs"][0]["messages"][1]["meta"]["messageId"], "m-3");
    scene.finish(&task).await;
    let late = json!({"message": {"messageId": "m-4", "taskId": task, "role": "ROLE_USER",
        "parts": [{"text": "too late"}]}});
    let reply = scene.hub.rpc(&scene.base, &scene.client.key, "SendMessage", late).await;
    assert_eq!(reply.at("/error/code"), json!(-32004), "{}", reply.text);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_worker_asks_and_gets_answers_and_messages_in_its_conversation() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("ann").await;
    let bob = hub.join("bob").await;
    let mut inbox = hub.inbox(&bob).await;
    let base = hub.a2a_path("relay", &bob.id);
    let message = json!({"message": text_message("m-1", "plan a trip"),
        "configuration": {"returnImmediately": true}});
    let opened = hub.rpc(&base, &client.key, "SendMessage", message).await.expect(200);
    let task = opened.str("/result/task/id");
    let given = inbox.message().await;
    let to = given.data["sender_id"].as_str().expect("an address").to_owned();
    let say = async |id: &str, text: &str| {
        let message = json!({"messageId": id, "taskId": task, "role": "ROLE_USER",
            "parts": [{"text": text}]});
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        hub.rpc(&base, &client.key, "SendMessage", params).await.expect(200).at("/result/task")
    };
    // A message before any question.
    say("m-2", "and cheap").await;
    let first = inbox.message().await;
    let envelope = &first.data["envelope"];
    assert_eq!((first.said(), &envelope["conversation_id"]), ("and cheap", &json!(task)));
    assert_eq!(envelope["turn_number"], 3);

    let question = turn(&bob.id, "Which city?", &task, 4);
    let body = json!({"receiver_id": to, "envelope": question, "question": true});
    hub.post("/relay/messages", Some(&bob.key), &body).await.expect(200);
    let told = say("m-3", "Lugano").await;
    assert_eq!(state(&told), "TASK_STATE_WORKING");
    let answer = inbox.message().await;
    let envelope = &answer.data["envelope"];
    assert_eq!((answer.said(), &envelope["turn_number"]), ("Lugano", &json!(5)));
    say("m-4", "on Monday").await;
    let last = inbox.message().await;
    let envelope = &last.data["envelope"];
    assert_eq!((last.said(), &envelope["turn_number"]), ("on Monday", &json!(7)));

    hub.mail_to(&bob, &to, &turn(&bob.id, "go by train", &task, 8)).await.expect(200);
    let ended = hub.rpc(&base, &client.key, "GetTask", json!({"id": task})).await.expect(200);
    let ended = ended.at("/result");
    assert_eq!(state(&ended), "TASK_STATE_COMPLETED");
    let texts: Vec<String> = said(&ended).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["plan a trip", "and cheap", "Which city?", "Lugano", "on Monday"]);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_waiting_task_reaches_the_worker_that_gets_it_later() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("ann").await;
    let bob = hub.join("bob").await;
    // Without an open inbox the agent is away, and its task waits.
    let base = hub.a2a_path("relay", &bob.id);
    let message = json!({"message": text_message("m-1", "plan a trip"),
        "configuration": {"returnImmediately": true}});
    let opened = hub.rpc(&base, &client.key, "SendMessage", message).await.expect(200);
    let task = opened.str("/result/task/id");
    assert_eq!(opened.str("/result/task/status/state"), "TASK_STATE_SUBMITTED");
    let more = json!({"messageId": "m-2", "taskId": task, "role": "ROLE_USER",
        "parts": [{"text": "and cheap"}]});
    let params = json!({"message": more, "configuration": {"returnImmediately": true}});
    hub.rpc(&base, &client.key, "SendMessage", params).await.expect(200);
    let mut inbox = hub.inbox(&bob).await;
    let (first, second) = (inbox.message().await, inbox.message().await);
    assert_eq!((first.said(), second.said()), ("plan a trip", "and cheap"));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_without_an_answer_fails_the_task_without_blame() {
    let scene = Scene::build(&[("jobs.answer_window", "1m")]).await;
    let before = scene.hub.score(&scene.worker).await;
    let task = scene.open().await;
    scene.work(&task, "ask", json!({"epoch": 1, "text": "Which city?"})).await;
    scene.hub.pass(Millis::minutes(2));
    eventually(async || state(&scene.task(&task).await) == "TASK_STATE_FAILED").await;
    let ended = scene.task(&task).await;
    let text = "the requester did not answer in time: Which city?";
    assert_eq!(ended["status"]["message"]["parts"][0]["text"], text);
    assert_eq!(scene.hub.score(&scene.worker).await, before);
    let account = scene.hub.balance("a2a:ann").await;
    assert_eq!(account, ("10.00".to_owned(), "0.00".to_owned()));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_is_asked_and_answers_too() {
    let hub = TestHub::open(&[]).await;
    let worker = hub.agent("acme", "plan", "0", None).await;
    let base = hub.a2a_path("registry", &worker.id);
    let message = json!({"message": text_message("m-1", "plan a trip"),
        "configuration": {"returnImmediately": true}});
    let opened = hub.rpc(&base, "", "SendMessage", message).await.expect(200);
    let task = opened.str("/result/task/id");
    let ask = format!("/v1/jobs/{task}/ask");
    let asked = json!({"epoch": 1, "text": "Which city?"});
    hub.post(&ask, Some(&worker.key), &asked).await.expect(200);
    let answer = json!({"message": {"messageId": "m-2", "taskId": task, "role": "ROLE_USER",
        "parts": [{"text": "Lugano"}]}, "configuration": {"returnImmediately": true}});
    let answered = hub.rpc(&base, "", "SendMessage", answer).await.expect(200);
    assert_eq!(answered.str("/result/task/status/state"), "TASK_STATE_WORKING");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_and_its_answer_survive_a_restart_of_the_hub() {
    let scene = Scene::build(&[]).await;
    let task = scene.open().await;
    scene.work(&task, "ask", json!({"epoch": 1, "text": "Which city?"})).await;
    let Scene { hub, client, worker, base } = scene;
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    let scene = Scene { hub, client, worker, base };
    assert_eq!(state(&scene.task(&task).await), "TASK_STATE_INPUT_REQUIRED");
    scene.say(&task, "m-2", "Lugano").await;
    let Scene { hub, client, worker, base } = scene;
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    let scene = Scene { hub, client, worker, base };
    let work = scene.poll("").await;
    assert_eq!(work["jobs"][0]["questions"][0]["answer"], json!({"text": "Lugano"}));
    assert_eq!(work["jobs"][0]["questions"][0]["answer_meta"]["messageId"], "m-2");
    scene.finish(&task).await;
    assert_eq!(state(&scene.task(&task).await), "TASK_STATE_COMPLETED");
    scene.hub.stop().await;
}
