//! Regression tests: leaving with many jobs assigned, keys of other hubs, hubs that restart.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::kit::{Place, key_of};
use crate::crash::{TO_COME_BACK, start_at};
use crate::kit::{Agent, Process, TestHub, eventually, output};

async fn hub_and_boss() -> (TestHub, Agent) {
    let hub = TestHub::serve(&[]).await;
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "100.00").await;
    (hub, boss)
}

async fn posted(hub: &TestHub, boss: &Agent, skill: &str) -> String {
    let body = json!({"skill": skill, "input": {}, "budget": 0.10});
    hub.post("/v1/jobs", Some(&boss.key), &body).await.expect(201).str("/id")
}

async fn ended(hub: &TestHub, boss: &Agent, id: &str) -> Value {
    hub.get(&format!("/v1/jobs/{id}?wait=30"), Some(&boss.key)).await.expect(200).json()
}

#[tokio::test]
async fn leaving_with_more_jobs_than_one_list_holds_fails_none_of_them() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let slow = ["--skill", "many", "--price", "0.05", "--name", "slow", "--concurrency", "1"];
    let exec = ["--exec", "sleep 600"];
    let mut slow = place.at_work(&hub, "slow", &[&slow[..], &exec].concat()).await;
    let mut jobs = Vec::new();
    for _ in 0..60 {
        jobs.push(posted(&hub, &boss, "many").await);
    }
    let other = ["--skill", "many", "--price", "0.05", "--name", "other", "--exec", "echo '{}'"];
    let _other = place.at_work(&hub, "other", &other).await;
    assert!(slow.terminate().await.success());
    for id in &jobs {
        let job = ended(&hub, &boss, id).await;
        assert_eq!(job["state"], "completed", "{job}");
    }
    // An agent that has left shows no score, so it registers again.
    let flags = ["--skill", "many", "--price", "0.05", "--name", "slow", "--exec", "echo '{}'"];
    let slow = place.at_work(&hub, "slow-again", &flags).await;
    let id = slow.said("at_work").expect("said")["agent_id"].as_str().expect("text").to_owned();
    assert_eq!(hub.score(&Agent { id, ..boss }).await, "50.0", "leaving does not lower the score");
}

#[tokio::test]
async fn a_program_that_does_not_listen_ends_with_the_agent_that_runs_it() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let exec = "trap '' TERM; echo $$ >pid; while :; do sleep 0.1; done";
    let flags = ["--skill", "deaf", "--price", "0.05", "--exec", exec];
    let mut runtime = place.at_work(&hub, "said", &flags).await;
    posted(&hub, &boss, "deaf").await;
    eventually(async || !place.text("pid").is_empty()).await;
    assert!(runtime.terminate().await.success());
    let process = format!("/proc/{}", place.text("pid").trim());
    eventually(async || !std::path::Path::new(&process).exists()).await;
}

#[tokio::test]
async fn what_runs_for_a_job_that_others_have_now_is_ended_at_the_next_start() {
    let ((hub, boss), place) = (hub_and_boss().await, Place::new());
    let exec = "echo $$ >pid; sleep 600";
    let flags = ["--skill", "lost", "--price", "0.05", "--name", "lost", "--exec", exec];
    let runtime = place.at_work(&hub, "said", &flags).await;
    let id = posted(&hub, &boss, "lost").await;
    eventually(async || !place.text("pid").is_empty()).await;
    let process = format!("/proc/{}", place.text("pid").trim());
    runtime.kill();
    assert!(std::path::Path::new(&process).exists(), "a run survives its agent");
    let path = format!("/v1/operator/jobs/{id}/requeue");
    hub.post(&path, Some(&hub.operator), &json!({})).await.expect(200);
    let _again = place.at_work(&hub, "again", &flags).await;
    eventually(async || !std::path::Path::new(&process).exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_to_its_own_hub_only_and_no_other_file_is_written_over() {
    let ((hub, _), (other, _)) = (hub_and_boss().await, hub_and_boss().await);
    let place = Place::new();
    let flags = ["--skill", "key", "--price", "0.05", "--exec", "echo '{}'"];
    place.at_work(&hub, "said", &flags).await.kill();
    let key = place.path("own.key");
    std::fs::copy(key_of(&place, "key"), &key).expect("copied");
    let kept = std::fs::read_to_string(&key).expect("a key");
    let run = |file: &str, url: &str| {
        let mut command = place.rialto();
        command.args(["agent", "run", "--key-file", file, "--hub", url]).args(flags);
        output(&mut command).expect("it runs")
    };
    let told = run(key.to_str().expect("text"), &other.url);
    assert_eq!(told.status.code(), Some(5), "{}", String::from_utf8_lossy(&told.stderr));
    assert_eq!(std::fs::read_to_string(&key).expect("a key"), kept);
    for (name, text, code) in [("notes.txt", "buy milk and bread\n", 2), ("word", "secret\n", 4)] {
        let notes = place.file(name, text);
        let told = run(notes.to_str().expect("text"), &other.url);
        assert_eq!(told.status.code(), Some(code), "{}", String::from_utf8_lossy(&told.stderr));
        assert_eq!(place.text(name), text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_hub_at_the_address_for_a_while_costs_the_agent_nothing() {
    let (data, empty, place) = (directory(), directory(), Place::new());
    let hub = start_at(data.path(), TO_COME_BACK);
    let address = hub.url.trim_start_matches("http://").to_owned();
    let flags = ["--skill", "stay", "--price", "0.05", "--exec", "echo '{}'", "--name", "stay"];
    let runtime = place.run("said", &[&flags[..], &["--hub", &hub.url]].concat());
    let at_work = |count: usize| {
        let runtime = &runtime;
        async move {
            eventually(async || {
                runtime.events().iter().filter(|said| said["event"] == "at_work").count() >= count
            })
            .await;
        }
    };
    at_work(1).await;
    hub.kill();
    let wrong: Process = start_at(empty.path(), &address);
    at_work(2).await;
    wrong.kill();
    let _right = start_at(data.path(), &address);
    at_work(3).await;
    let ids: Vec<Value> = runtime
        .events()
        .into_iter()
        .filter(|said| said["event"] == "at_work")
        .map(|said| said["agent_id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "the id is the same: {ids:?}");
}

fn directory() -> TempDir {
    TempDir::new().expect("a directory")
}
