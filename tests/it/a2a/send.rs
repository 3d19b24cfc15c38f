//! SendMessage: what it opens, and when it returns (R30–R43).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{
    Client, HIRE, TaskWorker, first_text, hire_message, id, send_call, state, text_message,
};
use crate::kit::{TestHub, eventually};
use crate::openclaw::kit::Hub;

/// A hub and a client with credits.
pub struct Scene {
    pub hub: TestHub,
    pub client: Client,
}

impl Scene {
    pub async fn set(flags: &[(&str, &str)]) -> Self {
        let hub = TestHub::serve(flags).await;
        let client = hub.rich_client("client").await;
        Self { hub, client }
    }

    pub async fn send(&self, worker: &TaskWorker<'_>, message: Value) -> Value {
        let params = json!({ "message": message });
        self.hub.result(&worker.base, &self.client.key, "SendMessage", params).await
    }

    pub async fn refusal(&self, worker: &TaskWorker<'_>, params: Value) -> (i64, String) {
        self.hub.refusal(&worker.base, &self.client.key, "SendMessage", params).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_task_opens_one_job() {
    let scene = Scene::set(&[]).await;
    let worker = TaskWorker::join(&scene.hub, "analyze_text", "0.10").await;
    let message = hire_message("m-1", "Q3", json!({"budget": "0.15"}));
    let body = send_call(message).to_string();
    let request = scene.hub.request(("POST", &worker.base), &scene.client.key, &[], &body);
    let (reply, job) = tokio::join!(request, worker.work(json!({"entities": []})));
    let reply = reply.expect(200);
    let task = reply.at("/result/task");
    assert_eq!(state(&task), "TASK_STATE_COMPLETED");
    assert_eq!(reply.header("rialto-job"), Some(id(&task).as_str()));
    assert_eq!((&job["id"], &job["input"]), (&task["id"], &json!({"text": "Q3"})));
    let listed = scene.hub.result(&worker.base, &scene.client.key, "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 1);
    let shown = scene.hub.get(&format!("/v1/jobs/{}", id(&task)), Some(&scene.client.key)).await;
    assert_eq!(shown.expect(200).str("/state"), "completed");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_is_kept_or_made_and_is_its_callers_own() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let first = hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    let second = hub.begin(&worker.base, key, text_message("m-2", "hi")).await;
    let made = [&first, &second].map(|task| task["contextId"].as_str().expect("an id").to_owned());
    assert!(made.iter().all(|id| id.parse::<uuid::Uuid>().is_ok()), "{made:?}");
    assert_ne!(made[0], made[1]);
    let mut message = text_message("m-3", "hi");
    message["contextId"] = "my context: ☃".into();
    let third = hub.begin(&worker.base, key, message.clone()).await;
    assert_eq!(third["contextId"], "my context: ☃");
    // Another caller's equal one is another context.
    let other = hub.a2a_client("other").await;
    let fourth = hub.begin(&worker.base, &other.key, message).await;
    assert_eq!(fourth["contextId"], third["contextId"]);
    let in_context = json!({"contextId": "my context: ☃"});
    for (key, task) in [(key, &third), (&other.key, &fourth)] {
        let listed = hub.result(&worker.base, key, "ListTasks", in_context.clone()).await;
        assert_eq!((&listed["totalSize"], &listed["tasks"][0]["id"]), (&json!(1), &task["id"]));
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_task_that_is_not_the_callers_at_this_agent_finds_nothing() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let other_agent = TaskWorker::join(hub, "other", "0").await;
    let other = hub.a2a_client("other").await;
    let task = hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    let mut message = text_message("m-2", "more");
    message["taskId"] = task["id"].clone();
    let not_found = (-32001, "TASK_NOT_FOUND".to_owned());
    for (base, key) in
        [(worker.base.as_str(), other.key.as_str()), (other_agent.base.as_str(), key)]
    {
        let params = json!({"message": message});
        assert_eq!(hub.refusal(base, key, "SendMessage", params).await, not_found, "{base}");
    }
    for unknown in ["00000000-0000-4000-8000-000000000000", "x", "☃"] {
        message["taskId"] = unknown.into();
        let params = json!({"message": message});
        let refused = hub.refusal(&worker.base, key, "SendMessage", params).await;
        assert_eq!(refused, not_found, "{unknown}");
    }
    // At the hub itself all of the caller's tasks are found.
    message["taskId"] = task["id"].clone();
    let configuration = json!({"returnImmediately": true});
    let params = json!({"message": message, "configuration": configuration});
    let told = hub.result("/a2a", key, "SendMessage", params).await;
    assert_eq!(told["task"]["id"], task["id"]);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_task_that_has_ended_is_an_unsupported_operation() {
    let scene = Scene::set(&[]).await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let sent = scene.send(&worker, text_message("m-1", "hi"));
    let (done, _) = tokio::join!(sent, worker.work(json!({"text": "done"})));
    let mut message = text_message("m-2", "more");
    message["taskId"] = done["task"]["id"].clone();
    let refused = scene.refusal(&worker, json!({ "message": message })).await;
    assert_eq!(refused, (-32004, "UNSUPPORTED_OPERATION".to_owned()));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_infers_its_context_and_refuses_another() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let task = hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    let mut message = text_message("m-2", "more");
    message["taskId"] = task["id"].clone();
    for context in [Value::Null, json!(""), task["contextId"].clone()] {
        message["contextId"] = context;
        let told = hub.begin(&worker.base, key, message.clone()).await;
        assert_eq!(told["contextId"], task["contextId"]);
        let last = told["history"].as_array().expect("a history").last().expect("a message");
        let ids = (&last["contextId"], &last["taskId"]);
        assert_eq!(ids, (&task["contextId"], &task["id"]));
    }
    message["contextId"] = "another".into();
    let reply = hub.rpc(&worker.base, key, "SendMessage", json!({ "message": message })).await;
    let field = reply.at("/error/data/1/fieldViolations/0/field");
    assert_eq!((reply.at("/error/code"), field), (json!(-32602), json!("message.contextId")));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_live_task_joins_its_history_and_reaches_the_worker() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let task = hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    worker.progress(&job, "half").await;
    let mut message = text_message("m-2", "hurry");
    message["taskId"] = task["id"].clone();
    let told = hub.begin(&worker.base, key, message).await;
    assert_eq!(state(&told), "TASK_STATE_WORKING");
    // The status message is still that of the status, so it is not in the history.
    assert_eq!(first_text(&told["status"]["message"]), "half");
    let texts = |task: &Value| -> Vec<String> {
        let all = task["history"].as_array().expect("a history").iter();
        all.map(|one| first_text(one).to_owned()).collect()
    };
    assert_eq!(texts(&told), ["hi", "hurry"]);
    let work = hub.get("/v1/work", Some(&worker.agent.key)).await.expect(200);
    assert_eq!(work.at("/jobs/0/messages/0/text"), "hurry");
    worker.succeed(&job, json!({"text": "done"})).await;
    let done = hub.get_task(&worker.base, key, &id(&task)).await;
    // Once there is another status, its message stands where it was said.
    assert_eq!(texts(&done), ["hi", "half", "hurry"]);
    assert_eq!(done["status"].get("message"), None);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_returns_at_the_end_with_all_artifacts_or_when_the_worker_asks() {
    let scene = Scene::set(&[]).await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let work = async {
        let job = worker.take().await;
        let one = json!({"artifactId": "a", "parts": [{"text": "one"}]});
        worker.part(&job, one, false).await;
        worker.part(&job, json!({"text": "two"}), false).await;
        worker.succeed(&job, json!({"sum": 3})).await;
    };
    let (done, ()) = tokio::join!(scene.send(&worker, text_message("m-1", "hi")), work);
    assert_eq!(state(&done["task"]), "TASK_STATE_COMPLETED");
    let artifacts = json!([
        {"artifactId": "a", "parts": [{"text": "one"}]},
        {"artifactId": "part-2", "parts": [{"text": "two"}]},
        {"artifactId": "result", "parts": [{"data": {"sum": 3}, "mediaType": "application/json"}]},
    ]);
    assert_eq!(done["task"]["artifacts"], artifacts);
    for (auth, expected) in
        [(false, "TASK_STATE_INPUT_REQUIRED"), (true, "TASK_STATE_AUTH_REQUIRED")]
    {
        let ask = async {
            let job = worker.take().await;
            let question = json!({"text": "which city?", "auth": auth});
            worker.say(&job, "ask", question).await.expect(200);
            job
        };
        let (asked, job) = tokio::join!(scene.send(&worker, text_message("m-2", "hi")), ask);
        assert_eq!(state(&asked["task"]), expected);
        assert_eq!(first_text(&asked["task"]["status"]["message"]), "which city?");
        worker.fail(&job, "no answer").await;
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_waits_as_long_as_the_operator_says_and_not_at_all_if_told_so() {
    let scene = Scene::set(&[("a2a.sync_wait", "50ms")]).await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.send(&worker, text_message("m-1", "hi")).await["task"].clone();
    assert_eq!(state(&task), "TASK_STATE_SUBMITTED");
    worker.work(json!({"text": "done"})).await;
    let done = scene.hub.get_task(&worker.base, &scene.client.key, &id(&task)).await;
    assert_eq!(state(&done), "TASK_STATE_COMPLETED");
    scene.hub.stop().await;
    let scene = Scene::set(&[("a2a.sync_wait", "0s")]).await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.send(&worker, text_message("m-1", "hi")).await;
    assert_eq!(state(&task["task"]), "TASK_STATE_SUBMITTED");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn return_immediately_returns_at_once() {
    let scene = Scene::set(&[]).await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.hub.begin(&worker.base, &scene.client.key, text_message("m-1", "hi")).await;
    // Nobody has taken it, so a send that waits would not have returned.
    assert_eq!(state(&task), "TASK_STATE_SUBMITTED");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_of_the_newest_messages_are_returned_as_are_wanted() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let task = hub.begin(&worker.base, key, text_message("m-0", "0")).await;
    for number in 1..=99 {
        let mut message = text_message(&format!("m-{number}"), &number.to_string());
        message["taskId"] = task["id"].clone();
        hub.begin(&worker.base, key, message).await;
    }
    let job = worker.take().await;
    for text in ["one", "two", "three"] {
        worker.progress(&job, text).await;
    }
    let texts = async |params: Value| -> Vec<String> {
        let mut params = params;
        params["id"] = task["id"].clone();
        let task = hub.result(&worker.base, key, "GetTask", params).await;
        let all = task["history"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| first_text(one).to_owned()).collect()
    };
    // A hundred messages of the client and two superseded ones of the worker.
    let usual = texts(json!({})).await;
    assert_eq!((usual.len(), usual[0].as_str(), usual[99].as_str()), (100, "2", "two"));
    assert_eq!(texts(json!({"historyLength": 0})).await, Vec::<String>::new());
    assert_eq!(texts(json!({"historyLength": 3})).await, ["99", "one", "two"]);
    assert_eq!(texts(json!({"historyLength": 1000})).await.len(), 102);
    let none = json!({"id": task["id"], "historyLength": 0});
    let none = hub.result(&worker.base, key, "GetTask", none).await;
    assert!(none.get("history").is_none(), "{none}");
    // A send says how many it wants, too.
    let mut message = text_message("m-100", "100");
    let mut newest = Vec::new();
    for (length, id) in [(2, task["id"].clone()), (0, Value::Null)] {
        message["taskId"] = id;
        let configuration = json!({"returnImmediately": true, "historyLength": length});
        let params = json!({"message": message, "configuration": configuration});
        let sent = hub.result(&worker.base, key, "SendMessage", params).await;
        newest.push(sent["task"].get("history").cloned());
    }
    let history = newest[0].as_ref().and_then(Value::as_array).expect("a history");
    assert_eq!(history.iter().map(first_text).collect::<Vec<_>>(), ["two", "100"]);
    assert_eq!(newest[1], None);
    // In 0.3 zero means all of them.
    let old = super::kit::rpc(1, "tasks/get", json!({"id": task["id"], "historyLength": 0}));
    let old = old.to_string();
    let old = hub.request(("POST", &worker.base), key, &[("a2a-version", "")], &old);
    let old = old.await.at("/result/history");
    assert_eq!(old.as_array().map(Vec::len), Some(103));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_needs_the_role_of_a_user_and_parts_with_one_content_each() {
    let scene = Scene::set(&[]).await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let message = |more: Value| {
        let mut message = text_message("m-1", "hi");
        for (name, value) in more.as_object().expect("members") {
            message[name] = value.clone();
        }
        message
    };
    for (more, field) in [
        (json!({"role": "ROLE_AGENT"}), "message.role"),
        (json!({"role": "ROLE_UNSPECIFIED"}), "message.role"),
        (json!({"role": 2}), "message.role"),
        (json!({"role": null}), "message.role"),
        (json!({"parts": []}), "message.parts"),
        (json!({"parts": null}), "message.parts"),
        (json!({"parts": [{}]}), "message.parts[0]"),
        (json!({"parts": [{"text": "a"}, {"mediaType": "x/y"}]}), "message.parts[1]"),
        (json!({"parts": [{"text": "a", "data": 1}]}), "message.parts[0]"),
        (json!({"messageId": ""}), "message.messageId"),
        (json!({"messageId": null}), "message.messageId"),
    ] {
        let params = json!({"message": message(more.clone())});
        let reply = scene.hub.rpc(&worker.base, &scene.client.key, "SendMessage", params).await;
        assert_eq!(reply.at("/error/code"), -32602, "{more}");
        let fields = reply.at("/error/data/1/fieldViolations");
        let found = fields.as_array().expect("violations").iter().any(|one| one["field"] == field);
        assert!(found, "{more}: {fields}");
    }
    assert_eq!(scene.refusal(&worker, json!({})).await.0, -32602);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_skill_is_the_one_that_is_named_or_the_only_one_or_message() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let skills = |names: &[&str]| -> Value {
        names.iter().map(|name| json!({"skill_name": name, "cost_per_call": 0})).collect()
    };
    let several = TaskWorker::with_skills(hub, "several", skills(&["one", "two"])).await;
    let talks = TaskWorker::with_skills(hub, "talks", skills(&["one", "message"])).await;
    let single = TaskWorker::join(hub, "only", "0").await;
    let with = |metadata: Value| {
        let mut message = text_message("m-1", "hi");
        message["metadata"] = metadata;
        message
    };
    for (worker, message, request, skill) in [
        (&several, with(json!({HIRE: {"skill": "two"}})), json!({}), "two"),
        (&several, with(json!({"skillId": "two"})), json!({}), "two"),
        (&several, with(json!({HIRE: {"skill": "one"}, "skillId": "two"})), json!({}), "one"),
        (&several, with(json!({HIRE: {"budget": "1"}, "skillId": "two"})), json!({}), "two"),
        // What the message says counts before what the request says.
        (&several, text_message("m-1", "hi"), json!({HIRE: {"skill": "two"}}), "two"),
        (&several, text_message("m-1", "hi"), json!({"skillId": "two"}), "two"),
        (&several, with(json!({HIRE: {"skill": "one"}})), json!({HIRE: {"skill": "two"}}), "one"),
        (&talks, text_message("m-1", "hi"), json!({}), "message"),
        (&single, text_message("m-1", "hi"), json!({}), "only"),
    ] {
        let params = json!({"message": message, "metadata": request});
        let (done, job) = tokio::join!(
            hub.result(&worker.base, key, "SendMessage", params.clone()),
            worker.work(json!({"text": "done"}))
        );
        assert_eq!(job["skill"], skill, "{params}");
        assert_eq!(done["task"]["metadata"][HIRE]["skill"], skill);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_held_and_the_price_is_paid() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "analyze_text", "0.10").await;
    for (budget, hold) in
        [(json!("0.15"), "0.15"), (json!(0.15), "0.15"), (json!("0.100001"), "0.10")]
    {
        let message = hire_message("m-1", "hi", json!({"budget": budget}));
        let task = hub.begin(&worker.base, key, message).await;
        let (_, held) = hub.balance("a2a:client").await;
        assert_eq!(held, hold, "{budget}");
        let job = worker.take().await;
        worker.succeed(&job, json!({"text": "done"})).await;
        let done = hub.get_task(&worker.base, key, &id(&task)).await;
        let hire = &done["metadata"][HIRE];
        assert_eq!((&hire["price"], &hire["paid"]), (&json!("0.10"), &json!("0.10")), "{done}");
        assert_eq!(hire["worker"], worker.base.rsplit_once('/').expect("a name").1);
        assert_eq!(hire["protocol"], "registry");
    }
    assert_eq!(hub.balance("a2a:client").await, ("99.70".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.balance("analyze_text").await.0, "0.30");
    // A worker that fails is not paid.
    let message = hire_message("m-2", "hi", json!({"budget": "0.10"}));
    let work = async {
        let job = worker.take().await;
        worker.fail(&job, "it broke").await;
    };
    let (failed, ()) = tokio::join!(scene.send(&worker, message), work);
    assert_eq!(state(&failed["task"]), "TASK_STATE_FAILED");
    assert_eq!(first_text(&failed["task"]["status"]["message"]), "it broke");
    assert_eq!(failed["task"]["metadata"][HIRE]["paid"], "0");
    assert_eq!(hub.balance("a2a:client").await, ("99.70".to_owned(), "0.00".to_owned()));
    for budget in [json!("1.0000001"), json!("-1"), json!("much"), json!(true), json!("")] {
        let params = json!({"message": hire_message("m-3", "hi", json!({"budget": budget}))});
        assert_eq!(scene.refusal(&worker, params).await.0, -32602, "{budget}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_millionth_is_a_price_and_a_budget() {
    let hub = Hub::serve(&[]).await;
    let client = hub.rich_client("client").await;
    let node = hub.able_node("cheap", json!({"price": 0.000001})).await;
    let base = hub.a2a_path("openclaw", &node.id);
    let message = |budget: &str| {
        let mut message = hire_message("m-1", "", json!({"budget": budget}));
        message["parts"] = json!([{"data": {"a": 1}}]);
        message
    };
    let params = json!({"message": message("0")});
    let refused = hub.0.result(&base, &client.key, "SendMessage", params).await;
    assert_eq!(refused["message"]["metadata"][HIRE]["price"], "0.000001", "{refused}");
    let task = hub.begin(&base, &client.key, message("0.000001")).await;
    let work = hub.get("/v1/work", Some(&node.key)).await.expect(200);
    assert_eq!(work.str("/jobs/0/id"), id(&task));
    let path = format!("/v1/jobs/{}/result", id(&task));
    let result = json!({"ok": true, "output": {"r": 1}});
    hub.post(&path, Some(&node.key), &result).await.expect(200);
    let done = hub.get_task(&base, &client.key, &id(&task)).await;
    assert_eq!(done["metadata"][HIRE]["paid"], "0.000001", "{done}");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_ends_at_its_deadline_or_after_the_usual_time() {
    let scene = Scene::set(&[("a2a.task_ttl", "2h"), ("jobs.lease", "5h")]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let now = hub.engine.now();
    let at = rialto_protocols::kit::rfc3339::format_millis(now.plus(Millis::hours(1)));
    let early =
        hub.begin(&worker.base, key, hire_message("m-1", "hi", json!({"deadline": at}))).await;
    let usual = hub.begin(&worker.base, key, text_message("m-2", "hi")).await;
    worker.take().await;
    let ended = async |task: &Value| {
        let task = hub.get_task(&worker.base, key, &id(task)).await;
        state(&task) == "TASK_STATE_FAILED"
    };
    hub.pass(Millis::minutes(61));
    eventually(async || ended(&early).await).await;
    assert!(!ended(&usual).await);
    hub.pass(Millis::minutes(60));
    eventually(async || ended(&usual).await).await;
    let shown = hub.get_task(&worker.base, key, &id(&early)).await;
    assert_eq!(shown["metadata"][HIRE]["deadline"], at);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sign_of_life_renews_the_lease() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let task = hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    for _ in 0..3 {
        hub.pass(Millis::minutes(50));
        worker.progress(&job, "still at it").await;
    }
    let shown = hub.get_task(&worker.base, key, &id(&task)).await;
    assert_eq!(state(&shown), "TASK_STATE_WORKING");
    // An hour of silence ends it.
    hub.pass(Millis::minutes(61));
    eventually(async || {
        let task = hub.get_task(&worker.base, key, &id(&task)).await;
        state(&task) == "TASK_STATE_FAILED"
    })
    .await;
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_for_an_agent_that_is_away_waits_and_says_since_when() {
    let scene = Scene::set(&[]).await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    hub.pass(Millis::hours(2));
    let task = hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    assert_eq!(state(&task), "TASK_STATE_SUBMITTED");
    let told = first_text(&task["status"]["message"]);
    assert!(told.starts_with("the agent is away since 20"), "{told}");
    let job = worker.take().await;
    let shown = hub.get_task(&worker.base, key, &id(&task)).await;
    assert_eq!(shown["status"].get("message"), None, "{shown}");
    worker.succeed(&job, json!({"text": "done"})).await;
    let done = hub.get_task(&worker.base, key, &id(&task)).await;
    assert_eq!(state(&done), "TASK_STATE_COMPLETED");
    // Who does not want to wait is refused.
    hub.pass(Millis::hours(2));
    let refused = scene.send(&worker, hire_message("m-2", "hi", json!({"queue": false}))).await;
    assert_eq!(refused["message"]["metadata"][HIRE]["refused"], "OFFLINE", "{refused}");
    scene.hub.stop().await;
}
