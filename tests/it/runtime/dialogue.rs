//! Programs that report, ask and hear their requester, over the real binary; and kills while a
//! question is open.

use rialto_engine::random::{OsRandom, RandomSource};
use serde_json::{Value, json};

use super::kit::{Place, Runtime};
use crate::crash::{TO_COME_BACK, assert_audit_is_clean, start_at};
use crate::kit::{Agent, TestHub, eventually, http};

/// Reports, hands over a part, asks, and answers with what it was told. It records what it reads.
const PLANS: &str = r#"
import json, sys

def say(**line):
    print(json.dumps(line), flush=True)

for line in sys.stdin:
    with open("heard", "a") as heard:
        heard.write(line)
    line = json.loads(line)
    if "skill" in line:
        say(job_id=line["job_id"], progress={"fraction": 0.25, "text": "reading"})
        say(job_id=line["job_id"], part={"title": "A trip"})
        say(job_id=line["job_id"], ask="Which city?")
    elif "answer" in line:
        say(job_id=line["job_id"], output={"text": "To " + line["answer"]["text"]})
"#;

const MODES: [&[&str]; 2] = [&["--lines"], &["--persistent", "--lines"]];

struct Scene {
    place: Place,
    hub: TestHub,
    boss: Agent,
    /// `None` while it is killed.
    worker: Option<Runtime>,
}

impl Scene {
    async fn build(program: &str, more: &[&str]) -> Self {
        let (place, hub) = (Place::new(), TestHub::serve(&[]).await);
        place.file("plan.py", program);
        let boss = hub.orchestrator("boss").await;
        hub.grant("boss", "10").await;
        let mut scene = Self { place, hub, boss, worker: None };
        scene.start(more).await;
        scene
    }

    async fn start(&mut self, more: &[&str]) {
        let flags = ["--skill", "plan", "--price", "0.50", "--exec", "python3 plan.py"];
        let flags = [&flags, more].concat();
        self.worker = Some(self.place.at_work(&self.hub, "said", &flags).await);
    }

    fn kill(&mut self) {
        self.worker.take().expect("it runs").kill();
    }

    /// The last event of the runtime of a kind, as soon as there is one.
    async fn said(&self, event: &str) -> Value {
        let worker = self.worker.as_ref().expect("it runs");
        eventually(async || worker.said(event).is_some()).await;
        worker.said(event).expect("an event")
    }

    async fn hire(&self) -> String {
        let body = json!({"skill": "plan", "input": {"text": "a trip"}, "budget": 1});
        let posted = self.hub.post("/v1/jobs", Some(&self.boss.key), &body).await.expect(201);
        posted.str("/id")
    }

    async fn job(&self, id: &str) -> Value {
        let path = format!("/v1/jobs/{id}");
        self.hub.get(&path, Some(&self.boss.key)).await.expect(200).json()
    }

    async fn is_asked(&self, id: &str) {
        eventually(async || self.job(id).await["state"] == "asking").await;
    }

    async fn answer(&self, id: &str, text: &str) {
        let path = format!("/v1/jobs/{id}/answer");
        self.hub.post(&path, Some(&self.boss.key), &json!({ "text": text })).await.expect(200);
    }

    async fn ended(&self, id: &str) -> Value {
        eventually(async || self.job(id).await["ended_at"].is_string()).await;
        self.job(id).await
    }

    /// What the program read.
    fn heard(&self) -> Vec<Value> {
        let text = self.place.text("heard");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_reports_hands_over_a_part_asks_and_goes_on_with_the_answer() {
    for mode in MODES {
        let scene = Scene::build(PLANS, mode).await;
        let id = scene.hire().await;
        scene.is_asked(&id).await;
        let job = scene.job(&id).await;
        assert_eq!(
            (&job["progress"]["fraction"], &job["progress"]["text"]),
            (&json!(0.25), &json!("reading"))
        );
        assert_eq!(job["parts"][0]["artifact"], json!({"title": "A trip"}));
        assert_eq!(job["question"]["text"], "Which city?");
        assert_eq!(scene.said("asked").await["question"], "Which city?");
        scene.answer(&id, "Lugano").await;
        let ended = scene.ended(&id).await;
        assert_eq!(ended["state"], "completed", "{ended}");
        assert_eq!(ended["result"]["output"], json!({"text": "To Lugano"}));
        let heard = scene.heard();
        assert_eq!(heard[1], json!({"job_id": id, "answer": {"text": "Lugano"}}), "{mode:?}");
        scene.hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_killed_while_it_waits_asks_nothing_twice() {
    for (mode, is_answered_meanwhile) in [(MODES[0], false), (MODES[0], true), (MODES[1], false)] {
        let mut scene = Scene::build(PLANS, mode).await;
        let id = scene.hire().await;
        scene.is_asked(&id).await;
        scene.kill();
        if is_answered_meanwhile {
            scene.answer(&id, "Lugano").await;
        }
        scene.start(mode).await;
        if !is_answered_meanwhile {
            // The program has asked again, and the hub was not.
            eventually(async || scene.heard().len() == 2).await;
            scene.answer(&id, "Lugano").await;
        }
        let ended = scene.ended(&id).await;
        assert_eq!(ended["result"]["output"], json!({"text": "To Lugano"}), "{ended}");
        assert_eq!(ended["questions"].as_array().map(Vec::len), Some(1), "{ended}");
        assert_eq!(ended["parts"].as_array().map(Vec::len), Some(1), "{ended}");
        assert_eq!(ended["progress"]["reports"], 2, "the same reports are not repeated: {ended}");
        scene.hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_while_a_question_is_open_loses_neither_it_nor_its_answer() {
    let (place, data) = (Place::new(), tempfile::tempdir().expect("a directory"));
    place.file("plan.py", PLANS);
    let mut hub = start_at(data.path(), TO_COME_BACK);
    let url = hub.url.clone();
    let address = url.trim_start_matches("http://").to_owned();
    let flags = ["--skill", "plan", "--price", "0", "--exec", "python3 plan.py", "--lines"];
    let worker = place.run("said", &[&flags[..], &["--hub", &url]].concat());
    let client = http();
    let boss = json!({"agent_name": "boss", "owner_id": "boss", "skills": []});
    let boss = post(&client, &format!("{url}/registry/register"), "", &boss).await.expect("a boss");
    let key = boss["api_key"].as_str().expect("a key").to_owned();
    let order = json!({"id": OsRandom.new_uuid(), "skill": "plan", "input": {"text": "a trip"}, "budget": 0});
    let mut job = Value::Null;
    eventually(async || {
        job = post(&client, &format!("{url}/v1/jobs"), &key, &order).await.unwrap_or_default();
        job["id"].is_string()
    })
    .await;
    let path = format!("{url}/v1/jobs/{}", job["id"].as_str().expect("an id"));
    let shown = async || get(&client, &path, &key).await.unwrap_or_default();
    eventually(async || shown().await["state"] == "asking").await;
    for answers in [false, true] {
        hub.kill();
        hub = start_at(data.path(), &address);
        eventually(async || shown().await["question"]["text"] == "Which city?").await;
        if answers {
            let answer = json!({"text": "Lugano"});
            post(&client, &format!("{path}/answer"), &key, &answer).await.expect("answered");
            // The acknowledged answer survives.
            hub.kill();
            hub = start_at(data.path(), &address);
        }
    }
    eventually(async || shown().await["state"] == "completed").await;
    let ended = shown().await;
    assert_eq!(ended["result"]["output"], json!({"text": "To Lugano"}), "{ended}");
    assert_eq!(ended["questions"].as_array().map(Vec::len), Some(1), "{ended}");
    drop(worker);
    hub.kill();
    assert_audit_is_clean(data.path());
}

async fn get(http: &reqwest::Client, url: &str, key: &str) -> Option<Value> {
    let answer = http.get(url).bearer_auth(key).send().await.ok()?;
    serde_json::from_str(&answer.text().await.ok()?).ok()
}

async fn post(http: &reqwest::Client, url: &str, key: &str, body: &Value) -> Option<Value> {
    let mut request = http.post(url).body(body.to_string());
    if !key.is_empty() {
        request = request.bearer_auth(key);
    }
    let answer = request.send().await.ok().filter(|answer| answer.status().is_success())?;
    serde_json::from_str(&answer.text().await.ok()?).ok()
}

/// Tells the hub of everything it reads as parts, and ends when it is told to.
const LISTENS: &str = r#"
import json, sys

for line in sys.stdin:
    with open("heard", "a") as heard:
        heard.write(line)
    line = json.loads(line)
    if line.get("message", {}).get("text") == "enough":
        print(json.dumps({"job_id": line["job_id"], "output": {"text": "done"}}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_an_a2a_client_and_its_cancellation_reach_the_program() {
    for mode in MODES {
        let scene = Scene::build(LISTENS, mode).await;
        let client = scene.hub.a2a_client("ann").await;
        scene.hub.grant("a2a:ann", "10").await;
        let registered =
            scene.said("at_work").await["agent_id"].as_str().expect("an id").to_owned();
        let base = scene.hub.a2a_path("registry", &registered);
        let open = async |id: &str| {
            let hire = json!({"urn:rialto:a2a:hire:v1": {"budget": "1"}});
            let message = json!({"messageId": id, "role": "ROLE_USER", "metadata": hire,
                "parts": [{"text": "go"}]});
            let params = json!({"message": message, "configuration": {"returnImmediately": true}});
            let sent = scene.hub.rpc(&base, &client.key, "SendMessage", params).await.expect(200);
            sent.str("/result/task/id")
        };
        let say = async |task: &str, id: &str, text: &str| {
            let message = json!({"messageId": id, "taskId": task, "role": "ROLE_USER",
                "parts": [{"text": text}]});
            let params = json!({"message": message, "configuration": {"returnImmediately": true}});
            scene.hub.rpc(&base, &client.key, "SendMessage", params).await.expect(200);
        };
        let state = async |task: &str| {
            let shown = scene.hub.rpc(&base, &client.key, "GetTask", json!({"id": task})).await;
            shown.expect(200).str("/result/status/state")
        };
        let task = open("m-1").await;
        // It is at work as soon as its program has started.
        eventually(async || state(&task).await == "TASK_STATE_WORKING").await;
        eventually(async || scene.heard().len() == 1).await;
        assert_eq!(scene.heard()[0]["meta"], json!({"messageId": "m-1"}));
        say(&task, "m-2", "faster").await;
        say(&task, "m-3", "enough").await;
        eventually(async || state(&task).await == "TASK_STATE_COMPLETED").await;
        let told = |id: &str, text: &str| json!({"job_id": task, "message": {"text": text}, "meta": {"messageId": id}});
        assert_eq!(scene.heard()[1..], [told("m-2", "faster"), told("m-3", "enough")]);

        let task = open("m-4").await;
        eventually(async || scene.heard().len() == 4).await;
        let cancelled = json!({"id": task});
        scene.hub.rpc(&base, &client.key, "CancelTask", cancelled).await.expect(200);
        // A program for one job is terminated; one that stays is told.
        if mode.contains(&"--persistent") {
            eventually(async || scene.heard().len() == 5).await;
            assert_eq!(scene.heard()[4], json!({"job_id": task, "cancelled": true}));
        }
        scene.said("called_off").await;
        scene.hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_refuses_a_job_for_good_and_is_not_blamed() {
    let refuses = r#"print('{"refuse": "against my rules"}', flush=True)"#;
    for (program, mode) in [(refuses, &["--lines"][..]), ("raise SystemExit(77)", &[])] {
        let scene = Scene::build(program, mode).await;
        let id = scene.hire().await;
        let ended = scene.ended(&id).await;
        assert_eq!((&ended["state"], &ended["cause"]), (&json!("failed"), &json!("policy")));
        let text = match mode {
            [] => "the program refused the job (exit status 77)",
            _ => "against my rules",
        };
        assert_eq!(ended["result"]["text"], text);
        assert_eq!(ended["held"], 0.0, "{ended}");
        assert_eq!(scene.said("ended").await["outcome"], "refused");
        scene.hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_states_the_media_types_that_it_takes() {
    let (place, hub) = (Place::new(), TestHub::open(&[]).await);
    let flags = ["--skill", "echo", "--price", "0", "--exec", "cat"];
    let mut modes = flags.to_vec();
    modes.extend(["--accepts", "text/*", "--accepts", "image/png"]);
    let worker = place.at_work(&hub, "said", &modes).await;
    let id =
        worker.said("at_work").expect("an event")["agent_id"].as_str().expect("an id").to_owned();
    let base = hub.a2a_path("registry", &id);
    let card = hub.get(&base, None).await.expect(200);
    assert_eq!(card.at("/defaultInputModes"), json!(["text/*", "image/png"]));
    let send = async |media_type: &str| {
        let part = json!({"raw": "dGNr", "mediaType": media_type});
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [part]});
        hub.rpc(&base, "", "SendMessage", json!({"message": message})).await
    };
    let refused = send("application/pdf").await;
    assert_eq!(refused.at("/error/code"), json!(-32005), "{}", refused.text);
    let taken = send("image/png").await.expect(200);
    assert_eq!(taken.str("/result/task/status/state"), "TASK_STATE_COMPLETED", "{}", taken.text);
    hub.stop().await;
}
