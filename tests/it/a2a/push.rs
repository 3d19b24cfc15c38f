//! Push notifications (R71, R73–R75).

use rialto_core::time::{Millis, Timestamp};
use rialto_engine::delivery::signature::{self, WebhookSecret};
use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::kit::{Client, TaskWorker, first_text, id, rpc, state, text_message};
use crate::kit::{Behaviour, Got, TestHub, Worker, eventually};

/// Throw-away secrets of a configuration.
pub const SECRETS: [&str; 2] = ["tok-throw-away", "s3cret-throw-away"];

/// A hub, a client, and where its pushes go.
pub struct Scene {
    pub hub: TestHub,
    pub client: Client,
    pub hook: Worker,
}

impl Scene {
    pub async fn set() -> Self {
        let hub = TestHub::serve(&[]).await;
        let client = hub.a2a_client("client").await;
        let hook = Worker::start(Behaviour::Say(204, String::new())).await;
        Self { hub, client, hook }
    }

    /// A configuration with all members.
    pub fn config(&self, id: &str) -> Value {
        json!({"id": id, "url": format!("{}/hook", self.hook.url), "token": SECRETS[0],
            "authentication": {"scheme": "Bearer", "credentials": SECRETS[1]}})
    }

    /// What is shown of a configuration.
    pub fn shown(&self, id: &str, task: &str) -> Value {
        json!({"id": id, "taskId": task, "url": format!("{}/hook", self.hook.url),
            "authentication": {"scheme": "Bearer"}})
    }

    pub async fn call(&self, base: &str, method: &str, params: Value) -> Value {
        self.hub.result(base, &self.client.key, method, params).await
    }

    /// Opens a task whose events go to the hook.
    async fn open(&self, worker: &TaskWorker<'_>) -> String {
        let mut config = self.config("c");
        config.as_object_mut().expect("an object").remove("id");
        let params = json!({"message": text_message("m-1", "hi"), "configuration":
            {"returnImmediately": true, "taskPushNotificationConfig": config}});
        id(&self.call(&worker.base, "SendMessage", params).await["task"])
    }
}

/// The position in a webhook's id.
fn position(got: &Got, task: &str) -> u64 {
    let header = got.headers["webhook-id"].to_str().expect("a text");
    let rest = header.strip_prefix(&format!("{task}-")).unwrap_or_else(|| panic!("{header}"));
    rest.parse().expect("digits")
}

/// What came, in the order of its positions.
fn in_order(mut all: Vec<Got>, task: &str) -> Vec<Got> {
    all.sort_by_key(|got| position(got, task));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn every_later_event_is_posted_with_its_position_and_both_credentials() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.open(&worker).await;
    let mut stream = scene.hub.subscribe(&worker.base, &scene.client.key, &task, Some("1")).await;
    let job = worker.take().await;
    worker.progress(&job, "half").await;
    let piece = |text: &str| json!({"artifactId": "a", "parts": [{"text": text}]});
    worker.part(&job, piece("one "), true).await;
    worker.part(&job, piece("two"), true).await;
    worker.succeed(&job, json!({"artifacts": [
        {"artifactId": "b", "parts": [{"text": "b"}]}, {"artifactId": "c", "parts": [{"text": "c"}]},
    ]}))
    .await;
    let streamed = stream.rest().await;
    let all = in_order(scene.hook.heard(streamed.len()).await, &task);
    assert_eq!(all.len(), streamed.len());
    for (got, event) in all.iter().zip(&streamed) {
        assert_eq!(got.path, "/hook");
        assert_eq!(position(got, &task), event.position());
        let expected = [
            ("content-type", "application/json"),
            ("authorization", "Bearer s3cret-throw-away"),
            ("x-a2a-notification-token", "tok-throw-away"),
        ];
        for (name, value) in expected {
            assert_eq!(got.headers[name], value);
        }
        // It is the event of the stream, with its position.
        let mut body = got.json();
        let update = body.as_object_mut().expect("an object").values_mut().next().expect("one");
        let metadata = update["metadata"].take();
        update.as_object_mut().expect("an object").remove("metadata");
        assert_eq!(metadata["urn:rialto:a2a:resume:v1"], json!({"position": event.position()}));
        assert_eq!(body, event.data);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_made_in_0_3_gets_the_whole_task_as_of_each_event() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let bearer = format!("Bearer {}", scene.client.key);
    let message = json!({"kind": "message", "messageId": "o-1", "role": "user",
        "parts": [{"kind": "text", "text": "hi"}]});
    let config = json!({"url": format!("{}/hook", scene.hook.url), "token": "t",
        "authentication": {"schemes": ["Basic"], "credentials": "abc"}});
    let params = json!({"message": message, "configuration": {"blocking": false, "pushNotificationConfig": config}});
    let body = rpc(1, "message/send", params).to_string();
    let headers = [("authorization", bearer.as_str())];
    let sent = scene.hub.send("POST", &worker.base, &headers, body.as_bytes()).await.expect(200);
    let task = sent.str("/result/id");
    let job = worker.take().await;
    worker.progress(&job, "half").await;
    worker.part(&job, json!({"artifactId": "a", "parts": [{"text": "one"}]}), false).await;
    worker.succeed(&job, json!({"text": "done"})).await;
    let all = in_order(scene.hook.heard(5).await, &task);
    assert_eq!(all.iter().map(|got| position(got, &task)).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    let shown: Vec<(String, usize, usize)> = all
        .iter()
        .map(|got| {
            assert_eq!(got.headers["authorization"], "Basic abc");
            let task = got.json();
            assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &job["id"]));
            let count = |name: &str| task[name].as_array().map_or(0, Vec::len);
            (state(&task).to_owned(), count("artifacts"), count("history"))
        })
        .collect();
    let expected = [
        ("working", 0, 1),
        ("working", 0, 1),
        ("working", 1, 1),
        ("working", 2, 1),
        ("completed", 2, 2),
    ];
    assert_eq!(
        shown,
        expected.map(|(state, artifacts, history)| (state.to_owned(), artifacts, history))
    );
    let last = all.last().expect("a task").json();
    assert_eq!(last["metadata"]["urn:rialto:a2a:hire:v1"]["paid"], "0");
    assert_eq!(all[1].json()["metadata"]["urn:rialto:a2a:hire:v1"].get("paid"), None);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_row_or_log_shows_a_token_or_credentials() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let task = scene.open(&worker).await;
    let mut answers = Vec::new();
    for (method, params) in [
        ("GetTask", json!({"id": task})),
        ("ListTasks", json!({})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": task})),
    ] {
        answers.push(scene.call(base, method, params).await.to_string());
    }
    for path in
        [format!("/v1/jobs/{task}"), format!("/v1/jobs/{task}/trace"), "/v1/webhooks".to_owned()]
    {
        answers.push(scene.hub.get(&path, Some(key)).await.text);
    }
    answers.push(scene.hub.get("/v1/operator/pushes", Some(&scene.hub.operator)).await.text);
    let hook = scene.hook.url.clone();
    worker.work(json!({"text": "done"})).await;
    scene.hook.heard(2).await;
    let dir = scene.hub.stop().await;
    for (text, secret) in answers.iter().flat_map(|text| SECRETS.map(|secret| (text, secret))) {
        assert!(!text.contains(secret), "{text}");
    }
    // The URL is on disk, and neither secret.
    let mut found_url = false;
    for entry in std::fs::read_dir(dir.path()).expect("a directory").flatten() {
        let Ok(bytes) = std::fs::read(entry.path()) else { continue };
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        found_url |= has(&hook);
        for secret in SECRETS {
            assert!(!has(secret), "{} is in {}", secret, entry.path().display());
        }
    }
    assert!(found_url, "the rows of the task were looked at");
}

#[tokio::test(flavor = "multi_thread")]
async fn sealed_credentials_are_sent_after_a_restart() {
    let Scene { hub, client, hook } = Scene::set().await;
    let scene = Scene { hub, client, hook };
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    scene.open(&worker).await;
    let key = worker.agent.key.clone();
    drop(worker);
    let Scene { hub, hook, .. } = scene;
    let hub = hub.restart(Profile::Serve, &[]).await;
    let work = hub.get("/v1/work", Some(&key)).await.expect(200);
    let path = format!("/v1/jobs/{}/result", work.str("/jobs/0/id"));
    let result = json!({"ok": true, "output": {"text": "done"}});
    hub.post(&path, Some(&key), &result).await.expect(200);
    for got in hook.heard(2).await {
        assert_eq!(got.headers["authorization"], "Bearer s3cret-throw-away");
        assert_eq!(got.headers["x-a2a-notification-token"], "tok-throw-away");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_push_is_tried_again_under_its_id_and_signed_for_the_caller() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let secret = scene.hub.post("/v1/webhooks/secret", Some(&scene.client.key), &json!({})).await;
    let secret = secret.expect(200).str("/webhook_secret");
    let secret = WebhookSecret::parse(&secret).expect("a secret");
    scene.hook.behave(Behaviour::Say(500, String::new()));
    let task = scene.open(&worker).await;
    let job = worker.take().await;
    worker.progress(&job, "half").await;
    scene.hook.heard(2).await;
    // The ladder of all webhooks.
    for (attempt, wait) in [(2, Millis::seconds(5)), (3, Millis::minutes(5))] {
        eventually(async || {
            scene.hub.engine.with_world(|world| {
                let mut due = world.deliveries();
                due.all(|push| push.attempts >= attempt - 1)
            })
        })
        .await;
        if attempt == 3 {
            scene.hook.behave(Behaviour::Say(204, String::new()));
        }
        scene.hub.pass(wait);
        scene.hook.heard(2 * attempt as usize).await;
    }
    let all = scene.hook.got();
    assert_eq!(all.len(), 6);
    for wanted in [2, 3] {
        let tries: Vec<&Got> = all.iter().filter(|got| position(got, &task) == wanted).collect();
        assert_eq!(tries.len(), 3, "each event has one id on every try");
        assert!(tries.iter().all(|got| got.body == tries[0].body));
    }
    for got in &all {
        let headers = got.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.to_str().expect("a text")));
        // Each try has its own time.
        let seconds = got.headers["webhook-timestamp"].to_str().expect("a text");
        let sent_at = Timestamp(seconds.parse::<i64>().expect("digits") * 1_000);
        let verified = signature::verify(&secret, headers, got.body.as_bytes(), sent_at);
        assert_eq!(verified, Ok(()));
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_is_gone_gets_nothing_more() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    scene.hook.behave(Behaviour::Say(410, String::new()));
    let task = scene.open(&worker).await;
    let job = worker.take().await;
    worker.say(&job, "progress", json!({"text": "half"})).await.expect(200);
    let list = async || {
        let params = json!({"taskId": task});
        scene.call(&worker.base, "ListTaskPushNotificationConfigs", params).await
    };
    eventually(async || list().await == json!({"configs": []})).await;
    let before = scene.hook.got().len();
    worker.succeed(&job, json!({"text": "done"})).await;
    eventually(async || {
        scene
            .hub
            .engine
            .with_world(|world| world.deliveries_due(scene.hub.engine.now()).next().is_none())
    })
    .await;
    assert_eq!(scene.hook.got().len(), before);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_and_counts_as_a_failed_attempt() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let elsewhere = Worker::start(Behaviour::Say(204, String::new())).await;
    scene.hook.behave(Behaviour::Redirect(elsewhere.url.clone()));
    let task = scene.open(&worker).await;
    let job = worker.take().await;
    worker.say(&job, "progress", json!({"text": "half"})).await.expect(200);
    scene.hook.heard(2).await;
    eventually(async || {
        let hub = &scene.hub;
        hub.engine.with_world(|world| world.deliveries().all(|push| push.attempts == 1))
    })
    .await;
    scene.hook.behave(Behaviour::Say(204, String::new()));
    scene.hub.pass(Millis::seconds(5));
    let all = scene.hook.heard(4).await;
    assert_eq!(all.iter().filter(|got| position(got, &task) == 2).count(), 2);
    assert!(elsewhere.got().is_empty(), "{:?}", elsewhere.got());
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_configuration_gets_nothing_more() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let task = scene.open(&worker).await;
    let job = worker.take().await;
    worker.progress(&job, "half").await;
    scene.hook.heard(2).await;
    let listed =
        scene.call(&worker.base, "ListTaskPushNotificationConfigs", json!({"taskId": task})).await;
    let one = json!({"taskId": task, "id": listed["configs"][0]["id"]});
    scene.call(&worker.base, "DeleteTaskPushNotificationConfig", one).await;
    worker.succeed(&job, json!({"text": "done"})).await;
    // A second task shows that deliveries go on.
    let second = scene.open(&worker).await;
    worker.work(json!({"text": "done"})).await;
    let all = scene.hook.heard(4).await;
    let of_first = all.iter().filter(|got| got.body.contains(&task)).count();
    assert_eq!((of_first, all.len()), (2, 4));
    assert!(all.iter().any(|got| got.body.contains(&second)));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_a_task_may_bring_a_configuration() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let task = id(&scene.hub.begin(base, key, text_message("m-1", "hi")).await);
    let job = worker.take().await;
    worker.ask(&job, "which?").await;
    let mut message = text_message("m-2", "that");
    message["taskId"] = task.as_str().into();
    let params = json!({"message": message, "configuration":
        {"returnImmediately": true, "taskPushNotificationConfig": scene.config("c")}});
    scene.call(base, "SendMessage", params).await;
    worker.succeed(&job, json!({"text": "done"})).await;
    let all = in_order(scene.hook.heard(3).await, &task);
    let last = all.last().expect("an event").json();
    assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    let kinds: Vec<String> = all
        .iter()
        .map(|got| got.json().as_object().expect("an object").keys().next().expect("one").clone())
        .collect();
    assert_eq!(kinds, ["statusUpdate", "artifactUpdate", "statusUpdate"]);
    assert_eq!(first_text(&all[1].json()["artifactUpdate"]["artifact"]), "done");
    scene.hub.stop().await;
}
