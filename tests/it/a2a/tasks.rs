//! GetTask and its history, and CancelTask (R52, R53, R58, R59).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{
    Client, HIRE, HUB, TaskWorker, first_text, hire_message, id, state, text_message,
};
use crate::kit::TestHub;

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

    async fn get(&self, worker: &TaskWorker<'_>, task: &Value) -> Value {
        self.hub.get_task(&worker.base, &self.client.key, &id(task)).await
    }

    async fn begin(&self, worker: &TaskWorker<'_>, message: Value) -> Value {
        self.hub.begin(&worker.base, &self.client.key, message).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_its_status_artifacts_history_and_metadata() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "analyze_text", "0.10").await;
    let message = hire_message("m-1", "Q3", json!({"budget": "0.15"}));
    let opened = scene.begin(&worker, message.clone()).await;
    let mut first = message;
    first["contextId"] = opened["contextId"].clone();
    first["taskId"] = opened["id"].clone();
    let history = json!([first]);
    assert_eq!((state(&opened), &opened["history"]), ("TASK_STATE_SUBMITTED", &history));
    assert!(opened.get("artifacts").is_none() && opened.get("metadata").is_none(), "{opened}");
    let job = worker.take().await;
    worker.progress(&job, "reading").await;
    worker.part(&job, json!({"artifactId": "a", "parts": [{"text": "Q3 "}]}), false).await;
    worker.part(&job, json!({"artifactId": "a", "parts": [{"text": "was "}]}), true).await;
    let working = scene.get(&worker, &opened).await;
    assert_eq!(state(&working), "TASK_STATE_WORKING");
    assert_eq!(first_text(&working["status"]["message"]), "reading");
    let joined = json!([{"artifactId": "a", "parts": [{"text": "Q3 "}, {"text": "was "}]}]);
    assert_eq!((&working["artifacts"], &working["history"]), (&joined, &history));
    let hire = &working["metadata"][HIRE];
    let name = worker.base.rsplit_once('/').expect("a name").1;
    let deadline = hire["deadline"].as_str().expect("a time");
    assert!(deadline.ends_with('Z') && deadline.len() == 24, "{deadline}");
    let expected = json!({"skill": "analyze_text", "worker": name, "protocol": "registry",
        "price": "0.10", "deadline": deadline});
    assert_eq!(*hire, expected);
    worker.succeed(&job, json!({"text": "42"})).await;
    let done = scene.get(&worker, &opened).await;
    assert_eq!(state(&done), "TASK_STATE_COMPLETED");
    let stamp = done["status"]["timestamp"].as_str().expect("a time");
    assert!(stamp.ends_with('Z') && stamp.len() == 24, "{stamp}");
    let mut artifacts = joined;
    let result = json!({"artifactId": "result", "parts": [{"text": "42"}]});
    artifacts.as_array_mut().expect("a list").push(result);
    assert_eq!(done["artifacts"], artifacts);
    assert_eq!(done["history"].as_array().map(Vec::len), Some(2));
    let mut expected = expected;
    expected["paid"] = "0.10".into();
    assert_eq!(done["metadata"][HIRE], expected);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_event_of_a_hired_task_says_what_was_paid() {
    let scene = Scene::set().await;
    let key = scene.client.key.as_str();
    let told = json!({"price": "0.10", "paid": "0.10"});
    for (skill, price, expected) in [("sum", "0.10", told), ("echo", "0", Value::Null)] {
        let worker = TaskWorker::join(&scene.hub, skill, price).await;
        let message = hire_message("m-1", "hi", json!({ "budget": price }));
        let mut stream = scene.hub.follow(&worker.base, key, message).await;
        let job = worker.work(json!({"text": "done"})).await;
        let last = stream.rest().await.pop().expect("an event");
        assert_eq!(last.data["statusUpdate"]["metadata"][HIRE], expected, "{skill}");
        let task = job["id"].as_str().expect("an id");
        let before = (last.position() - 1).to_string();
        let mut again = scene.hub.subscribe(&worker.base, key, task, Some(&before)).await;
        assert_eq!(again.event().await.data, last.data);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_has_every_message_in_order_also_with_equal_ids() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.begin(&worker, text_message("m", "zero")).await;
    let say = async |text: &str| {
        let mut message = text_message("m", text);
        message["taskId"] = task["id"].clone();
        scene.begin(&worker, message).await
    };
    say("one").await;
    let job = worker.take().await;
    worker.progress(&job, "two").await;
    worker.progress(&job, "three").await;
    say("four").await;
    worker.ask(&job, "five?").await;
    say("six").await;
    worker.succeed(&job, json!({"text": "done"})).await;
    let done = scene.get(&worker, &task).await;
    let history = done["history"].as_array().expect("a history");
    let texts: Vec<&str> = history.iter().map(first_text).collect();
    assert_eq!(texts, ["zero", "one", "two", "three", "four", "five?", "six"]);
    let roles: Vec<&str> =
        history.iter().map(|one| one["role"].as_str().expect("a role")).collect();
    let (user, agent) = ("ROLE_USER", "ROLE_AGENT");
    assert_eq!(roles, [user, user, agent, agent, user, agent, user]);
    for message in history {
        assert_eq!(message["taskId"], task["id"]);
        assert_eq!(message["contextId"], task["contextId"]);
        let is_own = message["role"] == user;
        assert_eq!(message["messageId"] == "m", is_own, "{message}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_nobody_knows_are_left_out_of_the_history() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let message = json!({"messageId": "m", "role": "ROLE_USER", "new": 1,
        "parts": [{"text": "hi", "newer": 2}], "metadata": {"strange": [1.50]}});
    let task = scene.begin(&worker, message).await;
    let shown = json!({"messageId": "m", "contextId": task["contextId"], "taskId": task["id"],
        "role": "ROLE_USER", "parts": [{"text": "hi"}], "metadata": {"strange": [1.50]}});
    assert_eq!(task["history"], json!([shown]));
    // The message as it came is the evidence that the trace shows.
    let path = format!("/v1/jobs/{}/trace", id(&task));
    let trace = scene.hub.get(&path, Some(&scene.client.key)).await.expect(200).text;
    assert!(trace.contains("newer"), "{trace}");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_can_be_canceled_in_every_live_state_and_all_money_comes_back() {
    let scene = Scene::set().await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "analyze_text", "0.10").await;
    for steps in 0..5 {
        let message = hire_message("m-1", "hi", json!({"budget": "0.15"}));
        let task = scene.begin(&worker, message).await;
        let job = if steps > 0 { worker.take().await } else { Value::Null };
        if steps > 1 {
            worker.progress(&job, "half").await;
        }
        if steps > 2 {
            let question = json!({"text": "which?", "auth": steps > 3});
            worker.say(&job, "ask", question).await.expect(200);
        }
        let waiting = ["SUBMITTED", "SUBMITTED", "WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED"];
        let shown = scene.get(&worker, &task).await;
        assert_eq!(state(&shown), format!("TASK_STATE_{}", waiting[steps]));
        let canceled = hub.result(&worker.base, key, "CancelTask", json!({"id": task["id"]})).await;
        assert_eq!(state(&canceled), "TASK_STATE_CANCELED", "after {steps} steps");
        assert_eq!(canceled["metadata"][HIRE]["paid"], "0");
        assert_eq!(hub.balance("a2a:client").await, ("100.00".to_owned(), "0.00".to_owned()));
        assert_eq!(scene.get(&worker, &task).await, canceled);
        // The worker learns of it and can do nothing more.
        if steps > 0 {
            let known = format!("/v1/work?known={}", job["id"].as_str().expect("an id"));
            let work = hub.get(&known, Some(&worker.agent.key)).await.expect(200);
            assert_eq!(work.at("/gone"), json!([job["id"]]), "{}", work.text);
            let output = json!({"ok": true, "output": {"text": "late"}});
            worker.say(&job, "result", output).await.expect(409);
        }
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_no_worker_has_can_be_canceled() {
    let scene = Scene::set().await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "analyze_text", "0.10").await;
    let auction = json!({"skill": "analyze_text", "budget": "0.50", "select": "auction"});
    let auction = hub.begin(HUB, key, hire_message("m-1", "hi", auction)).await;
    let canceled = hub.result(HUB, key, "CancelTask", json!({"id": auction["id"]})).await;
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    hub.pass(Millis::hours(2));
    let message = hire_message("m-2", "hi", json!({"budget": "0.15"}));
    let away = scene.begin(&worker, message).await;
    assert!(first_text(&away["status"]["message"]).contains("away"), "{away}");
    let canceled = hub.result(&worker.base, key, "CancelTask", json!({"id": away["id"]})).await;
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    assert_eq!(hub.balance("a2a:client").await, ("100.00".to_owned(), "0.00".to_owned()));
    // Its worker does not get it when it is back.
    let work = hub.get("/v1/work", Some(&worker.agent.key)).await.expect(200);
    assert_eq!(work.at("/jobs"), json!([]));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_ended_cannot_be_canceled() {
    let scene = Scene::set().await;
    let (hub, key) = (&scene.hub, scene.client.key.as_str());
    let worker = TaskWorker::join(hub, "echo", "0").await;
    let not_cancelable = (-32002, "TASK_NOT_CANCELABLE".to_owned());
    for end in ["completed", "failed", "rejected", "canceled"] {
        let task = scene.begin(&worker, text_message("m-1", "hi")).await;
        let job = worker.take().await;
        match end {
            "completed" => worker.succeed(&job, json!({"text": "done"})).await,
            "failed" => worker.fail(&job, "it broke").await,
            "rejected" => worker.decline(&job, "not my thing").await,
            _ => drop(hub.result(&worker.base, key, "CancelTask", json!({"id": task["id"]})).await),
        }
        let ended = scene.get(&worker, &task).await;
        assert_eq!(state(&ended), format!("TASK_STATE_{}", end.to_uppercase()));
        let params = json!({"id": task["id"]});
        let refused = hub.refusal(&worker.base, key, "CancelTask", params).await;
        assert_eq!(refused, not_cancelable, "{end}");
        assert_eq!(scene.get(&worker, &task).await, ended, "{end}");
    }
    let unknown = json!({"id": "00000000-0000-4000-8000-000000000000"});
    let refused = hub.refusal(&worker.base, key, "CancelTask", unknown).await;
    assert_eq!(refused.1, "TASK_NOT_FOUND");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_declines_rejects_the_task_with_its_reason() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.begin(&worker, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    worker.decline(&job, "not my thing").await;
    let rejected = scene.get(&worker, &task).await;
    assert_eq!(state(&rejected), "TASK_STATE_REJECTED");
    assert_eq!(first_text(&rejected["status"]["message"]), "not my thing");
    scene.hub.stop().await;
}
