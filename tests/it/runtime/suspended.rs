//! A suspended agent waits as if its hub were away, and continues when it is resumed.

use serde_json::{Value, json};

use super::kit::{Place, Runtime};
use crate::kit::{TestHub, eventually};

const FLAGS: [&str; 6] = ["--skill", "shout", "--price", "0.05", "--exec", "echo '{\"ok\":true}'"];

async fn order(hub: &TestHub, agent: &str, verb: &str) {
    let path = format!("/v1/operator/agents/{agent}/{verb}");
    hub.call("POST", &path, Some(&hub.operator), None).await.expect(200);
}

async fn told(runtime: &mut Runtime, event: &str) {
    eventually(async || {
        runtime.assert_running();
        runtime.said(event).is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_agent_says_so_once_and_works_again_when_it_is_resumed() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "5").await;
    let mut runtime = place.at_work(&hub, "said", &FLAGS).await;
    let id = runtime.said("at_work").expect("said")["agent_id"].as_str().expect("text").to_owned();
    order(&hub, &id, "suspend").await;
    told(&mut runtime, "suspended").await;
    order(&hub, &id, "resume").await;
    told(&mut runtime, "back").await;
    let said = runtime.events();
    let count = |event: &str| said.iter().filter(|one| one["event"] == event).count();
    assert_eq!((count("suspended"), count("trouble")), (1, 0), "{said:?}");
    let job = json!({"skill": "shout", "input": {}, "budget": 1, "to": id});
    let job = hub.post("/v1/jobs", Some(&boss.key), &job).await.expect(201).json();
    let path = format!("/v1/jobs/{}?wait=30", job["id"].as_str().expect("text"));
    let job = hub.get(&path, Some(&boss.key)).await.expect(200).json();
    assert_eq!(job["state"], "completed", "{job}");
    // It reads its inbox again, too: it makes an offer.
    let job = json!({"skill": "shout", "input": {}, "budget": 1, "select": "offers"});
    let job = hub.post("/v1/jobs", Some(&boss.key), &job).await.expect(201).json();
    told(&mut runtime, "offered").await;
    assert_eq!(runtime.said("offered").expect("said")["job"], job["id"]);
    assert!(runtime.terminate().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_starts_while_it_is_suspended_waits_until_it_is_resumed() {
    let (hub, place) = (TestHub::serve(&[]).await, Place::new());
    let runtime = place.at_work(&hub, "said-first", &FLAGS).await;
    let id = runtime.said("at_work").expect("said")["agent_id"].as_str().expect("text").to_owned();
    runtime.kill();
    order(&hub, &id, "suspend").await;
    let mut runtime = place.run("said", &[&FLAGS[..], &["--hub", &hub.url]].concat());
    told(&mut runtime, "suspended").await;
    order(&hub, &id, "resume").await;
    told(&mut runtime, "at_work").await;
    assert_eq!(runtime.said("at_work").expect("said")["agent_id"], Value::String(id));
    assert!(runtime.terminate().await.success());
}
