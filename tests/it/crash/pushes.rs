//! A hub that is killed during a delivery delivers again; its client repeats the request.

use serde_json::json;

use super::clients::{Cast, Line, SKILL};
use super::{assert_audit_is_clean, start};
use crate::kit::{Behaviour, Got, Worker, digits, eventually, operator_key};
use std::time::Duration;

fn header<'a>(got: &'a Got, name: &str) -> &'a str {
    got.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_killed_in_the_middle_of_a_push_makes_it_again_and_the_job_is_still_one() {
    let data = tempfile::TempDir::new().expect("a directory");
    let worker = Worker::start(Behaviour::Dawdle(Duration::from_secs(600))).await;
    let hub = start(data.path());
    let cast = Cast::assemble(&hub.url).await;
    let line = Line::new(&cast.http, &hub.url);
    let reached = json!({"agent_name": "reached", "owner_id": "reached", "api_endpoint": worker.url,
        "skills": [{"skill_name": SKILL, "cost_per_call": 0.10}]});
    let made = line.post("/register", None, &reached).await.expect("an answer");
    let agent =
        serde_json::from_str::<serde_json::Value>(&made.1).expect("JSON")["agent_id"].clone();
    let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    let job = json!({"job_id": id, "agent_id": agent, "orchestrator_id": cast.requester.id,
        "skill_name": SKILL, "input_data": {}, "budget": 0.15});
    let asking = tokio::spawn({
        let (http, url, key, job) =
            (cast.http.clone(), hub.url.clone(), cast.requester.key.clone(), job.clone());
        async move { Line::new(&http, &url).post("/jobs", Some(&key), &job).await }
    });
    let first = worker.heard(1).await.remove(0);
    hub.kill();
    assert_eq!(asking.await.expect("no panic"), None, "nothing was acknowledged");
    assert_audit_is_clean(data.path());

    worker.behave(Behaviour::Succeed(json!({"second": "time"}), "0.10"));
    let hub = start(data.path());
    let line = Line::new(&cast.http, &hub.url);
    let second = worker.heard(2).await.remove(1);
    assert_eq!(second.json()["job_id"], id);
    assert_eq!(header(&second, "webhook-id"), header(&first, "webhook-id"));
    let (status, text) =
        line.post("/jobs", Some(&cast.requester.key), &job).await.expect("an answer");
    assert_eq!(status, 200, "{text}");
    assert!(text.contains(r#""output_data":{"second":"time"}"#), "{text}");
    let account = line.get("/accounts/reached", Some(&operator_key())).await.expect("an answer").1;
    assert_eq!(digits(&account, "balance"), "0.10");
    assert_eq!(worker.got().len(), 2);
    hub.kill();
    assert_audit_is_clean(data.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_cut_short_by_a_kill_is_made_again() {
    let data = tempfile::TempDir::new().expect("a directory");
    let receiver = Worker::start(Behaviour::Dawdle(Duration::from_secs(600))).await;
    let hub = start(data.path());
    let cast = Cast::assemble(&hub.url).await;
    let line = Line::new(&cast.http, &hub.url);
    let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    let mut job = super::clients::job(&cast, id);
    job["callback_url"] = format!("{}/done", receiver.url).into();
    let told = line.post("/jobs", Some(&cast.requester.key), &job).await.expect("an answer");
    assert_eq!(told.0, 202, "{}", told.1);
    let result = super::clients::result(&cast, id, true);
    let told = line.post("/results", Some(&cast.worker.key), &result).await.expect("an answer");
    assert_eq!(told.0, 200, "{}", told.1);
    let first = receiver.heard(1).await.remove(0);
    hub.kill();

    receiver.behave(Behaviour::Say(200, String::new()));
    let hub = start(data.path());
    let second = receiver.heard(2).await.remove(1);
    assert_eq!(second.body, first.body);
    assert_eq!(header(&second, "webhook-id"), header(&first, "webhook-id"));
    let line = Line::new(&cast.http, &hub.url);
    eventually(async || {
        let pushes =
            line.get("/v1/operator/pushes", Some(&operator_key())).await.expect("an answer");
        serde_json::from_str::<serde_json::Value>(&pushes.1).expect("JSON")["items"] == json!([])
    })
    .await;
    hub.kill();
    assert_audit_is_clean(data.path());
}
