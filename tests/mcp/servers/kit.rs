//! Shared by these tests: the fixture server, agents of it, and jobs for them.

use std::fs;

use serde_json::{Value, json};

use super::runtime::{Place, Runtime};
use crate::kit::{Agent, TestHub, in_time};

const FIXTURE: &str = include_str!("fixture.py");

/// A place with the fixture server in it.
pub fn place() -> Place {
    let place = Place::new();
    place.file("fixture.py", FIXTURE);
    place
}

/// The command line of the fixture.
pub fn fixture(flags: &str) -> String {
    format!("python3 fixture.py {flags}")
}

/// An agent of the fixture, at work.
pub async fn sold(place: &Place, hub: &TestHub, flags: &str, more: &[&str]) -> Runtime {
    let command = fixture(flags);
    let arguments = [&["--mcp", &command, "--price", "0.05"], more].concat();
    place.at_work(hub, "said", &arguments).await
}

/// A requester with credits.
pub async fn boss(hub: &TestHub) -> Agent {
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "100").await;
    boss
}

/// Posts a job and waits for its end.
pub async fn hire(hub: &TestHub, boss: &Agent, skill: &str, input: &str) -> Value {
    let job = post(hub, boss, skill, input).await;
    ended(hub, boss, &job).await
}

/// Posts a job.
pub async fn post(hub: &TestHub, boss: &Agent, skill: &str, input: &str) -> String {
    let body = format!(r#"{{"skill":"{skill}","input":{input},"budget":0.10}}"#);
    let reply = hub.call("POST", "/v1/jobs", Some(&boss.key), Some(&body)).await.expect(201);
    reply.str("/id")
}

/// Waits for the end of a job. Its result keeps its digits as text in `raw`.
pub async fn ended(hub: &TestHub, boss: &Agent, job: &str) -> Value {
    let path = format!("/v1/jobs/{job}?wait=20");
    in_time(async {
        loop {
            let reply = hub.get(&path, Some(&boss.key)).await.expect(200);
            let mut view: Value = serde_json::from_str(&reply.text).expect("JSON");
            if !view["ended_at"].is_null() {
                view["raw"] = reply.text.into();
                return view;
            }
        }
    })
    .await
}

/// The output of a job that was done and paid.
#[track_caller]
pub fn output(job: &Value) -> &Value {
    assert_eq!((&job["state"], &job["result"]["ok"]), (&json!("completed"), &json!(true)), "{job}");
    assert_eq!(job["paid"].to_string(), "0.05", "{job}");
    &job["result"]["output"]
}

/// The cause and the text of a job that failed unpaid. The hub calls input that is refused `policy`.
#[track_caller]
pub fn failure(job: &Value) -> (&str, &str) {
    assert_eq!((&job["state"], &job["result"]["ok"]), (&json!("failed"), &json!(false)), "{job}");
    assert_eq!(job["paid"].as_f64(), Some(0.0), "{job}");
    (job["cause"].as_str().unwrap_or_default(), job["result"]["text"].as_str().unwrap_or_default())
}

/// The names of an agent's skills at the hub.
pub async fn skills(hub: &TestHub, runtime: &Runtime) -> Vec<String> {
    let view = agent(hub, runtime).await;
    let skills = view["skills"].as_array().expect("skills").iter();
    skills.map(|skill| skill["name"].as_str().expect("a name").to_owned()).collect()
}

/// An agent as the hub shows it.
pub async fn agent(hub: &TestHub, runtime: &Runtime) -> Value {
    let reply = hub.get(&format!("/v1/agents/registry:{}", id_of(runtime)), None).await.expect(200);
    serde_json::from_str(&reply.text).expect("JSON")
}

/// The id of an agent in its own protocol.
pub fn id_of(runtime: &Runtime) -> String {
    let said = runtime.said("at_work").expect("it is at work");
    said["agent_id"].as_str().expect("an id").to_owned()
}

/// The lines of a file of the fixture.
pub fn lines(place: &Place, file: &str) -> Vec<String> {
    let text = fs::read_to_string(place.path(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
