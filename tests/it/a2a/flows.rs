//! The worked exchanges of the requirements (section 7), run at a hub and compared whole. Only ids,
//! times and other values that a hub makes differ.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::kit::{HUB, TaskWorker};
use crate::kit::{Behaviour, Got, Reply, TestHub, Worker};
use crate::relay::kit::Event;

const FLOWS: &str = include_str!("../../../crates/protocols/src/a2a/fixtures/flows.json");

/// An exchange as it is printed.
pub fn printed(flow: &str, number: usize) -> Value {
    let all: Value = serde_json::from_str(FLOWS).expect("JSON");
    all[flow][number].clone()
}

/// Names for ids and times, in the order in which they come.
#[derive(Default)]
struct Mask {
    ids: HashMap<String, String>,
    times: usize,
}

impl Mask {
    /// A value with names instead of what a hub makes.
    fn over(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.over(item)).collect(),
            Value::Object(members) => {
                // Ids are named in the same order on both sides: members are sorted.
                let masked = members.iter().map(|(name, value)| (name.clone(), self.over(value)));
                Value::Object(masked.collect())
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let form: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if form == "0000-00-00T00:00:00.000Z" {
            self.times += 1;
            return "‹time›".to_owned();
        }
        // A message of a worker is named by its job, so that it is as good as any other id.
        let is_uuid = |text: &str| text.parse::<uuid::Uuid>().is_ok() && text.len() == 36;
        let is_own = text.get(..36).is_some_and(is_uuid) && text.get(36..37) == Some("-");
        if is_uuid(text) || is_own || text.starts_with("q-") {
            let next = format!("‹id {}›", self.ids.len() + 1);
            return self.ids.entry(text.to_owned()).or_insert(next).clone();
        }
        text.to_owned()
    }
}

/// The two exchanges of a flow must be the same but for what the hubs make.
#[track_caller]
pub fn same(printed: &Value, real: &Value) {
    assert_eq!(Mask::default().over(real), Mask::default().over(printed));
}

/// The headers that are printed must be there.
#[track_caller]
fn same_headers(printed: &Value, reply: &Reply) {
    assert_eq!(json!(reply.status), printed["status"]);
    for (name, value) in printed["headers"].as_object().expect("headers") {
        let real = reply.header(&name.to_lowercase()).unwrap_or_else(|| panic!("no {name}"));
        let is_made = ["ETag", "Last-Modified", "Rialto-Job"].contains(&name.as_str());
        assert!(is_made || value == real, "{name}: {real}, printed {value}");
    }
    let known = ["a2a-extensions", "rialto-job", "retry-after", "idempotency-replayed"];
    for name in known.iter().filter(|name| reply.header(name).is_some()) {
        let listed = printed["headers"].as_object().expect("headers").keys();
        assert!(
            listed.map(|one| one.to_lowercase()).any(|one| one == *name),
            "{name} is not printed"
        );
    }
}

struct Scene {
    hub: TestHub,
    key: String,
}

impl Scene {
    async fn set() -> Self {
        let hub = TestHub::serve(&[]).await;
        let key = hub.rich_client("client").await.key;
        Self { hub, key }
    }

    /// Sends the request of an exchange to this agent, with other ids where they are made by hubs.
    async fn send(&self, exchange: &Value, base: &str, ids: &[(&str, &str)]) -> Reply {
        let request = &exchange["request"];
        let mut path = request["path"].as_str().expect("a path").to_owned();
        for agent in ["/a2a/agents/text-analyst-3000-20917bb1", "/a2a/agents/geo-route-planner"] {
            path = path.replace(agent, base);
        }
        let mut body = request.get("body").map(Value::to_string).unwrap_or_default();
        for (printed, real) in ids {
            path = path.replace(printed, real);
            body = body.replace(printed, real);
        }
        let bearer = format!("Bearer {}", self.key);
        let headers = request["headers"].as_object().expect("headers");
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .filter(|(name, _)| *name != "Content-Length")
            .map(|(name, value)| match name.as_str() {
                "Authorization" => ("authorization", bearer.as_str()),
                name => (name, value.as_str().expect("a text")),
            })
            .collect();
        let method = request["method"].as_str().expect("a method");
        self.hub.send(method, &path, &headers, body.as_bytes()).await
    }
}

/// The texts of a value with others in their place.
pub fn renamed(value: &Value, names: &[(&str, &str)]) -> Value {
    let text = names.iter().fold(value.to_string(), |text, (from, to)| text.replace(from, to));
    serde_json::from_str(&text).expect("JSON")
}

/// The agent of exchanges 1 to 3: what it registered.
async fn analyst(hub: &TestHub) -> TaskWorker<'_> {
    let skills = json!([{"skill_name": "analyze_text", "description": "Finds names and numbers",
        "cost_per_call": 0.10, "input_schema": {"text": "string"}, "output_schema": {"entities": "list"}}]);
    TaskWorker::with_skills(hub, "Text-Analyst-3000", skills).await
}

/// An agent that stands for the printed one of A2A: free, and with one skill.
async fn planner(hub: &TestHub) -> TaskWorker<'_> {
    let skills =
        json!([{"skill_name": "route", "description": "Plans routes", "cost_per_call": 0}]);
    TaskWorker::with_skills(hub, "Geo Route Planner", skills).await
}

/// What differs because the planner is an agent of another protocol here.
fn of_planner(value: &Value, worker: &TaskWorker<'_>) -> Value {
    let name = worker.base.rsplit_once('/').expect("a name").1;
    renamed(
        value,
        &[("geo-route-planner", name), (r#""protocol":"a2a""#, r#""protocol":"registry""#)],
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_1_a_card() {
    let scene = Scene::set().await;
    let worker = analyst(&scene.hub).await;
    let exchange = printed("1_card", 0);
    let reply = scene.send(&exchange, &worker.base, &[]).await;
    same_headers(&exchange["response"], &reply);
    // Who it is, what it was measured at, its schemas and the signature are the agent's own.
    let mut expected = exchange["response"]["body"].clone();
    let real = reply.json();
    let name = worker.base.rsplit_once('/').expect("a name").1;
    expected = renamed(
        &expected,
        &[
            ("text-analyst-3000-20917bb1", name),
            ("https://hub.example", scene.hub.url.as_str()),
            (r#""organization":"acme""#, r#""organization":"Text-Analyst-3000""#),
        ],
    );
    expected["description"] = "analyze_text".into();
    expected["signatures"] = real["signatures"].clone();
    let extensions = &mut expected["capabilities"]["extensions"];
    let shown = &real["capabilities"]["extensions"];
    extensions[1]["params"] = shown[1]["params"].clone();
    extensions[2]["params"] = shown[2]["params"].clone();
    assert_eq!(real, expected);
    assert!(reply.header("etag").is_some_and(|tag| tag.starts_with("W/\"")));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_2_a_hire() {
    let scene = Scene::set().await;
    let worker = analyst(&scene.hub).await;
    let exchange = printed("2_hire", 0);
    let output = json!({"entities": [{"type": "revenue", "value": 42000}]});
    let (reply, _) = tokio::join!(scene.send(&exchange, &worker.base, &[]), worker.work(output));
    same_headers(&exchange["response"], &reply);
    let name = worker.base.rsplit_once('/').expect("a name").1;
    let body = renamed(&exchange["response"]["body"], &[("text-analyst-3000-20917bb1", name)]);
    same(&body, &reply.json());
    assert_eq!(reply.header("rialto-job"), reply.at("/result/task/id").as_str());
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_3_a_refusal() {
    let scene = Scene::set().await;
    let worker = analyst(&scene.hub).await;
    let exchange = printed("3_refused", 0);
    let reply = scene.send(&exchange, &worker.base, &[]).await;
    same_headers(&exchange["response"], &reply);
    same(&exchange["response"]["body"], &reply.json());
    scene.hub.stop().await;
}

/// The events of a printed stream.
fn printed_events(body: &Value) -> Vec<Event> {
    // `retry` stands inside the first block (R64).
    let text = body.as_str().expect("a text").replace("retry: 2000\n\n", "retry: 2000\n");
    let mut bytes = text.into_bytes();
    crate::relay::kit::events(&mut bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_4_a_stream_that_is_cut_and_resumed() {
    let scene = Scene::set().await;
    let worker = planner(&scene.hub).await;
    let [first, second] = [0, 1].map(|number| printed("4_stream_and_resume", number));
    let body = first["request"]["body"].to_string();
    let path = format!("{}/message:stream", worker.base);
    let mut events = scene.hub.stream(("POST", &path), &scene.key, &[], &body).await;
    let task = events.header("rialto-job").expect("a job").to_owned();
    let job = worker.take().await;
    worker.say(&job, "progress", json!({"fraction": 0.1})).await.expect(200);
    let mut real = vec![events.event().await, events.event().await];
    // The worker of the printed one says nothing of its progress.
    events.event().await;
    let piece = |text: &str| json!({"artifactId": "a1", "parts": [{"text": text}]});
    worker.part(&job, piece("Q3 was "), false).await;
    real.push(events.event().await);
    drop(events);
    let printed_task = "6b1de0c2-93f4-4a57-8c0e-1f2a3b4c5d6e";
    let path = second["request"]["path"].as_str().expect("a path").replace(printed_task, &task);
    let path = path.replace("/a2a/agents/geo-route-planner", &worker.base);
    let last = real.last().expect("an event").position().to_string();
    let more = [("last-event-id", last.as_str())];
    let mut events = scene.hub.stream(("POST", &path), &scene.key, &more, "").await;
    let pieces = printed_events(&second["response"]["body"]);
    let text = pieces[0].data["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str();
    worker.part(&job, piece(text.expect("a text")), true).await;
    // Its result is a message, so that no artifact is added.
    worker.succeed(&job, json!({"message": {"parts": [{"text": "done"}]}})).await;
    real.extend(events.rest().await);
    let mut expected = printed_events(&first["response"]["body"]);
    expected.extend(pieces);
    let data =
        |events: &[Event]| -> Value { events.iter().map(|event| event.data.clone()).collect() };
    let (mut real, mut expected) = (data(&real), data(&expected));
    // That its worker knows which piece is the last one, and ends without a message, is what remains.
    let piece = &mut expected[3]["artifactUpdate"];
    assert_eq!(piece.as_object_mut().expect("a piece").remove("lastChunk"), Some(json!(true)));
    let end = real[4]["statusUpdate"]["status"].as_object_mut().expect("a status");
    assert!(end.remove("message").is_some());
    same(&expected, &real);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_5_a_question_and_its_answer() {
    let scene = Scene::set().await;
    let worker = planner(&scene.hub).await;
    let [first, second] = [0, 1].map(|number| printed("5_input_required", number));
    let ask = async {
        let job = worker.take().await;
        worker.ask(&job, "Which city?").await;
        job
    };
    let (asked, job) = tokio::join!(scene.send(&first, &worker.base, &[]), ask);
    same_headers(&first["response"], &asked);
    let task = asked.at("/result/task/id");
    let ids = [("91c7f3aa-0d2b-4c6e-b5a4-0e9d8c7b6a5f", task.as_str().expect("an id"))];
    let work = async {
        crate::kit::eventually(async || {
            let path = format!("/v1/jobs/{}", ids[0].1);
            let job = scene.hub.get(&path, Some(&worker.agent.key)).await.expect(200);
            job.at("/state") == "running"
        })
        .await;
        let artifacts = json!([{"artifactId": "route", "parts": [{"text": "Take the A2."}]}]);
        worker.succeed(&job, json!({ "artifacts": artifacts })).await;
    };
    let (done, ()) = tokio::join!(scene.send(&second, &worker.base, &ids), work);
    // Every answer about a job names it.
    assert_eq!(done.header("rialto-job"), Some(ids[0].1));
    let both = |one: &Value, other: &Value| json!([one, other]);
    let expected = both(&first["response"]["body"], &second["response"]["body"]);
    same(&of_planner(&expected, &worker), &both(&asked.json(), &done.json()));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_6_a_push_notification() {
    let scene = Scene::set().await;
    let worker = planner(&scene.hub).await;
    let hook = Worker::start(Behaviour::Say(204, String::new())).await;
    let url = format!("{}/hook", hook.url);
    let [sent, listed, pushed] = [0, 1, 2].map(|number| printed("6_push", number));
    let printed_url = "https://client.example/hook";
    let reply = scene.send(&sent, &worker.base, &[(printed_url, &url)]).await;
    same_headers(&sent["response"], &reply);
    let task = reply.at("/result/task/id").as_str().expect("an id").to_owned();
    let printed_task = "c3a9d7e1-44b8-4f12-a6d0-5e4f3a2b1c0d";
    let list = scene.send(&listed, &worker.base, &[(printed_task, &task)]).await;
    let job = worker.take().await;
    worker.progress(&job, "at it").await;
    let all = hook.heard(2).await;
    let is_first = |got: &&Got| got.headers["webhook-id"] == format!("{task}-2").as_str();
    let first = all.iter().find(is_first).expect("the event at position 2");
    let headers = pushed["request"]["headers"].as_object().expect("headers");
    for (name, value) in headers {
        let real = first.headers[name.to_lowercase().as_str()].to_str().expect("a text");
        match name.as_str() {
            "webhook-timestamp" => assert!(real.parse::<u64>().is_ok()),
            "webhook-signature" => assert!(real.starts_with("v1,"), "{real}"),
            "webhook-id" => {}
            _ => assert_eq!(value, real),
        }
    }
    let expected =
        json!([sent["response"]["body"], listed["response"]["body"], pushed["request"]["body"]]);
    let expected = renamed(&expected, &[(printed_url, &url)]);
    same(&expected, &json!([reply.json(), list.json(), first.json()]));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_7_a_client_of_0_3() {
    let scene = Scene::set().await;
    let worker = planner(&scene.hub).await;
    let exchange = printed("7_version_0.3", 0);
    let output =
        json!({"artifacts": [{"artifactId": "route", "parts": [{"text": "Take the A2."}]}]});
    let (reply, _) = tokio::join!(scene.send(&exchange, &worker.base, &[]), worker.work(output));
    same_headers(&exchange["response"], &reply);
    same(&of_planner(&exchange["response"]["body"], &worker), &reply.json());
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_8_a_list_and_a_cancellation() {
    let scene = Scene::set().await;
    let worker = planner(&scene.hub).await;
    let long = printed("6_push", 0)["request"]["body"]["params"]["message"].clone();
    let task = scene.hub.begin(&worker.base, &scene.key, long).await;
    let job = worker.take().await;
    worker.say(&job, "progress", json!({"fraction": 0.1})).await.expect(200);
    let real = task["id"].as_str().expect("an id");
    let ids = [("c3a9d7e1-44b8-4f12-a6d0-5e4f3a2b1c0d", real)];
    let (mut expected, mut bodies) = (Vec::new(), Vec::new());
    for number in 0..3 {
        let exchange = printed("8_list_and_cancel", number);
        let reply = scene.send(&exchange, &worker.base, &ids).await;
        same_headers(&exchange["response"], &reply);
        expected.push(exchange["response"]["body"].clone());
        bodies.push(reply.json());
    }
    same(&of_planner(&json!(expected), &worker), &json!(bodies));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flow_10_the_hub_finds_and_hires() {
    let scene = Scene::set().await;
    let skills =
        json!([{"skill_name": "route", "description": "Plans routes", "cost_per_call": 0.25}]);
    let worker = TaskWorker::with_skills(&scene.hub, "Geo Route Planner", skills).await;
    let [first, second] = [0, 1].map(|number| printed("10_front_desk", number));
    let found = scene.send(&first, HUB, &[]).await;
    same_headers(&first["response"], &found);
    let artifacts = json!([{"artifactId": "x", "parts": [{"text": "Take the A2."}]}]);
    let (hired, _) =
        tokio::join!(scene.send(&second, HUB, &[]), worker.work(json!({ "artifacts": artifacts })));
    same_headers(&second["response"], &hired);
    let of_hub = [("https://hub.example", scene.hub.url.as_str())];
    for (exchange, reply) in [(first, found), (second, hired)] {
        let body = of_planner(&renamed(&exchange["response"]["body"], &of_hub), &worker);
        same(&body, &reply.json());
    }
    scene.hub.stop().await;
}

#[test]
fn every_worked_exchange_has_a_test() {
    let all: Value = serde_json::from_str(FLOWS).expect("JSON");
    // The ninth is about workers that are servers of their own.
    let sources = [include_str!("flows.rs"), include_str!("remote/flow.rs")].concat();
    for name in all.as_object().expect("flows").keys() {
        let number = name.split('_').next().expect("a number");
        assert!(sources.contains(&format!("async fn flow_{number}_")), "{name}");
    }
}
